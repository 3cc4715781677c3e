package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	eventtypes "github.com/docker/docker/api/types/events"
	"gotest.tools/v3/assert"
	testpoll "gotest.tools/v3/poll"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/watch"
)

// watching is a watch that is under way, and what it has reported.
type watching struct {
	t       *testing.T
	mu      sync.Mutex
	reports []watch.Report
	stop    context.CancelFunc
	ended   chan error
}

func startWatch(t *testing.T, docker *enginetest.Docker, o WatchOptions) *watching {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &watching{t: t, stop: stop, ended: make(chan error, 1)}
	parts := partsOf(docker)
	parts.now = time.Now
	o.Policy = retention.Default()
	go func() {
		w.ended <- assemble(parts).Watch(ctx, o, func(r watch.Report) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.reports = append(w.reports, r)
		})
	}()
	return w
}

// hears waits for a report that begins so, in the words of [told].
func (w *watching) hears(want string) {
	w.t.Helper()
	testpoll.WaitOn(w.t, func(testpoll.LogT) testpoll.Result {
		w.mu.Lock()
		defer w.mu.Unlock()
		if slices.ContainsFunc(w.reports, func(r watch.Report) bool { return strings.HasPrefix(told(r), want) }) {
			return testpoll.Success()
		}
		return testpoll.Continue("no %q in the last of %+v", want, w.reports[max(0, len(w.reports)-5):])
	}, testpoll.WithTimeout(5*time.Minute), testpoll.WithDelay(5*time.Millisecond))
}

func told(r watch.Report) string {
	return strings.Join(strings.Fields(fmt.Sprint(r.What, " ", r.Container, " ", r.Trigger, " ", r.Reason, " ", r.Error)), " ")
}

// ends stops it, which is no error.
func (w *watching) ends() {
	w.t.Helper()
	w.stop()
	assert.NilError(w.t, <-w.ended)
	assert.Equal(w.t, w.reports[len(w.reports)-1].What, watch.Stopped)
}

// watchedWeb is a container with such labels that runs, beside one without.
func watchedWeb(t *testing.T, policy map[string]string) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	docker.Clock = time.Now()
	docker.Create(t, "web", &container.Config{Labels: policy}, &container.HostConfig{Resources: container.Resources{Memory: 1000}}).State = "running"
	docker.Run(t, "other")
	return docker
}

func TestWatchFollowsContainers(t *testing.T) {
	docker := watchedWeb(t, map[string]string{labels.KeyPolicyOn: "die,oom,unhealthy"})
	w := startWatch(t, docker, WatchOptions{})
	w.hears("watching web on die, on oom, on unhealthy")
	w.hears("started")
	docker.Happens(eventtypes.ActionHealthStatusUnhealthy, "web")
	w.hears("snapshot web event unhealthy")
	_, err := docker.ContainerCreate(t.Context(), &container.Config{Image: "busybox", Labels: map[string]string{labels.KeyPolicyOn: "oom"}}, &container.HostConfig{}, nil, nil, "late")
	assert.NilError(t, err)
	docker.Happens(eventtypes.ActionCreate, "late")
	w.hears("watching late on oom")
	docker.Happens(eventtypes.ActionOOM, "late")
	w.hears("snapshot late event oom")
	docker.Happens(eventtypes.ActionDestroy, "late")
	w.hears("gone late")
	w.ends()
	for _, r := range w.reports {
		assert.Assert(t, r.Container != "other", "%+v", r)
	}
}

func TestWatchMeasuresMemory(t *testing.T) {
	docker := watchedWeb(t, nil)
	docker.FindContainer("other").Host.Memory = 0
	docker.FindContainer("web").Memory = 500
	w := startWatch(t, docker, WatchOptions{Containers: []string{"web", "other"}, When: watch.Texts{Memory: "80%"}})
	w.hears("warning other it has no memory limit, so it is not captured by its use of memory")
	w.hears("watching web at 80% of its memory limit")
	docker.Mu.Lock()
	docker.FindContainer("web").Memory = 850
	docker.Mu.Unlock()
	w.hears("snapshot web threshold memory at 85% of the limit")
	w.ends()
}

func TestWatchSurvivesABrokenConnection(t *testing.T) {
	docker := watchedWeb(t, map[string]string{labels.KeyPolicyInterval: "1s"})
	w := startWatch(t, docker, WatchOptions{})
	w.hears("snapshot web interval every 1s")
	docker.BreakEvents()
	w.hears("away unexpected EOF")
	w.hears("back")
	w.mu.Lock()
	w.reports = nil
	w.mu.Unlock()
	w.hears("snapshot web interval every 1s")
	w.ends()
}

func TestWatchKeepsWithinLimits(t *testing.T) {
	docker := watchedWeb(t, map[string]string{labels.KeyPolicyInterval: "1s", "cua.snapshot.policy.keep": "2"})
	expired, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web", Expires: docker.Clock.Add(-time.Second)}, nil)
	assert.NilError(t, err)
	w := startWatch(t, docker, WatchOptions{})
	w.hears("removed web expired at")
	w.hears("removed web beyond the limit of 2")
	w.ends()
	left, err := engineOf(docker).References(t.Context(), "web:")
	assert.NilError(t, err)
	for _, candidate := range left {
		assert.Assert(t, !strings.Contains(candidate.Word, string(expired.ID)))
	}
}

func TestWatchRefuses(t *testing.T) {
	docker := watchedWeb(t, map[string]string{labels.KeyPolicyInterval: "often"})
	w := startWatch(t, docker, WatchOptions{Containers: []string{"other"}})
	assert.ErrorContains(t, <-w.ended, "nothing says when to capture container other")
	w = startWatch(t, docker, WatchOptions{})
	w.hears(`warning web container web: its labels cannot be read: invalid interval "often": invalid duration "often": use something like 90m, 36h, 1w2d`)
	w.ends()
	docker.Refused = []string{"ContainerList"}
	w = startWatch(t, docker, WatchOptions{})
	assert.ErrorContains(t, <-w.ended, "list containers")
}

// A snapshot that fails is reported, and the watching goes on.
func TestWatchGoesOnAfterAFailure(t *testing.T) {
	docker := watchedWeb(t, map[string]string{labels.KeyPolicyOn: "oom"})
	docker.Refused = []string{"ContainerCommit"}
	id := docker.FindContainer("web").ID
	w := startWatch(t, docker, WatchOptions{})
	w.hears("started")
	docker.Happens(eventtypes.ActionOOM, "web")
	w.hears("failed web event oom commit container web: injected: refused ContainerCommit " + id)
	w.ends()
}
