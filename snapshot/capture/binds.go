package capture

import (
	"fmt"
	"path"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/storage"
)

// BindChoice says of which bind mounts the content is captured. The zero value leaves that to the labels of the container.
type BindChoice struct {
	Include []string // where they are mounted, besides those that the labels name
	// Keys names them by their keys. Unless it is nil, nothing else counts.
	Keys []string
}

// UnknownBindError means that a bind mount is to be captured that the container does not have.
type UnknownBindError struct {
	Container   string
	Destination string
	Label       bool     // the container's own label asks for it
	Binds       []string // where the container has bind mounts
}

func (e *UnknownBindError) Error() string {
	who, has := "", "it has none"
	if e.Label {
		who = "label " + labels.KeyPolicyIncludeBind + ": "
	}
	if len(e.Binds) > 0 {
		has = "it has " + strings.Join(e.Binds, ", ")
	}
	return fmt.Sprintf("%scontainer %s has no bind mount on %s: %s", who, e.Container, e.Destination, has)
}

// Unwrap gives the error its class.
func (e *UnknownBindError) Unwrap() error { return cerrdefs.ErrInvalidArgument }

// keysOf returns the keys of the bind mounts that are captured. A container may mount a directory several times.
func (b BindChoice) keysOf(c container.InspectResponse) ([]string, error) {
	if b.Keys != nil {
		return b.Keys, nil
	}
	var keys []string
	add := func(destination string, isLabel bool) error {
		key, err := findBind(c, destination, isLabel)
		if err == nil && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
		return err
	}
	for _, destination := range b.Include {
		if err := add(destination, false); err != nil {
			return nil, err
		}
	}
	for destination := range strings.FieldsFuncSeq(c.Config.Labels[labels.KeyPolicyIncludeBind], func(r rune) bool { return r == ',' || r == '\n' }) {
		if destination = strings.TrimSpace(destination); destination == "" {
			continue
		}
		if err := add(destination, true); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// findBind returns the key of the bind mount that a container has at a destination.
func findBind(c container.InspectResponse, destination string, isLabel bool) (string, error) {
	var known []string
	for _, point := range c.Mounts {
		if point.Type != mount.TypeBind {
			continue
		}
		if path.Clean(point.Destination) != path.Clean(destination) {
			known = append(known, point.Destination)
			continue
		}
		key := labels.Mount{Type: string(mount.TypeBind), Source: point.Source}.Key()
		if key == "/" {
			return "", fmt.Errorf("bind mount %s on %s cannot be captured: it is the whole host: %w", point.Source, point.Destination, cerrdefs.ErrInvalidArgument)
		}
		if !labels.IsArchivablePath(key) {
			return "", fmt.Errorf("bind mount %q on %s cannot be captured: use a path of fewer than 4096 bytes that can be printed, without '..': %w", point.Source, point.Destination, cerrdefs.ErrInvalidArgument)
		}
		return key, nil
	}
	slices.Sort(known)
	return "", &UnknownBindError{Container: dockerop.ContainerName(c), Destination: destination, Label: isLabel, Binds: known}
}

// checkStore refuses bind mounts that show the store: it would be archived in itself.
func checkStore(keys []string, s storage.Map, store string) error {
	for _, key := range keys {
		if s.Contains(key, store) || s.Overlap(key, store) {
			return fmt.Errorf("bind mount %s cannot be captured: the store of the snapshots, volume %s, is in it: %w", key, store, cerrdefs.ErrInvalidArgument)
		}
	}
	return nil
}
