package snapshot

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

func TestReplaceWarnsOfAContainerThatCannotBeRead(t *testing.T) {
	docker := withTwo(t)
	old := docker.FindContainer("web").ID
	other := docker.Run(t, "other")
	docker.Refused = []string{"ContainerInspect " + other.ID}
	var got enginetest.Events
	_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), got.Progress)
	assert.NilError(t, err)
	assertReplaced(t, docker, old)
	assert.DeepEqual(t, got.Warnings(), []string{
		"container other cannot be inspected: injected: refused ContainerInspect " + other.ID + ". If it uses a namespace of web, start it again afterwards",
	})
}

// An engine may wait long for a volume plugin that is dead.
func TestASlowListOfVolumesIsReported(t *testing.T) {
	docker := withTwo(t)
	reported := make(chan struct{})
	docker.Before("VolumeList", 0, func() {
		select {
		case <-reported:
		case <-time.After(time.Minute):
			t.Error("nothing was reported")
		}
	})
	engine := engineCounting(docker, 200)
	_, err := engine.Create(t.Context(), capture.Options{Container: "web"}, func(e plan.Event) {
		if strings.Contains(e.Text, "waiting for the engine to list its volumes") {
			close(reported)
		}
	})
	assert.NilError(t, err)
}
