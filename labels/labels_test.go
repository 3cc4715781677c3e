package labels_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// full has a value in every field.
func full() labels.Record {
	return labels.Record{
		ID:          "20260131-235959-0a1b2c",
		Name:        "before-upgrade",
		Description: "<b>line one</b>\nline two \U0001f4be",
		Created:     time.Date(2026, 1, 31, 23, 59, 59, 123456789, time.UTC),
		Tags:        []string{"db", "a=b,c", ""},
		Trigger:     labels.TriggerBeforeAction,
		RunID:       "run-7",
		StepID:      "step-3",
		Number:      new(3),
		Parent:      "20260131-225959-ffffff",
		Store:       "cua-snapshots",
		StoreID:     "CWTDJ7GZ2LXU3E5SCN2EVY6A4M",
		Group:       "shop",
		Container: labels.Container{
			ID:      strings.Repeat("ab", 32),
			Name:    "Shop_db.1",
			State:   labels.StatePaused,
			Health:  labels.HealthUnhealthy,
			Image:   "postgres:17",
			ImageID: "sha256:" + strings.Repeat("cd", 32),
		},
		EngineID: "7f9c2ba4-e88f-4ad5-b8b1-0b1b1c9a3c11",
		Platform: "linux/arm64/v8",
		Config: labels.Config{
			Config:           json.RawMessage(`{"Cmd":["sh","-c","a<b && c>d"],"NotKnownYet":{"x":1}}`),
			HostConfig:       json.RawMessage(`{"Memory":12345678901234567}`),
			NetworkingConfig: json.RawMessage(`{"EndpointsConfig":{"shop":{"Aliases":["db"]}}}`),
		},
		Mounts: []labels.Mount{
			{
				Type: "volume", Name: "data", Subpath: "pg", Destination: "/var/lib/data", Driver: "local",
				Options: map[string]string{"type": "nfs"}, Labels: map[string]string{"k": "v"}, RW: true, Anonymous: true,
				Archive: &labels.Archive{
					Root: strings.Repeat("0f", 32), Entries: 20000, Bytes: 1 << 40, Stored: 4096, Index: 1,
					Excluded: &labels.Exclusions{
						Patterns: []string{"node_modules", "/a/b/"}, Globs: []string{"*.log"}, Included: []string{"node_modules/own"}, Gitignore: true, Entries: 3,
						Kept: &labels.KeptArchive{Snapshot: "20260101-000000-abcdef", Index: 2, Root: strings.Repeat("3c", 32)},
					},
				},
			},
			{Type: "bind", Source: "/etc/shop", Destination: "/etc/shop", Skipped: "bind mount"},
		},
		Restores:       "20260130-110000-00ab12",
		Scope:          &labels.Scope{Only: []string{"data"}, Paths: []string{"*.conf"}, ReadOnly: []string{"a"}, Live: true, StopOthers: true, Undo: true, Next: "20260130-100000-00ab12"},
		Attachments:    []labels.Attachment{{Name: "log", Bytes: 5, SHA256: strings.Repeat("1", 64), MediaType: "text/plain"}},
		Whiteouts:      []string{"/etc/.wh.passwd"},
		Size:           1 << 33,
		Expires:        time.Date(2027, 2, 1, 0, 0, 0, 1, time.UTC),
		IdempotencyKey: "step 7/ä=1",
		Updated:        time.Date(2026, 2, 1, 0, 0, 0, 7, time.UTC),
		Former:         []string{"sha256:" + strings.Repeat("1e", 32), "sha256:" + strings.Repeat("2e", 32)},
		Pinned:         true,
		Usage:          new(0.91),
		UsageLow:       new(0.5),
		Meta:           map[string]string{"ticket": "OPS-1", "a/b.c-d_e": "spaced value"},
	}
}

