package enginetest

import (
	"slices"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// tagsOf lists the tags of the images that match a reference filter, by image.
func (c contractEngine) tagsOf(t *testing.T, pattern string) map[string][]string {
	t.Helper()
	list, err := c.ImageList(t.Context(), image.ListOptions{Filters: filters.NewArgs(filters.Arg("reference", pattern))})
	assert.NilError(t, err)
	found := map[string][]string{}
	for _, summary := range list {
		found[summary.ID] = slices.Sorted(slices.Values(summary.RepoTags))
	}
	return found
}

func imageBehaviours() map[string]func(*testing.T, contractEngine) {
	const repository = "cua-snapshot/" + contractPrefix + "a"
	return map[string]func(*testing.T, contractEngine){
		"a reference filter with a repository finds all its tags": func(t *testing.T, c contractEngine) {
			id := c.image(t, repository+":one")
			c.tag(t, id, repository+":two")
			c.image(t, repository+"b:one")
			assert.DeepEqual(t, c.tagsOf(t, repository), map[string][]string{id: {repository + ":one", repository + ":two"}})
		},
		"a reference filter shows only the tags that match": func(t *testing.T, c contractEngine) {
			id := c.image(t, repository+":before-upgrade")
			c.tag(t, id, repository+":latest")
			assert.DeepEqual(t, c.tagsOf(t, "cua-snapshot/*:before-up*"), map[string][]string{id: {repository + ":before-upgrade"}})
		},
		"a reference filter matches by the grammar of path patterns": func(t *testing.T, c contractEngine) {
			id := c.image(t, repository+":v1.2")
			assert.Equal(t, len(c.tagsOf(t, "cua-snapshot/*:v1.2*")), 1)
			assert.Equal(t, len(c.tagsOf(t, "cua-snapshot/*:v1_2*")), 0)
			assert.Assert(t, c.tagsOf(t, "cua-snapshot/*")[id] != nil)
		},
		"tagging moves a tag": func(t *testing.T, c contractEngine) {
			older, newer := c.image(t, repository+":latest"), c.image(t, "")
			c.tag(t, newer, repository+":latest")
			assert.Equal(t, c.inspectImage(t, repository+":latest").ID, newer)
			assert.Equal(t, len(c.inspectImage(t, older).RepoTags), 0)
		},
		"tagging what is not there is a not-found error": func(t *testing.T, c contractEngine) {
			assert.Assert(t, cerrdefs.IsNotFound(c.ImageTag(t.Context(), noImage, repository+":x")))
		},
		"dangling and label together find what has no tag": func(t *testing.T, c contractEngine) {
			c.image(t, repository+":tagged", "LABEL "+contractPrefix+"dangling=yes")
			id := c.image(t, "", "LABEL "+contractPrefix+"dangling=yes")
			c.image(t, "")
			list, err := c.ImageList(t.Context(), image.ListOptions{
				Filters: filters.NewArgs(filters.Arg("dangling", "true"), filters.Arg("label", contractPrefix+"dangling")),
			})
			assert.NilError(t, err)
			assert.Equal(t, len(list), 1)
			assert.Equal(t, list[0].ID, id)
		},
		"an import is untagged and has the comment and labels that were asked for": func(t *testing.T, c contractEngine) {
			id := c.image(t, "", "LABEL cua.snapshot.version=1")
			found := c.inspectImage(t, id)
			assert.Equal(t, found.ID, id)
			assert.Equal(t, found.Comment, "made by the contract suite")
			assert.Equal(t, found.Config.Labels["cua.snapshot.version"], "1")
			assert.Equal(t, len(found.RepoTags), 0)
			assert.Equal(t, len(found.RootFS.Layers), 1)
		},
	}
}

func removeBehaviours() map[string]func(*testing.T, contractEngine) {
	const repository = "cua-snapshot/" + contractPrefix + "r"
	remove := func(t *testing.T, c contractEngine, word string, force bool) error {
		t.Helper()
		_, err := c.ImageRemove(t.Context(), word, image.RemoveOptions{Force: force, PruneChildren: true})
		return err
	}
	return map[string]func(*testing.T, contractEngine){
		"removing a tag leaves the image to its other tags": func(t *testing.T, c contractEngine) {
			id := c.image(t, repository+":one")
			c.tag(t, id, repository+":two")
			assert.NilError(t, remove(t, c, repository+":one", true))
			assert.DeepEqual(t, c.inspectImage(t, id).RepoTags, []string{repository + ":two"})
		},
		"removing the last tag removes the image": func(t *testing.T, c contractEngine) {
			id := c.image(t, repository+":one")
			assert.NilError(t, remove(t, c, repository+":one", true))
			assert.Assert(t, !c.hasImage(t, id))
		},
		"removing by ID with force removes every tag": func(t *testing.T, c contractEngine) {
			id := c.image(t, repository+":one")
			c.tag(t, id, repository+"x:two")
			assert.Assert(t, cerrdefs.IsConflict(remove(t, c, id, false)))
			assert.NilError(t, remove(t, c, id, true))
			assert.Assert(t, !c.hasImage(t, id))
		},
		"removing what is not there is a not-found error": func(t *testing.T, c contractEngine) {
			assert.Assert(t, cerrdefs.IsNotFound(remove(t, c, noImage, true)))
			assert.Assert(t, cerrdefs.IsNotFound(remove(t, c, repository+":never", true)))
		},
		"an untagged image that a container uses is a conflict without force": func(t *testing.T, c contractEngine) {
			id := c.image(t, "")
			c.container(t, "user", &container.Config{Image: id}, &container.HostConfig{})
			assert.Assert(t, cerrdefs.IsConflict(remove(t, c, id, false)))
			assert.Assert(t, c.hasImage(t, id))
		},
		"the image of a running container stays, whatever force": func(t *testing.T, c contractEngine) {
			original := c.running(t, "original")
			made := c.commit(t, original, container.CommitOptions{})
			c.tag(t, made.ID, repository+":busy")
			user := c.container(t, "user", &container.Config{Image: made.ID}, &container.HostConfig{})
			assert.NilError(t, c.ContainerStart(t.Context(), user, container.StartOptions{}))
			assert.Assert(t, cerrdefs.IsConflict(remove(t, c, made.ID, true)))
			assert.Assert(t, c.hasImage(t, made.ID))
			assert.NilError(t, c.forceRemoveContainer(t.Context(), user))
		},
		"of an image and one that stands on it nothing is left when both have lost their tags": func(t *testing.T, c contractEngine) {
			below := c.commit(t, c.container(t, "original", &container.Config{}, &container.HostConfig{}), container.CommitOptions{Comment: "below"})
			c.tag(t, below.ID, repository+":below")
			user := c.container(t, "user", &container.Config{Image: below.ID}, &container.HostConfig{})
			above := c.commit(t, user, container.CommitOptions{Comment: "above"})
			c.tag(t, above.ID, repository+":above")
			assert.NilError(t, c.forceRemoveContainer(t.Context(), user))
			assert.NilError(t, remove(t, c, repository+":below", true))
			assert.Assert(t, c.hasImage(t, above.ID))
			assert.NilError(t, remove(t, c, repository+":above", true))
			assert.Assert(t, !c.hasImage(t, above.ID))
			assert.Assert(t, !c.hasImage(t, below.ID))
		},
		"containers are listed by the image that they were made from": func(t *testing.T, c contractEngine) {
			made := c.commit(t, c.container(t, "original", &container.Config{}, &container.HostConfig{}), container.CommitOptions{})
			user := c.container(t, "user", &container.Config{Image: made.ID}, &container.HostConfig{})
			list, err := c.ContainerList(t.Context(), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("ancestor", made.ID))})
			assert.NilError(t, err)
			assert.Equal(t, len(list), 1)
			assert.Equal(t, list[0].ID, user)
			assert.Equal(t, list[0].ImageID, made.ID)
			assert.Equal(t, dockerop.SummaryName(list[0]), contractPrefix+"user")
		},
	}
}

