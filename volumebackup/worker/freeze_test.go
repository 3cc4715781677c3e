//go:build linux

package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/errdefs"
	"gotest.tools/v3/assert"
)

// TestFreeze gives the worker control groups as engines make them. Files stand for the kernel's.
func TestFreeze(t *testing.T) {
	id, other := strings.Repeat("a1", 32), strings.Repeat("b2", 32)
	for _, tc := range []struct {
		name, group    string
		version        string
		frozen, thawed string // what the group's file holds then
	}{
		{"version 1", "freezer/docker/" + id, "v1", "FROZEN", "THAWED"},
		{"version 1, systemd", "freezer/system.slice/docker-" + id + ".scope", "v1", "FROZEN", "THAWED"},
		{"version 1, a parent of the user's", "freezer/theirs/deep/" + id, "v1", "FROZEN", "THAWED"},
		{"version 2", "docker/" + id, "v2", "1", "0"},
		{"version 2, systemd", "system.slice/docker-" + id + ".scope", "v2", "1", "0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			root := filepath.Join(w.mnt, "cgroup")
			file := map[string]string{"v1": "freezer.state", "v2": "cgroup.freeze"}[tc.version]
			ours := filepath.Join(root, tc.group)
			theirs := filepath.Join(filepath.Dir(ours), strings.ReplaceAll(filepath.Base(ours), id, other))
			for _, group := range []string{ours, theirs} {
				assert.NilError(t, os.MkdirAll(group, 0o755))
				assert.NilError(t, os.WriteFile(filepath.Join(group, file), []byte("as it was"), 0o600))
				assert.NilError(t, os.WriteFile(filepath.Join(group, "cgroup.events"), []byte("populated 1\nfrozen 0\nfrozen 1\n"), 0o600))
			}
			if tc.version == "v1" { // both versions are mounted, as systemd does
				unified := filepath.Join(root, "unified/docker", id)
				assert.NilError(t, os.MkdirAll(unified, 0o755))
				assert.NilError(t, os.WriteFile(filepath.Join(unified, "cgroup.freeze"), []byte("0"), 0o600))
			}
			c := w.connect()
			for frozen, want := range map[bool]string{true: tc.frozen, false: tc.thawed} {
				assert.NilError(t, c.Freeze(t.Context(), id, frozen))
				now, err := os.ReadFile(filepath.Join(ours, file))
				assert.NilError(t, err)
				assert.Equal(t, string(now), want)
			}
			kept, err := os.ReadFile(filepath.Join(theirs, file))
			assert.NilError(t, err)
			assert.Equal(t, string(kept), "as it was")
			if tc.version == "v1" {
				kept, err := os.ReadFile(filepath.Join(root, "unified/docker", id, "cgroup.freeze"))
				assert.NilError(t, err)
				assert.Equal(t, string(kept), "0")
			}
			assert.Assert(t, errdefs.IsNotFound(c.Freeze(t.Context(), strings.Repeat("c3", 32), true)))
			for _, bad := range []string{"", "web", id[:12], strings.ToUpper(id), "../" + id[3:]} {
				assert.Assert(t, errdefs.IsInvalidArgument(c.Freeze(t.Context(), bad, true)), bad)
			}
		})
	}
}

// TestFreezeThatFails has a kernel that never shows the processes as frozen. They run again, at times and in the end.
func TestFreezeThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := t.TempDir()
		assert.NilError(t, os.WriteFile(filepath.Join(group, "cgroup.events"), []byte("populated 1\nfrozen 0\n"), 0o600))
		file := filepath.Join(group, "cgroup.freeze")
		assert.NilError(t, os.WriteFile(file, []byte("0"), 0o600))
		order := func() string {
			now, err := os.ReadFile(file)
			assert.NilError(t, err)
			return string(now)
		}
		rested, done := 0, make(chan struct{})
		go func() {
			for last := "0"; ; {
				select {
				case <-done:
					return
				case <-time.After(freezePoll / 2):
				}
				if was := last; was != order() {
					last = order()
					if last == "0" {
						rested++
					}
				}
			}
		}()
		err := freezers[1].set(t.Context(), group, true)
		close(done)
		assert.ErrorContains(t, err, "the kernel does not make it frozen 1")
		assert.Equal(t, order(), "0")
		assert.Assert(t, rested > 1, rested)
	})
}