// minimal has only what every snapshot has.
func minimal() labels.Record {
	return labels.Record{
		ID:      "20260131-235959-0a1b2c",
		Created: time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC),
		Trigger: labels.TriggerManual,
		Container: labels.Container{
			ID:    strings.Repeat("cd", 32),
			Name:  "web",
			State: labels.StateRunning,
		},
		Config: labels.Config{Config: json.RawMessage(`{}`), HostConfig: json.RawMessage(`{}`)},
	}
}

func TestDecodeReturnsWhatWasEncoded(t *testing.T) {
	for name, record := range map[string]labels.Record{"full": full(), "minimal": minimal()} {
		t.Run(name, func(t *testing.T) {
			encoded, err := labels.Encode(record)
			assert.NilError(t, err)
			decoded, err := labels.Decode(encoded)
			assert.NilError(t, err)
			assert.DeepEqual(t, decoded, record)
		})
	}
}

func TestEncodeWritesEveryKeySoThatNothingInheritedShinesThrough(t *testing.T) {
	older, err := labels.Encode(full())
	assert.NilError(t, err)
	newer, err := labels.Encode(minimal())
	assert.NilError(t, err)
	merged := maps.Clone(older)
	maps.Copy(merged, newer)
	maps.DeleteFunc(merged, func(key, _ string) bool { return strings.HasPrefix(key, labels.PrefixMeta) })

	decoded, err := labels.Decode(merged)

	assert.NilError(t, err)
	assert.DeepEqual(t, decoded, minimal())
}

func TestEncodeKeepsTheEnginesOwnBytes(t *testing.T) {
	encoded, err := labels.Encode(full())
	assert.NilError(t, err)
	assert.Assert(t, strings.Contains(encoded[labels.KeyConfig], `"a<b && c>d"`), encoded[labels.KeyConfig])
}

func TestEncodeRefusesWhatDecodeWould(t *testing.T) {
	tests := map[string]func(*labels.Record){
		"no ID":              func(r *labels.Record) { r.ID = "" },
		"no creation time":   func(r *labels.Record) { r.Created = time.Time{} },
		"year 10000":         func(r *labels.Record) { r.Expires = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"unknown trigger":    func(r *labels.Record) { r.Trigger = "whim" },
		"reserved name":      func(r *labels.Record) { r.Name = labels.Latest },
		"usage in percent":   func(r *labels.Record) { r.Usage = new(91.0) },
		"negative usage":     func(r *labels.Record) { r.UsageLow = new(-0.1) },
		"fall from nowhere":  func(r *labels.Record) { r.Usage = nil },
		"negative size":      func(r *labels.Record) { r.Size = -1 },
		"meta key":           func(r *labels.Record) { r.Meta = map[string]string{"a b": "c"} },
		"broken config":      func(r *labels.Record) { r.Config.Config = json.RawMessage(`{`) },
		"no config":          func(r *labels.Record) { r.Config = labels.Config{} },
		"archive and reason": func(r *labels.Record) { r.Mounts[0].Skipped = "why" },
		"description of 4 MiB": func(r *labels.Record) {
			r.Description = strings.Repeat("x", 4<<20+1)
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			record := full()
			spoil(&record)
			_, err := labels.Encode(record)
			assert.Assert(t, err != nil)
		})
	}
}

func TestDecodeTellsAnAbsentSnapshotFromABrokenOne(t *testing.T) {
	for name, image := range map[string]map[string]string{
		"no labels":         nil,
		"foreign labels":    {"maintainer": "somebody"},
		"only our mark":     {labels.KeyVersion: labels.SchemaVersion},
		"blanked ID":        {labels.KeyVersion: labels.SchemaVersion, labels.KeyID: ""},
		"our other objects": {labels.KeyVersion: labels.SchemaVersion, labels.KeyRestoredFrom: "20260131-235959-0a1b2c"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := labels.Decode(image)
			assert.ErrorIs(t, err, labels.ErrAbsent)
			var field *labels.FieldError
			assert.Assert(t, !errors.As(err, &field))
		})
	}
}

