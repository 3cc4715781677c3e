package snapshot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/hooks"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// hookedWeb is a running container with hooks in its labels, and with a volume if it binds one.
func hookedWeb(t *testing.T, binds ...string) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{Labels: map[string]string{
		labels.KeyPolicyPre: `["lock"]`, labels.KeyPolicyPost: `["unlock"]`, labels.KeyPolicyHookTimeout: "200ms",
	}}, &container.HostConfig{Binds: binds}).State = "running"
	return docker
}

// story is what happened to web, in order: the hooks, freezes, thaws, stops and commits.
func story(docker *enginetest.Docker) string {
	var told []string
	execs := 0
	for _, call := range docker.Calls {
		word, _, _ := strings.Cut(call, " ")
		switch word {
		case "ContainerExecAttach":
			command := docker.Execs[execs].Command
			if strings.HasPrefix(command, "sh -c exec 2>") {
				command = "end"
			}
			told = append(told, command)
			execs++
		case "ContainerPause", "ContainerUnpause", "ContainerCommit", "ContainerStop":
			told = append(told, strings.ToLower(strings.TrimPrefix(word, "Container")))
		}
	}
	return strings.Join(told, " ")
}

// watched is a guard that notes what it is to watch, and whether it was told that all is done.
type watched struct{ hooks, released []string }

func (w *watched) guard(_ context.Context, about dockerop.Watched) (func(), error) {
	if about.Hook == nil {
		return func() {}, nil
	}
	w.hooks = append(w.hooks, strings.Join(about.Hook.Command, " "))
	return func() { w.released = append(w.released, strings.Join(about.Hook.Command, " ")) }, nil
}

func TestHooksRunAroundTheFreeze(t *testing.T) {
	for name, tc := range map[string]struct {
		binds []string
		asked capture.Options
		state string
		want  string
	}{
		"of a container with a volume":       {binds: []string{"data:/data"}, want: "lock pause commit unpause unlock"},
		"of a container without volumes":     {want: "lock pause commit unpause unlock"},
		"without a freeze":                   {asked: capture.Options{NoPause: true}, want: "lock commit unlock"},
		"not in one that does not run":       {state: "exited", want: "commit"},
		"not in one that is paused":          {state: "paused", want: "commit"},
		"as the user asks":                   {asked: capture.Options{Hooks: hooks.Options{Pre: &hooks.Command{"mine"}}}, want: "mine pause commit unpause unlock"},
		"not if the user switches them off":  {asked: capture.Options{Hooks: hooks.Options{Pre: &hooks.Command{}, Post: &hooks.Command{}}}, want: "commit"},
		"of a container with only a pre one": {asked: capture.Options{Hooks: hooks.Options{Post: &hooks.Command{}}}, want: "lock pause commit unpause"},
	} {
		t.Run(name, func(t *testing.T) {
			docker, w := hookedWeb(t, tc.binds...), &watched{}
			if tc.state != "" {
				docker.FindContainer("web").State = tc.state
			}
			tc.asked.Container = "web"
			_, err := engineWatchedBy(docker, w.guard).Create(t.Context(), tc.asked, nil)
			assert.NilError(t, err)
			assert.Equal(t, story(docker), tc.want)
			assert.DeepEqual(t, w.hooks, w.released)
		})
	}
}

func TestAHookThatFails(t *testing.T) {
	fails := func(which string) func(*enginetest.FakeExec) {
		return func(x *enginetest.FakeExec) {
			if x.Command == which {
				x.Status, x.Output = 4, "no such table"
			}
		}
	}
	hangs := func(x *enginetest.FakeExec) { x.Hangs = x.Command == "lock" }
	for name, tc := range map[string]struct {
		exec    func(*enginetest.FakeExec)
		onError hooks.OnError
		fails   string
		warns   string
		want    string
	}{
		"pre":                                  {fails("lock"), "", "pre hook of container web: exit status 4: no such table", "", "lock unlock"},
		"pre, which is no matter":              {fails("lock"), hooks.Continue, "", "pre hook of container web: exit status 4: no such table", "lock pause commit unpause unlock"},
		"post":                                 {fails("unlock"), "", "", "post hook of container web: exit status 4: no such table", "lock pause commit unpause unlock"},
		"pre, which hangs":                     {hangs, "", "pre hook of container web: it took longer than 200ms, and was ended", "", "lock end unlock"},
		"pre, which hangs, which is no matter": {hangs, hooks.Continue, "", "pre hook of container web: it took longer than 200ms, and was ended", "lock end pause commit unpause unlock"},
	} {
		t.Run(name, func(t *testing.T) {
			docker, w, events := hookedWeb(t, "data:/data"), &watched{}, &enginetest.Events{}
			docker.OnExec = tc.exec
			before := docker.World()
			_, err := engineWatchedBy(docker, w.guard).Create(t.Context(), capture.Options{Container: "web", Hooks: hooks.Options{OnError: tc.onError}}, events.Progress)
			if tc.fails != "" {
				assert.ErrorContains(t, err, tc.fails)
				assert.Equal(t, docker.World(), before)
				_, typed := errors.AsType[*capture.HookError](err)
				assert.Assert(t, typed)
			} else {
				assert.NilError(t, err)
			}
			assert.Equal(t, strings.Join(events.Warnings(), ""), tc.warns)
			assert.Equal(t, story(docker), tc.want)
			assert.DeepEqual(t, w.released, []string{"unlock"})
		})
	}
}

