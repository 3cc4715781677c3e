package runconfig

import (
	"slices"

	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// CopyBinds says which bind mounts of the original a copy gets. What they show belongs to the host
// and to the original.
type CopyBinds string

// The choices for bind mounts.
const (
	BindsReadOnly CopyBinds = "ro"     // the copy may only read them
	BindsShared   CopyBinds = "shared" // as they were captured: it may write what the original may
	BindsNone     CopyBinds = "none"   // it has none of them
)

// Bind is a bind mount of a configuration, whichever of the two forms it had.
type Bind struct {
	Source, Destination string
	readOnly            bool
	createsSource       bool // the engine makes a missing source
	held                bool // the snapshot holds its content, and the copy does not get that
}

// Binds returns the bind mounts of HostConfig.Binds and of HostConfig.Mounts.
func (sp *Spec) Binds() []Bind {
	var found []Bind
	for _, text := range sp.Host.Binds {
		if b, ok := parseBind(text); ok && b.IsPath() {
			found = append(found, Bind{Source: b.Source, Destination: b.Destination, readOnly: b.Has("ro")})
		}
	}
	for _, m := range sp.Host.Mounts {
		if m.Type == mount.TypeBind {
			found = append(found, Bind{
				Source: m.Source, Destination: m.Target, readOnly: m.ReadOnly,
				createsSource: m.BindOptions != nil && m.BindOptions.CreateMountpoint,
			})
		}
	}
	return found
}

// PlanMounts decides which mounts a copy gets, and changes the configuration to that. suffix is
// what the copy's name has after the original's. It returns the volumes to make, the steps that
// make them, and a note for each bind mount.
func (sp *Spec) PlanMounts(s catalog.Snapshot, o RestoreOptions, suffix string) (volumes []NewVolume, steps plan.Plan, bindNotes []plan.Event) {
	volumes, steps = sp.planVolumes(s, o, suffix) // the rest of the bind mounts are limited
	bindNotes = sp.limitBinds(o.Binds, s.Mounts)
	sp.keepPrivateLabels(o.Volumes == VolumesShared)
	return volumes, steps, bindNotes
}

// limitBinds gives a copy the bind mounts that it may have, with all their other options. It
// returns a note for each.
func (sp *Spec) limitBinds(choice CopyBinds, captured []labels.Mount) []plan.Event {
	var notes []plan.Event
	for _, b := range sp.Binds() {
		b.held = HoldsBind(captured, b.Destination)
		switch {
		case choice == BindsNone:
			notes = append(notes, b.event("; the copy does not have it", ""))
		case b.readOnly:
			notes = append(notes, b.event("", ""))
		case choice == BindsShared:
			notes = append(notes, b.event("; the copy writes to the same files as the original", ""))
		default:
			notes = append(notes, b.event("; it is read-only in the copy", plan.TopicReadOnlyBind))
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

// keepPrivateLabels has the engine leave the SELinux labels of the original's files alone: a private one (Z) would be the copy's, and
// the original could not read its own files any more. New volumes may have one.
func (sp *Spec) keepPrivateLabels(sharedVolumes bool) {
	for i, text := range sp.Host.Binds {
		if b, ok := parseBind(text); ok && b.Has("Z") && (b.IsPath() || sharedVolumes) {
			sp.Host.Binds[i] = b.without("Z").String()
		}
	}
}

func (sp *Spec) dropBinds() {
	sp.Host.Binds = slices.DeleteFunc(sp.Host.Binds, func(text string) bool {
		b, ok := parseBind(text)
		return ok && b.IsPath()
	})
	sp.Host.Mounts = slices.DeleteFunc(sp.Host.Mounts, func(m mount.Mount) bool { return m.Type == mount.TypeBind })
}

// protectBinds makes every bind mount read-only.
func (sp *Spec) protectBinds() {
	for i, text := range sp.Host.Binds {
		if b, ok := parseBind(text); ok && b.IsPath() {
			sp.Host.Binds[i] = b.without("rw").with("ro").String()
		}
	}
	for i := range sp.Host.Mounts {
		if m := &sp.Host.Mounts[i]; m.Type == mount.TypeBind {
			m.ReadOnly = true
		}
	}
}

// NoteElsewhere says what users have to know of a bind mount whose snapshot was made on another engine.
const NoteElsewhere = "; on this engine, its content may be another one"

// event is the note about a bind mount, with what becomes of it in a copy.
func (b Bind) event(inCopy string, topic plan.Topic) plan.Event {
	return plan.Event{Level: plan.LevelNote, Phase: "check", Text: b.Note() + inCopy, Topic: topic}
}

// Note says what every user has to know of a bind mount.
func (b Bind) Note() string {
	text := "bind mount " + b.Source + " on " + b.Destination + ": its content "
	if b.held {
		return text + "is what the host has now, not what the snapshot holds"
	}
	return text + "is not in the snapshot"
}

// KnowsBinds tells by a container's labels whether its owner knows of its bind mounts, and needs no
// notes.
func KnowsBinds(containerLabels map[string]string) bool {
	return containerLabels[labels.KeyPolicyBinds] == labels.PolicyBindsKnown
}