func TestFieldErrorNamesTheLabelAndCutsItsValue(t *testing.T) {
	image, err := labels.Encode(full())
	assert.NilError(t, err)
	image[labels.KeyCreated] = strings.Repeat("y", 1000)

	_, err = labels.Decode(image)

	var field *labels.FieldError
	assert.Assert(t, errors.As(err, &field))
	assert.Equal(t, field.Key, labels.KeyCreated)
	assert.Assert(t, len(field.Value) < 100)
	assert.ErrorContains(t, err, "label cua.snapshot.created=\"yyyy")
	assert.ErrorContains(t, err, "not a time in RFC 3339")
	assert.Assert(t, !errors.Is(err, labels.ErrAbsent))
}

func TestDecodeIgnoresKeysItDoesNotKnow(t *testing.T) {
	image, err := labels.Encode(full())
	assert.NilError(t, err)
	image[labels.Prefix+"invented-later"] = "{"
	image["maintainer"] = "somebody"

	decoded, err := labels.Decode(image)

	assert.NilError(t, err)
	assert.DeepEqual(t, decoded, full())
}

// The fixture is what the first release wrote. It is never changed: every later
// version has to read it.
func TestDecodeReadsSchema1(t *testing.T) {
	raw, err := os.ReadFile("testdata/schema-1.json")
	assert.NilError(t, err)
	var image map[string]string
	assert.NilError(t, json.Unmarshal(raw, &image))

	decoded, err := labels.Decode(image)
	assert.NilError(t, err)

	var config struct{ Image, Hostname string }
	assert.NilError(t, json.Unmarshal(decoded.Config.Config, &config))
	assert.Equal(t, config.Image, "postgres:17")
	assert.Equal(t, config.Hostname, "5c0e4c1f7a3b")
	var host struct {
		Memory        int64
		RestartPolicy struct{ Name string }
	}
	assert.NilError(t, json.Unmarshal(decoded.Config.HostConfig, &host))
	assert.Equal(t, host.Memory, int64(536870912))
	assert.Equal(t, host.RestartPolicy.Name, "unless-stopped")
	var networking struct {
		EndpointsConfig map[string]struct{ Aliases []string }
	}
	assert.NilError(t, json.Unmarshal(decoded.Config.NetworkingConfig, &networking))
	assert.DeepEqual(t, networking.EndpointsConfig["shop_default"].Aliases, []string{"shop-db-1", "db"})

	decoded.Config = labels.Config{} // compared above
	assert.DeepEqual(t, decoded, labels.Record{
		ID:          "20261121-093015-7be41c",
		Name:        "before-upgrade",
		Description: "PostgreSQL 17.2, before the upgrade to 17.4",
		Created:     time.Date(2026, 11, 21, 9, 30, 15, 481516234, time.UTC),
		Tags:        []string{"nightly", "shop"},
		Trigger:     labels.TriggerBeforeAction,
		RunID:       "run-2026-11-21-a",
		StepID:      "upgrade-database",
		Number:      new(7),
		Parent:      "20261120-093012-01f2aa",
		Group:       "shop-before-upgrade",
		Container: labels.Container{
			ID:      "5c0e4c1f7a3b9d2e8f6051c4b7a9d3e2f18c6b5a4d7e9f0312ac4be86d5f7091",
			Name:    "shop-db-1",
			State:   labels.StateRunning,
			Image:   "postgres:17",
			ImageID: "sha256:0a1c3f5e7d9b2846c8e0fa12b4d6587930cbe1a4f7d2956e83b07c49a5f1e2d6",
		},
		EngineID: "c2f1b0de-4f4e-4d0a-9e0e-3b8f6f0a7d51",
		Platform: "linux/amd64",
		Mounts: []labels.Mount{
			{
				Type: "bind", Source: "/srv/shop/init.sql", Destination: "/docker-entrypoint-initdb.d/init.sql",
				Skipped: "bind mount: its content belongs to the host",
			},
			{Type: "tmpfs", Destination: "/run/postgresql", RW: true, Skipped: "tmpfs: its content is in memory"},
			{
				Type: "volume", Name: "8f0c6a1d2b3e4f5061728394a5b6c7d8e9f00112233445566778899aabbccdde", Destination: "/var/lib/backup",
				Driver: "local", Labels: map[string]string{"com.docker.volume.anonymous": ""}, RW: true, Anonymous: true,
				Archive: &labels.Archive{Root: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Entries: 1, Index: 1},
			},
			{
				Type: "volume", Name: "shop_data", Subpath: "pg17", Destination: "/var/lib/postgresql/data",
				Driver: "local", Options: map[string]string{"o": "noatime"}, Labels: map[string]string{"com.docker.compose.volume": "data"}, RW: true,
				Archive: &labels.Archive{
					Root: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", Entries: 1284, Bytes: 48234496, Stored: 1179648,
				},
			},
		},
		Attachments: []labels.Attachment{{
			Name: "run.log", Bytes: 2048, SHA256: "486ea46224d1bb4fb680f34f7c9ad96a8f24ec88be73ea8e5a6c65260e9cb8a7", MediaType: "text/plain",
		}},
		Store:   "cua-snapshots",
		StoreID: "7XK2VGQH4ZJ5RTD3MWN6PBLCYA",
		Size:    73728,
		Expires: time.Date(2026, 12, 21, 9, 30, 15, 0, time.UTC),
		Pinned:  true,
		Meta:    map[string]string{"ticket": "OPS-4711", "ci/commit": "9b2f6e1"},
	})
}

