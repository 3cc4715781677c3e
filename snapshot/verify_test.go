package snapshot

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/verify"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// What is wrong with a snapshot is found, and told where. Verifying changes nothing.
func TestVerifyFindsWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(docker *enginetest.Docker, s catalog.Snapshot)
		verdict verify.Verdict
		where   string
		quick   bool
	}{
		"nothing":          {func(*enginetest.Docker, catalog.Snapshot) {}, verify.OK, "", false},
		"nothing, quickly": {func(*enginetest.Docker, catalog.Snapshot) {}, verify.OK, "", true},
		"a label was changed": {func(docker *enginetest.Docker, s catalog.Snapshot) {
			docker.FindImage(s.ImageID).Config.Labels[labels.KeyDescription] = "x"
		}, verify.Damaged, "labels", true},
		"the labels cannot be read": {func(docker *enginetest.Docker, s catalog.Snapshot) {
			docker.FindImage(s.ImageID).Config.Labels[labels.KeyMounts] = "{"
		}, verify.Damaged, "labels", true},
		"the tag is on an image of something else": {func(docker *enginetest.Docker, s catalog.Snapshot) {
			was := docker.FindImage(s.ImageID)
			docker.AddImage("", &container.Config{}).Tags, was.Tags = was.Tags, nil
		}, verify.Damaged, "image", true},
		"the tag is on an image that was built of it": {func(docker *enginetest.Docker, s catalog.Snapshot) {
			was := docker.FindImage(s.ImageID)
			docker.AddImage("", was.Config).Tags, was.Tags = was.Tags, nil
		}, verify.Damaged, "image", true},
		"the store is gone": {func(docker *enginetest.Docker, _ catalog.Snapshot) {
			docker.Volumes = slices.DeleteFunc(docker.Volumes, func(v *enginetest.FakeVolume) bool { return v.Name == volumebackup.DefaultStore })
		}, verify.Incomplete, "volumes", true},
		"an archive is missing": {func(docker *enginetest.Docker, s catalog.Snapshot) {
			delete(docker.Service.Archives, string(s.ID))
		}, verify.Incomplete, "volume data", true},
		"a piece has rotted": {func(docker *enginetest.Docker, s catalog.Snapshot) {
			docker.Service.Damages[string(s.ID)] = []volumebackup.Damage{{Snapshot: string(s.ID), Path: "file", Message: "it has rotted"}}
		}, verify.Damaged, "volume data", false},
	} {
		t.Run(name, func(t *testing.T) {
			docker := enginetest.New()
			_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: volumebackup.DefaultStore, Labels: map[string]string{labels.KeyStoreID: "one"}})
			assert.NilError(t, err)
			docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
			made := snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
			tc.change(docker, made)
			before := docker.World()
			for _, words := range [][]string{{made.Ref()}, {string(made.ID)}, nil} {
				report, err := engineOf(docker).Verify(t.Context(), verify.Options{Words: words, Quick: tc.quick}, nil)
				assert.NilError(t, err)
				assert.Assert(t, is.Len(report.Results, 1))
				assert.Equal(t, report.Results[0].Verdict(), tc.verdict, "%v", report.Results[0].Findings)
				if tc.where != "" {
					assert.Equal(t, report.Results[0].Findings[0].Where, tc.where)
				}
			}
			assert.Equal(t, docker.World(), before)
		})
	}
}

// A tag of a snapshot that is on the image of another one is found, whichever of the two is asked for.
func TestVerifyFindsTheTagOfAnotherSnapshot(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	one := snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	two := snapshotOf(t, docker, capture.Options{Container: "web", Name: "two"})
	assert.NilError(t, docker.ImageTag(t.Context(), one.ImageID, two.Ref()))
	for _, words := range [][]string{{two.Ref()}, {string(two.ID)}, nil} {
		report, err := engineOf(docker).Verify(t.Context(), verify.Options{Words: words}, nil)
		assert.NilError(t, err)
		at := slices.IndexFunc(report.Results, func(r verify.Result) bool { return r.Verdict() != verify.OK })
		assert.Assert(t, at >= 0, "%v", report.Results)
		assert.DeepEqual(t, report.Results[at].Findings, []verify.Finding{{Where: "image", Text: catalog.ErrDisplaced.Error()}})
	}
	report, err := engineOf(docker).Verify(t.Context(), verify.Options{Words: []string{"web:one"}}, nil)
	assert.NilError(t, err)
	assert.Equal(t, report.Results[0].Verdict(), verify.OK)
}

