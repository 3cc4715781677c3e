package enginetest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	eventtypes "github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/system"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Docker is a Docker engine in memory, as far as this package relies on
// one. What it does is what dockercontract_test.go finds real engines to do:
// that suite runs against both, so that the fake cannot lie.
type Docker struct {
	Mu     sync.Mutex
	Calls  []string
	Fault  Fault
	Cancel context.CancelFunc // what a cancelling fault calls
	Fired  string             // the call that the fault hit

	ApiVersion   string
	About        system.Info
	Containers   []*FakeContainer // in order of creation, as are the next two
	Images       []*fakeImage
	Volumes      []*FakeVolume
	Networks     map[string]string // IDs by name
	HostPaths    map[string]bool   // what bind mounts and devices may name
	HostPorts    map[string]bool   // held by programs that are not containers
	StartError   error             // of every start
	FutureHost   map[string]any    // what this engine reports in HostConfig and we do not know
	listeners    []chan eventtypes.Message
	InCommit     func()               // this happens while a container is committed, once
	OnStart      func(*FakeContainer) // what a container does at once; nil: it runs
	Clock        time.Time
	serial       int
	Randomness   byte                // what the next client's random numbers begin with
	Service      *FakeVolumes        // nil: volumes are recorded, not archived
	DieAt        string              // the client is killed before the first call that begins so
	DieSkips     int                 // but so many of them later
	Refused      []string            // calls that begin so are refused
	Spoiled      string              // calls that begin so are carried out, and answered with an error
	beforeCall   string              // before the first call that begins so …
	DoBefore     func()              // … this is done, once
	Records      map[string]string   // journals that the store has recorded, by the worker's ID
	Seen         []volumebackup.Seen // what removals were told
	Dead         bool                // the client is: none of its calls does anything
	StartedTwice bool                // a container was started again after its start had failed
}

// Fault is what goes wrong with the call number at, counted from 1.
type Fault struct {
	At   int
	Kind FaultKind
}

type FaultKind string

const (
	FaultRefuse       FaultKind = "refuse"        // an error, and nothing has happened
	FaultLoseAnswer   FaultKind = "lose answer"   // an error, but it has happened
	FaultCancelBefore FaultKind = "cancel before" // Ctrl-C, and nothing has happened
	FaultCancelAfter  FaultKind = "cancel after"  // Ctrl-C, but it has happened
	FaultDie          FaultKind = "die"           // the client is killed before it
)

// New returns an engine with a key, an image, busybox:latest, and the
// three networks that every engine has.
func New() *Docker {
	f := &Docker{
		ApiVersion: "1.51",
		About: system.Info{
			ID: "engine-1", DefaultRuntime: "runc", SecurityOptions: []string{"name=cgroupns"},
			Runtimes: map[string]system.RuntimeWithStatus{"runc": {}},
		},
		Networks:  map[string]string{},
		Records:   map[string]string{},
		HostPaths: map[string]bool{"/": true, "/dev/null": true, "/etc": true},
		HostPorts: map[string]bool{},
		Clock:     time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
	}
	for _, name := range []string{"bridge", "host", "none"} {
		f.Networks[name] = f.NewID()
	}
	f.Volumes = []*FakeVolume{{Name: catalog.KeyVolume, Labels: map[string]string{catalog.LabelKey: strings.Repeat("5e", catalog.KeyBytes)}}}
	f.AddImage("busybox:latest", &container.Config{Env: []string{"PATH=/bin"}, Cmd: []string{"sh"}})
	f.withVolumes()
	return f
}

// Disarm lets nothing go wrong any more, and tells which call has. What an operation
// asked ahead may still be under way.
func (f *Docker) Disarm() (fired string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Fault = Fault{}
	return f.Fired
}

// isDead tells whether its client has died.
func (f *Docker) isDead() bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.Dead
}

// Before has something done before the call number skip+1 that begins so.
func (f *Docker) Before(call string, skip int, do func()) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.beforeCall, f.DoBefore = call, func() {
		if skip == 0 {
			do()
			return
		}
		f.Before(call, skip-1, do)
	}
}

