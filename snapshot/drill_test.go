package snapshot

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/verify"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

func drillOf(words ...string) DrillOptions {
	return DrillOptions{Options: verify.Options{Words: words}, Waiting: runconfig.Waiting{Wait: true, Settle: runconfig.DefaultSettle}}
}

// drilled rehearses the restore of web:one, and checks that nothing of it stays.
func drilled(t *testing.T, docker *enginetest.Docker) []verify.Finding {
	t.Helper()
	before := docker.World()
	report, err := engineOf(docker).Drill(t.Context(), drillOf("web:one"), nil)
	assert.NilError(t, err)
	assert.NilError(t, report.Results[0].Err)
	assert.Equal(t, docker.World(), before)
	return report.Results[0].Findings
}

// withStored is the scene withAnonymous with the volume that holds the archives.
func withStored(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := withAnonymous(t)
	_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: volumebackup.DefaultStore, Labels: map[string]string{labels.KeyStoreID: "one"}})
	assert.NilError(t, err)
	docker.ForgetCalls()
	return docker
}

// withRunning is an engine with a snapshot web:one of a container that ran.
func withRunning(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	docker.Run(t, "web")
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	return docker
}

func TestADrillStartsACopyWithoutNetworkAndRemovesIt(t *testing.T) {
	docker := withRunning(t)
	started := 0
	docker.OnStart = func(c *enginetest.FakeContainer) {
		started++
		assert.Equal(t, string(c.Host.NetworkMode), "none")
	}
	assert.DeepEqual(t, drilled(t, docker), []verify.Finding(nil))
	assert.Equal(t, started, 1)
}

func TestADrillSaysThatACopyDoesNotComeUp(t *testing.T) {
	docker := withRunning(t)
	docker.OnStart = func(c *enginetest.FakeContainer) {
		c.End(docker.Clock)
		c.ExitCode = 3
	}
	findings := drilled(t, docker)
	assert.Equal(t, len(findings), 1)
	assert.Equal(t, findings[0].Where, "restore")
	assert.Assert(t, findings[0].Text != "")
}

// A worker that writes something else than it should is found out before the copy is started.
func TestADrillComparesTheCopyWithWhatWasCaptured(t *testing.T) {
	docker := withStored(t)
	docker.OnStart = func(*enginetest.FakeContainer) { t.Error("a copy was started") }
	docker.Before("diff", 0, func() {
		for _, v := range docker.Volumes {
			if strings.HasPrefix(v.Name, "data-") {
				v.Content = "other"
			}
		}
	})
	findings := drilled(t, docker)
	assert.Equal(t, len(findings), 1)
	assert.Assert(t, strings.Contains(findings[0].Text, "is not as it was captured: modified"), "%v", findings)
}

func TestADrillLeavesOutWhatIsNotWhole(t *testing.T) {
	docker := withAnonymous(t)
	docker.OnStart = func(*enginetest.FakeContainer) { t.Error("a copy was started") }
	s, err := engineOf(docker).Resolve(t.Context(), "web:one")
	assert.NilError(t, err)
	docker.FindImage(s.ImageID).Config.Labels["cua.snapshot.description"] = "x"
	assert.Equal(t, drilled(t, docker)[0].Where, "labels")
}

// Whatever goes wrong, also if the client is killed: nothing of a drill stays.
func TestNothingOfADrillStaysWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	operate := func(ctx context.Context, e *Engine) error {
		s, err := e.Resolve(ctx, "web:one")
		if err == nil {
			_, err = e.rehearse(ctx, s, drillOf().Waiting, nil)
		}
		return err
	}
	// If the removal itself fails, something may stay until the next command that recovers.
	isClear := func(t *testing.T, o enginetest.Outcome) {
		t.Helper()
		_, err := engineOf(o.Docker).Recover(t.Context(), "", nil)
		assert.NilError(t, err)
		assert.Equal(t, o.Docker.World(), o.Before)
	}
	for name, scene := range map[string]func(*testing.T) *enginetest.Docker{"with volumes": withAnonymous, "without": withRunning} {
		for _, later := range []time.Duration{time.Minute + 30*time.Second, time.Hour} { // then the copy may have run for that long
			t.Run(fmt.Sprintf("%s, %s later", name, later), func(t *testing.T) {
				withEachFault(t, scene, operate, isClear)
				withFaults(t, []enginetest.FaultKind{enginetest.FaultDie}, scene, operate, func(t *testing.T, o enginetest.Outcome) {
					o.Docker.ClientDies()
					o.Docker.Wait(later)
					isClear(t, o)
				})
			})
		}
	}
}

// A drill that is under way is left alone, and so is a container of an image that bears the label.
func TestRecoverLeavesADrillThatIsUnderWay(t *testing.T) {
	docker := withStored(t)
	docker.AddImage("inherits:latest", &container.Config{Cmd: []string{"run"}, Labels: map[string]string{labels.KeyDrill: "x"}})
	docker.Create(t, "other", &container.Config{Image: "inherits"}, &container.HostConfig{})
	before := ""
	docker.Before("diff", 0, func() {
		before = docker.World()
		_, err := engineOf(docker).Recover(t.Context(), "", nil)
		assert.NilError(t, err)
		assert.Equal(t, docker.World(), before)
	})
	assert.DeepEqual(t, drilled(t, docker), []verify.Finding(nil))
	assert.Assert(t, before != "")
}