// A record that has rotted is found, and written anew from the labels.
func TestVerifyMendsTheRecordInTheStore(t *testing.T) {
	docker := enginetest.New()
	_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: volumebackup.DefaultStore, Labels: map[string]string{labels.KeyStoreID: "one"}})
	assert.NilError(t, err)
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
	s := snapshotOf(t, docker, capture.Options{Container: "web"})
	record := docker.Service.Origins[string(s.ID)].Labels
	record[labels.KeyDescription] = "x"
	report, err := engineOf(docker).Verify(t.Context(), verify.Options{Words: []string{"web"}}, nil)
	assert.NilError(t, err)
	assert.DeepEqual(t, report.Results[0].Findings, []verify.Finding{{Where: "record", Text: "its record is wrong; it was written anew from the labels"}})
	report, err = engineOf(docker).Verify(t.Context(), verify.Options{Words: []string{"web"}}, nil)
	assert.NilError(t, err)
	assert.Equal(t, report.Results[0].Verdict(), verify.OK)
}

// A name that only docker image rm took away is still in labels and record.
func TestARecordWithALostNameIsWhole(t *testing.T) {
	docker := withData(t, "web")
	_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: volumebackup.DefaultStore, Labels: map[string]string{labels.KeyStoreID: "one"}})
	assert.NilError(t, err)
	s := snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	whole := func() {
		t.Helper()
		report, err := engineOf(docker).Verify(t.Context(), verify.Options{Words: []string{string(s.ID)}}, nil)
		assert.NilError(t, err)
		assert.Equal(t, len(report.Results[0].Findings), 0, "%v", report.Results[0].Findings)
	}
	_, err = docker.ImageRemove(t.Context(), "cua-snapshot/web:one", image.RemoveOptions{})
	assert.NilError(t, err)
	whole()
	_, err = engineOf(docker).Annotate(t.Context(), capture.Annotation{Snapshot: string(s.ID), Description: new("x")}, nil)
	assert.NilError(t, err)
	whole()
}

// What is removed, or annotated, while all are verified is no damage.
func TestVerifyLeavesOutWhatIsRemovedMeanwhile(t *testing.T) {
	for name, meanwhile := range map[string]func(*Engine) error{
		"removed": func(e *Engine) error {
			return e.Remove(t.Context(), []string{"web:one"}, removal.Options{}, nil)[0].Err
		},
		"annotated": func(e *Engine) error {
			description := "more"
			_, err := e.Annotate(t.Context(), capture.Annotation{Snapshot: "web:one", Description: &description}, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			docker := enginetest.New()
			_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: volumebackup.DefaultStore, Labels: map[string]string{labels.KeyStoreID: "one"}})
			assert.NilError(t, err)
			docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
			snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
			snapshotOf(t, docker, capture.Options{Container: "web", Name: "two"})
			docker.ForgetCalls()
			docker.Before("ImageInspect", 0, func() { assert.NilError(t, meanwhile(engineOf(docker))) })
			report, err := engineOf(docker).Verify(t.Context(), verify.Options{}, nil)
			assert.NilError(t, err)
			for _, r := range report.Results {
				assert.Equal(t, r.Verdict(), verify.OK, "%v", r.Findings)
			}
			assert.Equal(t, len(report.Results), map[string]int{"removed": 1, "annotated": 2}[name])
		})
	}
}

// withoutLayer is an engine that has lost a layer.
type withoutLayer struct{ *enginetest.Docker }

func (withoutLayer) ContainerCreate(context.Context, *container.Config, *container.HostConfig, *network.NetworkingConfig, *ocispec.Platform, string) (container.CreateResponse, error) {
	return container.CreateResponse{}, errors.New("layer does not exist")
}

func TestVerifyFindsAMissingLayer(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	engine := engineThrough(docker, withoutLayer{docker})
	for quick, want := range map[bool]verify.Verdict{false: verify.Damaged, true: verify.OK} {
		report, err := engine.Verify(t.Context(), verify.Options{Words: []string{"web:one"}, Quick: quick}, nil)
		assert.NilError(t, err)
		assert.Equal(t, report.Results[0].Verdict(), want)
	}
}

func TestVerifyOfAWordThatNamesNothing(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	report, err := engineOf(docker).Verify(t.Context(), verify.Options{Words: []string{"gone", "web:one"}}, nil)
	assert.NilError(t, err)
	assert.ErrorContains(t, report.Results[0].Err, "no such snapshot: gone")
	assert.Equal(t, report.Results[1].Verdict(), verify.OK)
}
