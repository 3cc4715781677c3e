package snapshot

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

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	eventtypes "github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/system"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// fakeDocker is a Docker engine in memory, as far as this package relies on
// one. What it does is what dockercontract_test.go finds real engines to do:
// that suite runs against both, so that the fake cannot lie.
type fakeDocker struct {
	mu     sync.Mutex
	calls  []string
	fault  fault
	cancel context.CancelFunc // what a cancelling fault calls
	fired  string             // the call that the fault hit

	apiVersion   string
	info         system.Info
	containers   []*fakeContainer // in order of creation, as are the next two
	images       []*fakeImage
	volumes      []*fakeVolume
	networks     map[string]string // IDs by name
	hostPaths    map[string]bool   // what bind mounts and devices may name
	hostPorts    map[string]bool   // held by programs that are not containers
	startError   error             // of every start
	futureHost   map[string]any    // what this engine reports in HostConfig and we do not know
	listeners    []chan eventtypes.Message
	inCommit     func()               // this happens while a container is committed, once
	onStart      func(*fakeContainer) // what a container does at once; nil: it runs
	clock        time.Time
	serial       int
	randomness   byte                // what the next client's random numbers begin with
	service      *fakeVolumes        // nil: volumes are recorded, not archived
	dieAt        string              // the client is killed before the first call that begins so
	dieSkips     int                 // but so many of them later
	refused      []string            // calls that begin so are refused
	spoiled      string              // calls that begin so are carried out, and answered with an error
	beforeCall   string              // before the first call that begins so …
	doBefore     func()              // … this is done, once
	records      map[string]string   // journals that the store has recorded, by the worker's ID
	seen         []volumebackup.Seen // what removals were told
	dead         bool                // the client is: none of its calls does anything
	startedTwice bool                // a container was started again after its start had failed
}

// fault is what goes wrong with the call number at, counted from 1.
type fault struct {
	at   int
	kind faultKind
}

type faultKind string

const (
	faultRefuse       faultKind = "refuse"        // an error, and nothing has happened
	faultLoseAnswer   faultKind = "lose answer"   // an error, but it has happened
	faultCancelBefore faultKind = "cancel before" // Ctrl-C, and nothing has happened
	faultCancelAfter  faultKind = "cancel after"  // Ctrl-C, but it has happened
	faultDie          faultKind = "die"           // the client is killed before it
)

// newFakeDocker returns an engine with a key, an image, busybox:latest, and the
// three networks that every engine has.
func newFakeDocker() *fakeDocker {
	f := &fakeDocker{
		apiVersion: "1.51",
		info: system.Info{
			ID: "engine-1", DefaultRuntime: "runc", SecurityOptions: []string{"name=cgroupns"},
			Runtimes: map[string]system.RuntimeWithStatus{"runc": {}},
		},
		networks:  map[string]string{},
		records:   map[string]string{},
		hostPaths: map[string]bool{"/": true, "/dev/null": true, "/etc": true},
		hostPorts: map[string]bool{},
		clock:     time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
	}
	for _, name := range []string{"bridge", "host", "none"} {
		f.networks[name] = f.newID()
	}
	f.volumes = []*fakeVolume{{name: catalog.KeyVolume, labels: map[string]string{catalog.LabelKey: strings.Repeat("5e", catalog.KeyBytes)}}}
	f.addImage("busybox:latest", &container.Config{Env: []string{"PATH=/bin"}, Cmd: []string{"sh"}})
	return f
}

// disarm lets nothing go wrong any more, and tells which call has. What an operation
// asked ahead may still be under way.
func (f *fakeDocker) disarm() (fired string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault{}
	return f.fired
}

// isDead tells whether its client has died.
func (f *fakeDocker) isDead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// before has something done before the call number skip+1 that begins so.
func (f *fakeDocker) before(call string, skip int, do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.beforeCall, f.doBefore = call, func() {
		if skip == 0 {
			do()
			return
		}
		f.before(call, skip-1, do)
	}
}

