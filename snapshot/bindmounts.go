package snapshot

import (
	"slices"

	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// CopyBinds says what a restored copy gets of the original's bind mounts. What
// they show belongs to the host, and to the original.
type CopyBinds string

// The choices.
const (
	BindsReadOnly CopyBinds = "ro"     // the copy may only read them
	BindsShared   CopyBinds = "shared" // as they were captured: it may write what the original may
	BindsNone     CopyBinds = "none"   // it has none of them
)

// bind is one bind mount of a configuration.
type bind struct {
	source, destination string
	readOnly            bool
	createsSource       bool // the engine makes a missing source
}

// binds are the bind mounts of the configuration, in both of its forms.
func (sp *spec) binds() []bind {
	var found []bind
	for _, text := range sp.host.Binds {
		if b, ok := parseBind(text); ok && b.isPath() {
			found = append(found, bind{source: b.source, destination: b.destination, readOnly: b.has("ro")})
		}
	}
	for _, m := range sp.host.Mounts {
		if m.Type == mount.TypeBind {
			found = append(found, bind{
				source: m.Source, destination: m.Target, readOnly: m.ReadOnly,
				createsSource: m.BindOptions != nil && m.BindOptions.CreateMountpoint,
			})
		}
	}
	return found
}

// planMounts decides what a copy gets for mounts. suffix is what its name has
// after the original's.
func (sp *spec) planMounts(s catalog.Snapshot, o RestoreOptions, suffix string) (volumes []newVolume, steps plan.Plan, bindNotes []string) {
	bindNotes = sp.limitBinds(o.Binds)
	volumes, steps = sp.planVolumes(s, o.Volumes, suffix)
	return volumes, steps, bindNotes
}

// limitBinds gives a copy the bind mounts that it may have, with all their other
// options. It returns what the user has to know of each.
func (sp *spec) limitBinds(choice CopyBinds) []string {
	var notes []string
	for _, b := range sp.binds() {
		switch {
		case choice == BindsNone:
			notes = append(notes, b.note()+"; the copy does not have it")
		case b.readOnly:
			notes = append(notes, b.note())
		case choice == BindsShared:
			notes = append(notes, b.note()+"; the copy writes to the same files as the original")
		default:
			notes = append(notes, b.note()+"; it is read-only in the copy (--binds shared: writable)")
		}
	}
	switch choice {
	case BindsShared:
	case BindsNone:
		sp.dropBinds()
	default:
		sp.protectBinds()
	}
	return notes
}

func (sp *spec) dropBinds() {
	sp.host.Binds = slices.DeleteFunc(sp.host.Binds, func(text string) bool {
		b, ok := parseBind(text)
		return ok && b.isPath()
	})
	sp.host.Mounts = slices.DeleteFunc(sp.host.Mounts, func(m mount.Mount) bool { return m.Type == mount.TypeBind })
}

// protectBinds makes every bind mount read-only.
func (sp *spec) protectBinds() {
	for i, text := range sp.host.Binds {
		if b, ok := parseBind(text); ok && b.isPath() {
			sp.host.Binds[i] = b.without("rw").with("ro").String()
		}
	}
	for i := range sp.host.Mounts {
		if m := &sp.host.Mounts[i]; m.Type == mount.TypeBind {
			m.ReadOnly = true
		}
	}
}

// note says what everybody has to know of a bind mount.
func (b bind) note() string {
	return "bind mount " + b.source + " on " + b.destination + ": its content is not in the snapshot"
}

// noteCaptured says of the bind mounts of a container that a snapshot is taken of
// that their content is not in it.
func noteCaptured(mounts []labels.Mount, containerLabels map[string]string, p plan.Progress) {
	if knowsBinds(containerLabels) {
		return
	}
	for _, m := range mounts {
		if m.Type == string(mount.TypeBind) {
			p.Note("inspect", bind{source: m.Source, destination: m.Destination}.note())
		}
	}
}

// noteBinds says what became of the bind mounts in a copy.
func (r restore) noteBinds(p plan.Progress) {
	if !r.foreign && knowsBinds(r.spec.config.Labels) {
		return
	}
	for _, note := range r.bindNotes {
		p.Note("check", note)
	}
}

// noteKept says the same of the bind mounts of a container that is restored in
// place.
func (r *replacement) noteKept(p plan.Progress) {
	if !r.foreign && knowsBinds(r.spec.config.Labels) {
		return
	}
	binds := r.spec.binds()
	configured := r.spec.destinations()
	for _, m := range r.snapshot.Mounts {
		if len(r.spec.host.VolumesFrom) > 0 && m.Type == string(mount.TypeBind) && !configured[m.Destination] {
			binds = append(binds, bind{source: m.Source, destination: m.Destination})
		}
	}
	for _, b := range binds {
		p.Note("check", b.note()+" and stays as it is")
	}
}

// knowsBinds tells by a container's labels that its owner knows of its bind mounts.
func knowsBinds(containerLabels map[string]string) bool {
	return containerLabels[labels.KeyPolicyBinds] == labels.PolicyBindsKnown
}