func commitBehaviours() map[string]func(*testing.T, contractEngine) {
	return map[string]func(*testing.T, contractEngine){
		"a commit is untagged, has its comment, and at most one more layer": func(t *testing.T, c contractEngine) {
			id := c.container(t, "c", &container.Config{}, &container.HostConfig{})
			made := c.commit(t, id, container.CommitOptions{Comment: "docker snapshot x"})
			assert.Equal(t, len(made.RepoTags), 0)
			assert.Equal(t, made.Comment, "docker snapshot x")
			below := c.inspectImage(t, c.inspect(t, id).Image)
			more := len(made.RootFS.Layers) - len(below.RootFS.Layers)
			assert.Assert(t, more == 0 || more == 1, "%d", more)
		},
		"a commit's labels win over the container's, and an empty one stays": func(t *testing.T, c contractEngine) {
			id := c.container(t, "c", &container.Config{Labels: map[string]string{"a": "run", "b": "run", "c": "run"}}, &container.HostConfig{})
			made := c.commit(t, id, container.CommitOptions{Config: &container.Config{Labels: map[string]string{"a": "commit", "b": ""}}})
			assert.Equal(t, made.Config.Labels["a"], "commit")
			blank, present := made.Config.Labels["b"]
			assert.Assert(t, present && blank == "")
			assert.Equal(t, made.Config.Labels["c"], "run")
		},
		"a commit takes what is left empty from the container": func(t *testing.T, c contractEngine) {
			id := c.container(t, "c", &container.Config{User: "7", WorkingDir: "/tmp", Env: []string{"A=1"}, Cmd: []string{"sleep", "1"}}, &container.HostConfig{})
			made := c.commit(t, id, container.CommitOptions{Config: &container.Config{Env: []string{"B=2"}}})
			assert.Equal(t, made.Config.User, "7")
			assert.Equal(t, made.Config.WorkingDir, "/tmp")
			assert.DeepEqual(t, made.Config.Cmd, []string{"sleep", "1"})
			assert.Assert(t, slices.Contains(made.Config.Env, "A=1"), "%v", made.Config.Env)
			assert.Assert(t, slices.Contains(made.Config.Env, "B=2"), "%v", made.Config.Env)
		},
		"a commit takes the stop signal, and what is left empty of a healthcheck, from the container": func(t *testing.T, c contractEngine) {
			id := c.container(t, "c", &container.Config{
				StopSignal: "SIGUSR1", Healthcheck: &dockerspec.HealthcheckConfig{Test: []string{"CMD", "run"}, Interval: time.Hour, Retries: 9},
			}, &container.HostConfig{})
			made := c.commit(t, id, container.CommitOptions{Config: &container.Config{Healthcheck: &dockerspec.HealthcheckConfig{Test: []string{"NONE"}, Retries: 3}}})
			assert.Equal(t, made.Config.StopSignal, "SIGUSR1")
			assert.DeepEqual(t, made.Config.Healthcheck, &dockerspec.HealthcheckConfig{Test: []string{"NONE"}, Interval: time.Hour, Retries: 3})
		},
		"a commit keeps an empty entrypoint": func(t *testing.T, c contractEngine) {
			id := c.container(t, "c", &container.Config{Entrypoint: []string{"/once"}, Cmd: []string{"run"}}, &container.HostConfig{})
			made := c.commit(t, id, container.CommitOptions{Config: &container.Config{Entrypoint: []string{}, Cmd: []string{"sh"}}})
			assert.Equal(t, len(made.Config.Entrypoint), 0)
			assert.DeepEqual(t, made.Config.Cmd, []string{"sh"})
		},
		"a commit leaves the container in its state": func(t *testing.T, c contractEngine) {
			stopped := c.container(t, "stopped", &container.Config{}, &container.HostConfig{})
			running, paused := c.running(t, "running"), c.running(t, "paused")
			assert.NilError(t, c.ContainerPause(t.Context(), paused))
			for _, id := range []string{stopped, running, paused} {
				before := c.state(t, id)
				c.commit(t, id, container.CommitOptions{Pause: true})
				assert.Equal(t, c.state(t, id), before)
			}
		},
		"committing a container that is gone is a not-found error": func(t *testing.T, c contractEngine) {
			_, err := c.ContainerCommit(t.Context(), contractPrefix+"gone", container.CommitOptions{})
			assert.Assert(t, cerrdefs.IsNotFound(err))
		},
	}
}

// noImage is a reference that no image can have: no content has a digest of zeros.
const noImage = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