// do is how every method begins and ends: it counts the call, and lets go wrong
// what is to go wrong.
func (f *fakeDocker) do(ctx context.Context, call string, effect func() error) error {
	f.mu.Lock()
	if f.doBefore != nil && strings.HasPrefix(call, f.beforeCall) {
		first := f.doBefore
		f.doBefore = nil
		f.mu.Unlock()
		first()
		f.mu.Lock()
	}
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
	kind := faultKind("")
	if len(f.calls) == f.fault.at {
		kind, f.fired = f.fault.kind, call
	}
	switch kind {
	case faultCancelBefore:
		f.cancel()
	case faultDie:
		f.dead = true
	}
	if f.dieAt != "" && strings.HasPrefix(call, f.dieAt) {
		f.dieSkips--
		f.dead = f.dead || f.dieSkips < 0
	}
	if f.dead {
		return fmt.Errorf("injected: nobody is there to %s", call)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	begins := func(prefix string) bool { return prefix != "" && strings.HasPrefix(call, prefix) }
	if kind == faultRefuse || slices.ContainsFunc(f.refused, begins) {
		return fmt.Errorf("injected: refused %s", call)
	}
	err := effect()
	if kind == faultCancelAfter {
		f.cancel()
		return ctx.Err()
	}
	if err == nil && begins(f.spoiled) {
		return fmt.Errorf("injected: a conflict after %s: %w", call, cerrdefs.ErrConflict)
	}
	if kind == faultLoseAnswer {
		return fmt.Errorf("injected: lost the answer to %s", call)
	}
	return err
}

// newID is a digest that no other object has.
func (f *fakeDocker) newID() string {
	f.serial++
	return fmt.Sprintf("%x", sha256.Sum256([]byte{byte(f.serial), byte(f.serial >> 8)}))
}

func (f *fakeDocker) tick() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock = f.clock.Add(time.Second)
	return f.clock
}

// counter is randomness that is the same in every run.
type counter struct{ last byte }

func (c *counter) Read(b []byte) (int, error) {
	clear(b)
	c.last++
	b[len(b)-1] = c.last
	return len(b), nil
}

// run makes a container of busybox and starts it.
func (f *fakeDocker) run(t *testing.T, name string) *fakeContainer {
	t.Helper()
	c := f.create(t, name, &container.Config{}, &container.HostConfig{})
	assert.NilError(t, f.ContainerStart(t.Context(), c.id, container.StartOptions{}))
	f.forgetCalls()
	return c
}

// create makes a container; of busybox if config names no image.
func (f *fakeDocker) create(t *testing.T, name string, config *container.Config, host *container.HostConfig) *fakeContainer {
	t.Helper()
	if config.Image == "" {
		config.Image = "busybox"
	}
	created, err := f.ContainerCreate(t.Context(), config, host, nil, nil, name)
	assert.NilError(t, err)
	f.forgetCalls()
	c := f.findContainer(created.ID)
	c.files = "files of " + name
	return c
}

func (f *fakeDocker) forgetCalls() { f.calls = nil }

// world is everything that the engine has, as text: what tests compare to see
// that nothing has changed. Images are named by their order.
func (f *fakeDocker) world() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, c := range f.containers {
		lines = append(lines, fmt.Sprintf("container %s %s", c.name, c.state))
	}
	for _, img := range f.images {
		tags := "untagged: " + img.comment
		if len(img.tags) > 0 {
			tags = strings.Join(slices.Sorted(slices.Values(img.tags)), " ")
		}
		lines = append(lines, fmt.Sprintf("image %s %s", img.id[7:19], tags))
	}
	for _, v := range f.volumes {
		if v.name == catalog.KeyVolume {
			continue // once it is made it stays
		}
		lines = append(lines, strings.TrimSpace("volume "+v.name+" "+v.content))
	}
	return strings.Join(lines, "\n") + "\n"
}

// clone copies a value as the way over the wire does, so that nothing that the
// fake has handed out changes what it holds.
func clone[T any](v T) T {
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

// events collects what an operation reports.
type events struct {
	mu  sync.Mutex
	all []plan.Event
}

func (e *events) progress(event plan.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

func (e *events) warnings() []string {
	var texts []string
	for _, event := range e.all {
		if event.Level == plan.LevelWarning {
			texts = append(texts, event.Text)
		}
	}
	return texts
}
