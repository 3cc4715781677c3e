package snapshot

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// withBinds is an engine with a container web that has bind mounts in every form,
// of which there is a snapshot web:one.
func withBinds(t *testing.T, own map[string]string) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	for _, path := range []string{"/srv/a", "/srv/b", "/srv/c"} {
		docker.HostPaths[path] = true
	}
	docker.Create(t, "web", &container.Config{Labels: own}, &container.HostConfig{
		Binds: []string{"data:/data", "/srv/a:/a:rw,z,rslave", "/srv/b:/b:ro"},
		Mounts: []mount.Mount{
			{Type: mount.TypeBind, Source: "/srv/c", Target: "/c", BindOptions: &mount.BindOptions{Propagation: mount.PropagationRShared, NonRecursive: true}},
			{Type: mount.TypeVolume, Source: "more", Target: "/more"},
			{Type: mount.TypeVolume, Target: "/anonymous"},
		},
	})
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	return docker
}

func TestCreateSaysThatBindMountsAreNotInTheSnapshot(t *testing.T) {
	var got enginetest.Events
	_, err := engineOf(withBinds(t, nil)).Create(t.Context(), capture.Options{Container: "web"}, got.Progress)
	assert.NilError(t, err)
	assert.DeepEqual(t, got.Notes(), []string{
		"bind mount /srv/a on /a: its content is not in the snapshot, and not portable",
		"bind mount /srv/b on /b: its content is not in the snapshot, and not portable",
		"bind mount /srv/c on /c: its content is not in the snapshot, and not portable",
	})
}

// What a copy writes must not reach the original's data.
func TestACopyMayOnlyReadBindMounts(t *testing.T) {
	for _, tc := range []struct {
		choice runconfig.CopyBinds
		binds  []string
		mounts []bool // read-only, of the bind mounts in that form
		notes  []string
	}{
		{"", []string{"/srv/a:/a:z,rslave,ro", "/srv/b:/b:ro"}, []bool{true}, []string{
			"bind mount /srv/a on /a: its content is not in the snapshot; it is read-only in the copy",
			"bind mount /srv/b on /b: its content is not in the snapshot",
			"bind mount /srv/c on /c: its content is not in the snapshot; it is read-only in the copy",
		}},
		{runconfig.BindsShared, []string{"/srv/a:/a:rw,z,rslave", "/srv/b:/b:ro"}, []bool{false}, []string{
			"bind mount /srv/a on /a: its content is not in the snapshot; the copy writes to the same files as the original",
			"bind mount /srv/b on /b: its content is not in the snapshot",
			"bind mount /srv/c on /c: its content is not in the snapshot; the copy writes to the same files as the original",
		}},
		{runconfig.BindsNone, nil, nil, []string{
			"bind mount /srv/a on /a: its content is not in the snapshot; the copy does not have it",
			"bind mount /srv/b on /b: its content is not in the snapshot; the copy does not have it",
			"bind mount /srv/c on /c: its content is not in the snapshot; the copy does not have it",
		}},
	} {
		t.Run("--binds "+string(tc.choice), func(t *testing.T) {
			docker := withBinds(t, nil)
			var got enginetest.Events
			o := runconfig.RestoreOptions{Snapshot: "web:one", Binds: tc.choice, DryRun: true}
			_, err := engineOf(docker).Restore(t.Context(), o, got.Progress)
			assert.NilError(t, err)
			assert.DeepEqual(t, got.Notes(), tc.notes)

			got = enginetest.Events{}
			o.DryRun = false
			restored, err := engineOf(docker).Restore(t.Context(), o, got.Progress)
			assert.NilError(t, err)
			assert.DeepEqual(t, got.Notes(), tc.notes)
			host := docker.FindContainer(restored.ContainerID).Host
			var binds []string
			var mounts []bool
			for _, text := range host.Binds {
				if strings.HasPrefix(text, "/") {
					binds = append(binds, text)
				} else {
					assert.Assert(t, strings.HasSuffix(text, ":/data"), text)
				}
			}
			for _, m := range host.Mounts {
				if m.Type == mount.TypeBind {
					mounts = append(mounts, m.ReadOnly)
					assert.DeepEqual(t, m.BindOptions, &mount.BindOptions{Propagation: mount.PropagationRShared, NonRecursive: true})
				} else {
					assert.Assert(t, !m.ReadOnly, m.Target)
				}
			}
			assert.DeepEqual(t, binds, tc.binds)
			assert.DeepEqual(t, mounts, tc.mounts)
		})
	}
}

func TestReplaceKeepsBindMountsAndSaysSo(t *testing.T) {
	docker := withBinds(t, nil)
	before := docker.FindContainer("web").Host
	var got enginetest.Events
	_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), got.Progress)
	assert.NilError(t, err)
	assert.DeepEqual(t, got.Notes(), []string{
		"bind mount /srv/a on /a: its content is not in the snapshot and stays as it is",
		"bind mount /srv/b on /b: its content is not in the snapshot and stays as it is",
		"bind mount /srv/c on /c: its content is not in the snapshot and stays as it is",
	})
	after := docker.FindContainer("web").Host
	assert.DeepEqual(t, after.Binds[1:3], before.Binds[1:3])
	assert.DeepEqual(t, after.Mounts[0], before.Mounts[0])
}

// Who knows of the bind mounts says so once, on the container.
func TestAPolicySilencesTheNotesAboutBindMounts(t *testing.T) {
	docker := withBinds(t, map[string]string{labels.KeyPolicyBinds: labels.PolicyBindsKnown})
	var got enginetest.Events
	_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, got.Progress)
	assert.NilError(t, err)
	restored, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one"}, got.Progress)
	assert.NilError(t, err)
	_, err = engineOf(docker).Replace(t.Context(), replaceOptions(), got.Progress)
	assert.NilError(t, err)
	assert.DeepEqual(t, got.Notes(), []string{})
	for _, name := range []string{restored.ContainerID, "web"} {
		assert.Equal(t, docker.FindContainer(name).Config.Labels[labels.KeyPolicyBinds], labels.PolicyBindsKnown)
	}

	docker.About.ID, docker.Randomness = "another", 200
	_, err = engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one", Name: "stranger", AllowHostAccess: true}, got.Progress)
	assert.NilError(t, err)
	assert.DeepEqual(t, got.Notes(), []string{ // a stranger silences nothing
		"bind mount /srv/a on /a: its content is not in the snapshot; it is read-only in the copy; on this engine, its content may be another one",
		"bind mount /srv/b on /b: its content is not in the snapshot; on this engine, its content may be another one",
		"bind mount /srv/c on /c: its content is not in the snapshot; it is read-only in the copy; on this engine, its content may be another one",
	})
}
