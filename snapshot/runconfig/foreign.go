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

// judge says what of a foreign snapshot's configuration is harmless on this
// engine. All else is asked for.
type judge struct {
	info     system.Info
	joins    []string        // networks that the user named
	absent   map[string]bool // volumes that are not here
	made     map[string]bool // volumes that are made for the container
	replaced map[string]bool // volumes that the replaced container can write to
	reserved []string        // volumes that only this program uses
}

// rules judge a T, field by field. What a field that is in neither list holds is
// asked for: nobody has thought of it yet.
type rules[T any] struct {
	harmless []string           // fields that give power over nothing but the container itself
	judged   map[string]rule[T] // by field
}

// rule tells what a T has to ask for because of one of its fields.
type rule[T any] func(j judge, v T) []Access

// asked walks the fields that hold something. name is that of the whole.
func (r rules[T]) asked(j judge, name string, v T) []Access {
	var all []Access
	value := reflect.ValueOf(v)
	for _, field := range reflect.VisibleFields(value.Type()) {
		if field.Anonymous || value.FieldByIndex(field.Index).IsZero() || slices.Contains(r.harmless, field.Name) {
			continue // of what is embedded the fields come by themselves
		}
		if judged, known := r.judged[field.Name]; known {
			all = append(all, judged(j, v)...)
		} else {
			all = append(all, Access{accessField, name + "." + field.Name})
		}
	}
	return all
}

// asked is everything in a configuration that is not harmless.
func (sp *Spec) asked(j judge) []Access {
	all := slices.Concat(hostRules.asked(j, "HostConfig", sp.Host), configRules.asked(j, "Config", sp.Config))
	for _, name := range sp.NetworkNames() {
		all = append(all, j.network(name)...)
		all = append(all, endpointRules.asked(j, "EndpointSettings", *sp.Endpoints[name])...)
	}
	return all
}

// newVolume judges a volume that would be made.
func (j judge) newVolume(v volume.CreateOptions) []Access {
	all := j.volumeDriver(v.Driver, v.DriverOpts)
	if slices.Contains(j.reserved, v.Name) || !labels.IsContainerName(v.Name) { // the engine has one grammar for both
		all = append(all, Access{accessVolume, v.Name})
	}
	return all
}

// volume judges a volume that is mounted, or restored into. What a container has
// that the user wants replaced is the user's to give.
func (j judge) volume(name string) []Access {
	isReserved := slices.Contains(j.reserved, name)
	if !isReserved && (j.made[name] || j.absent[name] || j.replaced[name]) {
		return nil
	}
	return []Access{{accessVolume, name}}
}

// ForgetForeign takes out of a foreign snapshot's configuration what has no meaning
// here: the users' policies of another engine, and its lists of the paths that are
// hidden from containers. This engine has its own, unless something is missing in them.
// own are the labels that this engine's user asked for.
func (sp *Spec) ForgetForeign(own map[string]string) {
	maps.DeleteFunc(sp.Config.Labels, func(key, _ string) bool {
		_, isOwn := own[key]
		return strings.HasPrefix(key, labels.PrefixPolicy) && !isOwn
	})
	if hidesAll(sp.Host.MaskedPaths, alwaysMasked) && hidesAll(sp.Host.ReadonlyPaths, alwaysReadonly) {
		sp.Host.MaskedPaths, sp.Host.ReadonlyPaths = nil, nil
	}
}

// ForeignProblems are what a foreign snapshot asks for as a copy, and is not allowed.
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

// ForeignProblemsInPlace are what a foreign snapshot asks for in the place of old, and is not
// allowed.
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
		if v.Exists {
			asked = append(asked, j.volume(v.Create.Name)...)
			continue
		}
		j.made[v.Create.Name] = true
		asked = append(asked, j.newVolume(v.Create)...)
	}
	return o.accessProblems(append(asked, sp.asked(j)...))
}