// do is how every method begins and ends: it counts the call, and lets go wrong
// what is to go wrong.
func (f *Docker) do(ctx context.Context, call string, effect func() error) error {
	f.Mu.Lock()
	if f.DoBefore != nil && strings.HasPrefix(call, f.beforeCall) {
		first := f.DoBefore
		f.DoBefore = nil
		f.Mu.Unlock()
		first()
		f.Mu.Lock()
	}
	defer f.Mu.Unlock()
	f.Calls = append(f.Calls, call)
	kind := FaultKind("")
	if len(f.Calls) == f.Fault.At {
		kind, f.Fired = f.Fault.Kind, call
	}
	switch kind {
	case FaultCancelBefore:
		f.Cancel()
	case FaultDie:
		f.Dead = true
	}
	if f.DieAt != "" && strings.HasPrefix(call, f.DieAt) {
		f.DieSkips--
		f.Dead = f.Dead || f.DieSkips < 0
	}
	if f.Dead {
		return fmt.Errorf("injected: nobody is there to %s", call)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	begins := func(prefix string) bool { return prefix != "" && strings.HasPrefix(call, prefix) }
	if kind == FaultRefuse || slices.ContainsFunc(f.Refused, begins) {
		return fmt.Errorf("injected: refused %s", call)
	}
	err := effect()
	if kind == FaultCancelAfter {
		f.Cancel()
		return ctx.Err()
	}
	if err == nil && begins(f.Spoiled) {
		return fmt.Errorf("injected: a conflict after %s: %w", call, cerrdefs.ErrConflict)
	}
	if kind == FaultLoseAnswer {
		return fmt.Errorf("injected: lost the answer to %s", call)
	}
	return err
}

// NewID is a digest that no other object has.
func (f *Docker) NewID() string {
	f.serial++
	return fmt.Sprintf("%x", sha256.Sum256([]byte{byte(f.serial), byte(f.serial >> 8)}))
}

func (f *Docker) Tick() time.Time {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Clock = f.Clock.Add(time.Second)
	return f.Clock
}

// Counter is randomness that is the same in every run.
type Counter struct{ Last byte }

func (c *Counter) Read(b []byte) (int, error) {
	clear(b)
	c.Last++
	b[len(b)-1] = c.Last
	return len(b), nil
}

// Run makes a container of busybox and starts it.
func (f *Docker) Run(t *testing.T, name string) *FakeContainer {
	t.Helper()
	c := f.Create(t, name, &container.Config{}, &container.HostConfig{})
	assert.NilError(t, f.ContainerStart(t.Context(), c.ID, container.StartOptions{}))
	f.ForgetCalls()
	return c
}

// Create makes a container; of busybox if config names no image.
func (f *Docker) Create(t *testing.T, name string, config *container.Config, host *container.HostConfig) *FakeContainer {
	t.Helper()
	if config.Image == "" {
		config.Image = "busybox"
	}
	created, err := f.ContainerCreate(t.Context(), config, host, nil, nil, name)
	assert.NilError(t, err)
	f.ForgetCalls()
	c := f.FindContainer(created.ID)
	c.Files = "files of " + name
	return c
}

func (f *Docker) ForgetCalls() { f.Calls = nil }

// World is everything that the engine has, as text: what tests compare to see
// that nothing has changed. Images are named by their order.
func (f *Docker) World() string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	var lines []string
	for _, c := range f.Containers {
		lines = append(lines, fmt.Sprintf("container %s %s", c.Name, c.State))
	}
	for _, img := range f.Images {
		if slices.Contains(img.Tags, WorkerImage) {
			continue // it stays, whatever is done
		}
		tags := "untagged: " + img.Comment
		if len(img.Tags) > 0 {
			tags = strings.Join(slices.Sorted(slices.Values(img.Tags)), " ")
		}
		lines = append(lines, fmt.Sprintf("image %s %s", img.ID[7:19], tags))
	}
	for _, v := range f.Volumes {
		if v.Name == catalog.KeyVolume {
			continue // once it is made it stays
		}
		lines = append(lines, strings.TrimSpace("volume "+v.Name+" "+v.Content))
	}
	return strings.Join(lines, "\n") + "\n"
}

// Clone copies a value as the way over the wire does, so that nothing that the
// fake has handed out changes what it holds.
func Clone[T any](v T) T {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var copied T
	if err := json.Unmarshal(raw, &copied); err != nil {
		panic(err)
	}
	return copied
}

// Events collects what an operation reports.
type Events struct {
	mu  sync.Mutex
	All []plan.Event
}

func (e *Events) Progress(event plan.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.All = append(e.All, event)
}

func (e *Events) Warnings() []string {
	var texts []string
	for _, event := range e.All {
		if event.Level == plan.LevelWarning {
			texts = append(texts, event.Text)
		}
	}
	return texts
}

// Notes are the texts of the notes among them.
func (e *Events) Notes() []string {
	texts := []string{}
	for _, event := range e.All {
		if event.Level == plan.LevelNote {
			texts = append(texts, event.Text)
		}
	}
	return texts
}
