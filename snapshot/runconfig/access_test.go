package runconfig

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"gotest.tools/v3/assert"
)

// assertRulesKnow checks that every field of a T is in one of the two lists.
func assertRulesKnow[T any](t *testing.T, r rules[T]) {
	t.Helper()
	known := slices.Concat(r.harmless, slices.Collect(maps.Keys(r.judged)))
	slices.Sort(known)
	var fields []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if !field.Anonymous {
			fields = append(fields, field.Name)
		}
	}
	slices.Sort(fields)
	assert.DeepEqual(t, known, fields)
}

// A field that a later version of the API adds makes this fail until it is in one of the two lists.
// Until then the field asks for access.
func TestEveryFieldIsJudged(t *testing.T) {
	assertRulesKnow(t, configRules)
	assertRulesKnow(t, hostRules)
	assertRulesKnow(t, endpointRules)
	assertRulesKnow(t, mountRules)
	assertRulesKnow(t, bindOptionRules)
	assertRulesKnow(t, volumeOptionRules)
	assertRulesKnow(t, driverRules)
	assertRulesKnow(t, imageOptionRules)
	assertRulesKnow(t, tmpfsOptionRules)
	assertRulesKnow(t, rules[mount.ClusterOptions]{})
	assertRulesKnow(t, rules[container.LogConfig]{harmless: []string{"Config", "Type"}}) // judged as a whole
	assertRulesKnow(t, rules[network.EndpointIPAMConfig]{harmless: []string{"IPv4Address", "IPv6Address", "LinkLocalIPs"}})
}

func TestAFieldThatNobodyKnowsIsAskedFor(t *testing.T) {
	type invented struct{ Known, Later, Empty string }
	r := rules[invented]{harmless: []string{"Known"}}
	assert.DeepEqual(t, r.asked(judge{}, "Config", invented{Known: "a", Later: "b"}), []Access{{accessField, "Config.Later"}})
}

func TestEveryKindOfAccessIsExplained(t *testing.T) {
	seen := map[AccessKind]bool{}
	for _, info := range AccessKinds() {
		assert.Assert(t, info.Means != "" && !seen[info.Kind], info.Kind)
		seen[info.Kind] = true
		parsed, err := ParseAccess(string(info.Kind) + "=a=b")
		assert.NilError(t, err)
		assert.Equal(t, parsed, Access{info.Kind, "a=b"})
		assert.Equal(t, parsed.String(), string(info.Kind)+"=a=b")
	}
	_, err := ParseAccess("everything")
	assert.ErrorContains(t, err, `unknown kind of access "everything"`)
}

func TestWhatIsAllowedCoversWhatIsAskedFor(t *testing.T) {
	for _, test := range []struct {
		allowed, asked string
		want           bool
	}{
		{"privileged", "privileged", true},
		{"privileged", "bind=/", false},
		{"bind", "bind=/anything", true},
		{"bind=/srv", "bind=/srv", true},
		{"bind=/srv/", "bind=/srv/app", true},
		{"bind=/srv", "bind=/srvx", false},
		{"bind=/srv/app", "bind=/srv", false},
		{"bind=/", "bind=/etc", true},
		{"bind=/srv", "bind=/srv/link/../../etc", false},
		{"bind=/srv", "bind=/srv/link/..", false},
		{"bind=srv", "bind=/srv", false},
		{"device=/dev/bus", "device=/dev/bus/usb", true},
		{"volume=data", "volume=data", true},
		{"volume=data", "volume=database", false},
		{"volume=/a", "volume=/a/b", false},
		{"cap-add=SYS_ADMIN", "cap-add=NET_ADMIN", false},
		{"gpus=nvidia", "gpus", false},
	} {
		allowed, err := ParseAccess(test.allowed)
		assert.NilError(t, err)
		asked, err := ParseAccess(test.asked)
		assert.NilError(t, err)
		assert.Equal(t, allowed.covers(asked), test.want, "%s %s", test.allowed, test.asked)
	}
}

// An engine with cgroup v1 gives the host's cgroups to every container, and reports that as if
// somebody had asked for it.
func TestHostCgroupsAreAPowerOnlyWhereTheyAreNotTheRule(t *testing.T) {
	old := judge{info: system.Info{SecurityOptions: []string{"name=seccomp,profile=default"}}}
	assert.Equal(t, len(old.cgroupns("host")), 0)
	current := judge{info: system.Info{SecurityOptions: []string{"name=seccomp,profile=builtin", "name=cgroupns"}}}
	assert.DeepEqual(t, current.cgroupns("host"), []Access{{accessCgroupns, "host"}})
}

// The defaults of this engine give a container no more than others have.
func TestTheEnginesOwnDefaultsAreHarmless(t *testing.T) {
	j := judge{info: system.Info{DefaultRuntime: "kata", LoggingDriver: "journald"}}
	assert.Equal(t, len(j.runtime("kata"))+len(j.runtime("runc")), 0)
	assert.DeepEqual(t, j.runtime("runsc"), []Access{{accessRuntime, "runsc"}})
	assert.Equal(t, len(j.logging(container.LogConfig{Type: "journald"})), 0)
	assert.DeepEqual(t, j.logging(container.LogConfig{Type: "journald", Config: map[string]string{"tag": "kernel"}}), []Access{{accessLogDriver, "journald"}})
}

// The paths that engines hide differ from version to version: a foreign container
// gets those of this engine.
func TestHiddenPathsAreTheEnginesOwn(t *testing.T) {
	whole := Spec{Host: container.HostConfig{MaskedPaths: append(slices.Clone(alwaysMasked), "/proc/more"), ReadonlyPaths: slices.Clone(alwaysReadonly)}}
	whole.ForgetForeign(nil)
	assert.Assert(t, whole.Host.MaskedPaths == nil && whole.Host.ReadonlyPaths == nil)
	partial := Spec{Host: container.HostConfig{MaskedPaths: []string{"/proc/kcore"}, ReadonlyPaths: slices.Clone(alwaysReadonly)}}
	partial.ForgetForeign(nil)
	assert.DeepEqual(t, partial.asked(judge{}), []Access{{accessSecurity, "systempaths=unconfined"}})
}