func TestTriggersListsEachOnce(t *testing.T) {
	all := labels.Triggers()
	assert.Equal(t, len(slices.Compact(slices.Sorted(slices.Values(all)))), 10)
	for _, trigger := range all {
		record := minimal()
		record.Trigger = trigger
		_, err := labels.Encode(record)
		assert.NilError(t, err)
	}
}

func ExampleDecode() {
	image := map[string]string{
		"cua.snapshot.version":         "1",
		"cua.snapshot.id":              "20261121-093015-7be41c",
		"cua.snapshot.name":            "before-upgrade",
		"cua.snapshot.created":         "2026-11-21T09:30:15Z",
		"cua.snapshot.trigger":         "manual",
		"cua.snapshot.container.id":    strings.Repeat("5c", 32),
		"cua.snapshot.container.name":  "db",
		"cua.snapshot.container.state": "running",
		"cua.snapshot.config":          `{"Config": {}, "HostConfig": {}}`,
		"cua.snapshot.size":            "4096",
	}
	record, err := labels.Decode(image)
	fmt.Println(record.ID, record.Name, record.Container.Name, err)

	image["cua.snapshot.id"] = "../../etc"
	_, err = labels.Decode(image)
	fmt.Println(err)

	_, err = labels.Decode(map[string]string{"maintainer": "somebody"})
	fmt.Println(errors.Is(err, labels.ErrAbsent))
	// Output:
	// 20261121-093015-7be41c before-upgrade db <nil>
	// label cua.snapshot.id="../../etc": "../../etc" is not a snapshot ID
	// true
}

func TestGrammars(t *testing.T) {
	for word, want := range map[string]bool{
		"a": true, "A_b.C-1": true, "_x": true, strings.Repeat("a", 128): true,
		"": false, ".a": false, "-a": false, "a/b": false, "a\n": false, strings.Repeat("a", 129): false,
	} {
		assert.Equal(t, labels.IsTag(word), want, "%q", word)
	}
	for word, want := range map[string]bool{"a": true, "0_.-": true, "": false, "_a": false, "a b": false, "a\n": false} {
		assert.Equal(t, labels.IsContainerName(word), want, "%q", word)
	}
	for word, want := range map[string]bool{"012345abcdef": true, "012345abcde": false, "012345ABCDEF": false, strings.Repeat("0", 65): false, "": false} {
		assert.Equal(t, labels.IsDigits(word, 12, 64), want, "%q", word)
	}
}
