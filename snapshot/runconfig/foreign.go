package runconfig

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// judge decides what in the configuration of a foreign snapshot is harmless on this engine.
// Everything else is an [Access] that the user has to allow.
type judge struct {
	info     system.Info
	joins    []string        // networks that the user wants the container to join
	absent   map[string]bool // volumes that do not exist
	made     map[string]bool // volumes that are made for the container
	replaced map[string]bool // volumes that the replaced container can write to
	reserved []string        // volumes that only this program may use
}

// rules judge a T, field by field. A field that is in neither list asks for access: nobody has
// thought about it yet.
type rules[T any] struct {
	harmless []string           // fields that only concern the container itself
	judged   map[string]rule[T] // by field
}

// rule returns the access that a T asks for with one of its fields.
type rule[T any] func(j judge, v T) []Access

// asked returns the access that the fields of v ask for which are not zero. name is that of the
// whole.
func (r rules[T]) asked(j judge, name string, v T) []Access {
	var all []Access
	value := reflect.ValueOf(v)
	for _, field := range reflect.VisibleFields(value.Type()) {
		if field.Anonymous || value.FieldByIndex(field.Index).IsZero() || slices.Contains(r.harmless, field.Name) {
			continue // VisibleFields also returns an embedded struct's fields
		}
		if judged, known := r.judged[field.Name]; known {
			all = append(all, judged(j, v)...)
		} else {
			all = append(all, Access{accessField, name + "." + field.Name})
		}
	}
	return all
}

// asked returns the access that the whole configuration asks for.
func (sp *Spec) asked(j judge) []Access {
	all := slices.Concat(hostRules.asked(j, "HostConfig", sp.Host), configRules.asked(j, "Config", sp.Config))
	for _, name := range sp.NetworkNames() {
		all = append(all, j.network(name)...)
		all = append(all, endpointRules.asked(j, "EndpointSettings", *sp.Endpoints[name])...)
	}
	return all
}

// newVolume judges a volume that is to be made.
func (j judge) newVolume(v volume.CreateOptions) []Access {
	all := j.volumeDriver(v.Driver, v.DriverOpts)
	if slices.Contains(j.reserved, v.Name) || !labels.IsContainerName(v.Name) { // the engine has one grammar for both
		all = append(all, Access{accessVolume, v.Name})
	}
	return all
}

// volume judges a volume that is mounted, or restored into. The volumes of a container that the
// user wants to have replaced are the user's to give.
func (j judge) volume(name string) []Access {
	isReserved := slices.Contains(j.reserved, name)
	if !isReserved && (j.made[name] || j.absent[name] || j.replaced[name]) {
		return nil
	}
	return []Access{{accessVolume, name}}
}

// ForgetForeign drops what has no meaning on this engine: policies that users of another engine
// set, and the lists of paths that it hides from containers. This engine uses its own lists, unless
// the captured ones hide less. own are the labels that the user of this engine asked for.
func (sp *Spec) ForgetForeign(own map[string]string) {
	maps.DeleteFunc(sp.Config.Labels, func(key, _ string) bool {
		_, isOwn := own[key]
		return strings.HasPrefix(key, labels.PrefixPolicy) && !isOwn
	})
	if hidesAll(sp.Host.MaskedPaths, alwaysMasked) && hidesAll(sp.Host.ReadonlyPaths, alwaysReadonly) {
		sp.Host.MaskedPaths, sp.Host.ReadonlyPaths = nil, nil
	}
}

// ForeignProblems returns what a foreign snapshot, restored as a copy, asks for and is not allowed.
// reserved are volumes that only this program may use.
func (s Surroundings) ForeignProblems(sp *Spec, volumes []NewVolume, o RestoreOptions, reserved ...string) []plan.Problem {
	j := judge{info: s.Info, joins: o.Networks, absent: s.NoVolume, made: map[string]bool{}, reserved: append(reserved, catalog.KeyVolume)}
	var asked []Access
	for _, v := range volumes {
		if v.IsAnonymous() {
			continue
		}
		j.made[v.Create.Name] = true
		asked = append(asked, j.newVolume(v.Create)...)
	}
	return o.accessProblems(append(asked, sp.asked(j)...))
}

// ForeignProblemsInPlace returns what a foreign snapshot, restored in the place of old, asks for
// and is not allowed. old is nil if the container is gone.
func (s Surroundings) ForeignProblemsInPlace(sp *Spec, volumes []PlacedVolume, old *container.InspectResponse, o RestoreOptions, reserved ...string) []plan.Problem {
	j := judge{
		info: s.Info, joins: o.Networks, absent: s.NoVolume, made: map[string]bool{}, replaced: map[string]bool{},
		reserved: append(reserved, catalog.KeyVolume),
	}
	if old != nil {
		for _, m := range old.Mounts {
			if m.Type == mount.TypeVolume && m.RW {
				j.replaced[m.Name] = true
			}
		}
	}
	var asked []Access
	for _, v := range volumes {
		if labels.IsPathKey(v.Create.Name) {
			if v.Archive != nil { // else it is only mounted, and asked for like that
				asked = append(asked, Access{AccessBind, v.Create.Name})
			}
			continue
		}
		if v.Exists {
			asked = append(asked, j.volume(v.Create.Name)...)
			continue
		}
		j.made[v.Create.Name] = true
		asked = append(asked, j.newVolume(v.Create)...)
	}
	return o.accessProblems(append(asked, sp.asked(j)...))
}
