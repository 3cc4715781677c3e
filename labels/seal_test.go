package labels_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

var key = []byte("the key of an engine")

func sealed(t *testing.T) labels.Record {
	t.Helper()
	r := full()
	r.Description = "not UTF-8: \xff\xfe!"
	seal, err := labels.Seal(r, key)
	assert.NilError(t, err)
	r.Seal = seal
	return r
}

// An engine keeps labels as JSON, in which every byte that is no UTF-8 is replaced.
func TestASealOutlivesTheWayThroughAnEngine(t *testing.T) {
	r := sealed(t)
	assert.Assert(t, labels.IsSealed(r, key))
	image, err := labels.Encode(r)
	assert.NilError(t, err)
	for name, value := range image {
		image[name] = string([]rune(value))
	}
	decoded, err := labels.Decode(image)
	assert.NilError(t, err)
	assert.Assert(t, labels.IsSealed(decoded, key))
	assert.Assert(t, !labels.IsSealed(decoded, []byte("another key")))
	decoded.Seal = ""
	assert.Assert(t, !labels.IsSealed(decoded, key))
}

// Whatever is changed, the seal is broken.
func TestASealCoversEveryLabel(t *testing.T) {
	image, err := labels.Encode(sealed(t))
	assert.NilError(t, err)
	changes := map[string]string{
		labels.KeyConfig: `{"Config":{},"HostConfig":{"Privileged":true}}`, labels.KeyMounts: "", labels.KeyTags: "", labels.KeyAttachments: "",
		labels.KeyID: "20260131-235959-0a1b2d", labels.KeyCreated: "2026-01-31T23:59:58Z", labels.KeyExpires: "", labels.KeyPinned: "",
		labels.KeyTrigger: "manual", labels.KeyParent: "", labels.KeyName: "other", labels.KeyContainerState: "running", labels.KeyContainerHealth: "healthy", labels.KeySize: "1",
		labels.KeyContainerID: strings.Repeat("cd", 32), labels.KeyNumber: "4", labels.KeyUsage: "0.92", labels.KeyUsageLow: "", labels.KeyUpdated: "", labels.KeyFormer: "", labels.KeyRestores: "", labels.KeyWhiteouts: "", labels.KeyScope: `{"undo":true}`,
	}
	for _, name := range slices.Sorted(maps.Keys(image)) {
		if name == labels.KeyVersion {
			continue
		}
		changed := maps.Clone(image)
		value, ok := changes[name]
		if !ok {
			value = "a" + image[name]
		}
		changed[name] = value
		decoded, err := labels.Decode(changed)
		if name == labels.KeyKind || name == labels.KeyLine { // a container's snapshot can have no other
			assert.Assert(t, err != nil, name)
			continue
		}
		assert.NilError(t, err, name)
		assert.Assert(t, !labels.IsSealed(decoded, key), name)
	}
	added := maps.Clone(image)
	added[labels.PrefixMeta+"more"] = "x"
	decoded, err := labels.Decode(added)
	assert.NilError(t, err)
	assert.Assert(t, !labels.IsSealed(decoded, key))
}

func TestUsersLabels(t *testing.T) {
	all := map[string]string{"a": "1", "cua.snapshotted": "2", labels.KeyID: "3", "cua.snapshot.worker.replace": "4", "cua.snapshot.policy.binds": "known"}
	assert.Equal(t, fmt.Sprint(labels.Users(all)), "map[a:1 cua.snapshot.policy.binds:known cua.snapshotted:2]")
	assert.Equal(t, len(all), 5)
	assert.Assert(t, labels.Users(nil) == nil)
}