func TestThePostHookRunsAfterCtrlC(t *testing.T) {
	for _, call := range []string{"ContainerExecAttach", "ContainerPause", "ContainerCommit", "ContainerUnpause"} {
		t.Run(call, func(t *testing.T) {
			docker, w := hookedWeb(t, "data:/data"), &watched{}
			before := docker.World()
			ctx, cancel := context.WithCancel(t.Context())
			docker.Before(call, 0, cancel)
			_, err := engineWatchedBy(docker, w.guard).Create(ctx, capture.Options{Container: "web"}, nil)
			assert.ErrorIs(t, err, context.Canceled)
			assert.Assert(t, strings.HasSuffix(story(docker), "unlock"), story(docker))
			assert.Equal(t, docker.World(), before)
			assert.DeepEqual(t, w.released, []string{"unlock"})
		})
	}
}

// The guard of a client that died at any call does what the client would have done.
func TestTheGuardRunsThePostHook(t *testing.T) {
	for _, call := range []string{"ContainerExecInspect", "ContainerPause", "ContainerCommit", "ContainerUnpause"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel() // the guard waits for a hook that begins late
			docker := hookedWeb(t, "data:/data")
			docker.DieAt = call
			var hook dockerop.Exec
			guard := func(_ context.Context, about dockerop.Watched) (func(), error) {
				if about.Hook != nil {
					hook = *about.Hook
				}
				return func() {}, nil
			}
			_, err := engineWatchedBy(docker, guard).Create(t.Context(), capture.Options{Container: "web"}, nil)
			assert.Assert(t, err != nil)
			docker.DieAt = ""
			docker.ClientDies()
			docker.ForgetCalls()
			docker.Execs = nil
			eng := engineOf(docker)
			if docker.FindContainer("web").State == "paused" {
				assert.ErrorContains(t, eng.EndHook(t.Context(), hook), "still paused")
				docker.By("web", false)
			}
			assert.NilError(t, eng.EndHook(t.Context(), hook))
			assert.Equal(t, story(docker), "end end end unlock", "a hook may begin late")
		})
	}
}

func TestTheGuardLeavesOthersAlone(t *testing.T) {
	docker := hookedWeb(t)
	eng := engineOf(docker)
	docker.FindContainer("web").State = "exited"
	assert.NilError(t, eng.EndHook(t.Context(), dockerop.Exec{Container: "web", Command: []string{"unlock"}, Timeout: time.Second}))
	assert.NilError(t, eng.EndHook(t.Context(), dockerop.Exec{Container: "gone", Command: []string{"unlock"}, Timeout: time.Second}))
	assert.Equal(t, story(docker), "")
}

// The safety snapshot runs the hooks that the container has now, and both before it stops.
func TestHooksOfARestoreInPlace(t *testing.T) {
	for name, binds := range map[string][]string{"with a volume": {"data:/data"}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			docker := hookedWeb(t, binds...)
			eng := engineOf(docker)
			made, err := eng.Create(t.Context(), capture.Options{Container: "web"}, nil)
			assert.NilError(t, err)
			docker.FindContainer("web").Config.Labels[labels.KeyPolicyPre] = `["new-lock"]`
			docker.ForgetCalls()
			docker.Execs = nil
			_, err = eng.Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: string(made.ID)}}, nil)
			assert.NilError(t, err)
			told := strings.Fields(story(docker))
			assert.DeepEqual(t, slices.Compact(told)[:4], []string{"new-lock", "unlock", "stop", "commit"})
		})
	}
}
