package snapshot

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
)

func withExclusions(t *testing.T, own map[string]string) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{Labels: own}, &container.HostConfig{Binds: []string{"data:/data", "data:/again", "more:/more"}})
	return docker
}

func TestWhatIsExcludedIsRecorded(t *testing.T) {
	docker := withExclusions(t, map[string]string{labels.KeyPolicyExclude: "cache, *.tmp,,/a/b"})
	o := capture.Options{Container: "web", Exclude: capture.Exclude{Exclusions: labels.Exclusions{
		Patterns: []string{"node_modules"}, Globs: []string{"*.log"}, Included: []string{"keep"}, Gitignore: true,
	}}}
	s := snapshotOf(t, docker, o)
	want := labels.Exclusions{
		Patterns: []string{"node_modules", "cache", "/a/b"}, Globs: []string{"*.log", "*.tmp"}, Included: []string{"keep"}, Gitignore: true,
	}
	for _, v := range docker.Service.Read[string(s.ID)] {
		assert.DeepEqual(t, *v.Excluded, want)
	}
	want.Entries = 7
	for _, m := range s.Mounts {
		assert.DeepEqual(t, *m.Archive.Excluded, want)
	}
}

func TestNothingIsExcludedUnlessSomebodySaysSo(t *testing.T) {
	docker := withExclusions(t, nil)
	s := snapshotOf(t, docker, capture.Options{Container: "web", Exclude: capture.Exclude{Exclusions: labels.Exclusions{Included: []string{"keep"}}}})
	for _, v := range docker.Service.Read[string(s.ID)] {
		assert.Assert(t, v.Excluded == nil)
	}
	assert.Assert(t, s.Mounts[0].Archive.Excluded == nil)
}

func TestABadExclusionChangesNothing(t *testing.T) {
	docker := withExclusions(t, map[string]string{labels.KeyPolicyExclude: "a,../b"})
	before := docker.World()
	_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
	assert.ErrorContains(t, err, "container web: label cua.snapshot.policy.exclude: invalid pattern \"../b\"")
	assert.Equal(t, docker.World(), before)
}

func TestExclusionsDoNotReachTheRootFilesystem(t *testing.T) {
	var got enginetest.Events
	o := capture.Options{Container: "web", Exclude: capture.Exclude{Exclusions: labels.Exclusions{Globs: []string{"*.log"}}}}
	_, err := engineOf(withExclusions(t, nil)).Create(t.Context(), o, got.Progress)
	assert.NilError(t, err)
	assert.DeepEqual(t, got.Notes(), []string{"exclusions cannot apply to the root filesystem: only what is in volumes and in included bind mounts can be left out"})
}

// The safety snapshot has what the restore can change: it leaves out what the restored snapshot left out, and does not
// heed what the container's label leaves out by now.
func TestASafetySnapshotHasWhatTheRestoreCanChange(t *testing.T) {
	for name, excluded := range map[string]labels.Exclusions{
		"with exclusions": {Patterns: []string{"old"}, Gitignore: true}, "without": {},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withExclusions(t, nil)
			one := snapshotOf(t, docker, capture.Options{Container: "web", Name: "one", Exclude: capture.Exclude{Exclusions: excluded}})
			docker.FindContainer("web").Config.Labels = map[string]string{labels.KeyPolicyExclude: "new"}
			done, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
			assert.NilError(t, err)
			read := docker.Service.Read[string(done.Safety.ID)]
			assert.Equal(t, len(read), 2)
			assert.Equal(t, len(docker.Service.Applied), 2)
			for i, v := range read {
				applied := docker.Service.Applied[v.Key]
				if excluded.IsEmpty() {
					assert.Assert(t, v.Excluded == nil && applied.Excluded == nil)
					continue
				}
				left := excluded
				left.Kept = &labels.KeptArchive{Snapshot: one.ID, Index: v.Number, Root: one.Mounts[2*i].Archive.Root}
				assert.DeepEqual(t, *v.Excluded, left)
				assert.DeepEqual(t, *applied.Excluded, *one.Mounts[0].Archive.Excluded)
				assert.Equal(t, done.Safety.Mounts[0].Archive.Excluded.Entries, int64(7))
			}
		})
	}
}
