package labels

import "errors"

// Kind says what a snapshot is of.
type Kind string

// The kinds of schema version 1.
const (
	KindContainer Kind = ""
	// KindState is a light snapshot of what its caller attached to it: it has no container, and no
	// filesystem.
	KindState Kind = "state"
)

// CheckLine tells why a line cannot have that name. Lines are named as containers are, because
// references mean one as the other.
func CheckLine(line string) error {
	if !IsContainerName(line) {
		return errors.New("invalid line: use letters, digits, '_', '.' and '-', and begin with a letter or digit")
	}
	return nil
}

// container reads the container of a snapshot. That of a state has its line's name, and nothing else.
func (d *decoder) container(kind Kind) Container {
	c := Container{Name: d.containerName(), Image: d.text(KeyContainerImage), ImageID: d.text(KeyContainerImageID)}
	if kind == KindState {
		return c
	}
	c.ID = d.containerID()
	c.State = oneOf(d, KeyContainerState, []State{StateRunning, StatePaused, StateExited, StateCreated})
	c.Health = oneOf(d, KeyContainerHealth, []Health{"", HealthStarting, HealthHealthy, HealthUnhealthy})
	return c
}

// line refuses a state without a line, and one that claims to have what only containers have.
func (d *decoder) line(kind Kind) string {
	line := d.text(KeyLine)
	if kind != KindState {
		if line != "" {
			d.fail(KeyLine, errors.New("only states have one"))
		}
		return line
	}
	if line == "" || line != d.text(KeyContainerName) {
		d.fail(KeyLine, errors.New("a state has one, which is the name of its container"))
	}
	for _, key := range []string{KeyContainerID, KeyContainerState, KeyContainerHealth, KeyContainerImage, KeyContainerImageID, KeyConfig, KeyMounts, KeyPlatform} {
		if d.text(key) != "" {
			d.fail(key, errors.New("a state has none"))
		}
	}
	if d.text(KeySize) != "0" {
		d.fail(KeySize, errors.New("a state has no writable layer"))
	}
	return line
}
