package enginetest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	eventtypes "github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/system"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Docker is a Docker engine in memory. Tests set its fields before, or while they hold Mu.
type Docker struct {
	Mu     sync.Mutex
	Calls  []string
	Fault  Fault
	Cancel context.CancelFunc // a cancelling fault calls it
	Fired  string             // the call that the fault hit

	APIVersion   string
	About        system.Info
	Containers   []*FakeContainer // in order of creation, like Images and Volumes
	Images       []*FakeImage
	Volumes      []*FakeVolume
	Networks     map[string]string // IDs by name
	HostPaths    map[string]bool   // paths that exist on the host
	Directories  map[string]string // what directories of the host hold, by path: texts that stand for their files
	HostPorts    map[string]bool   // ports that programs other than containers hold
	StartError   error             // every start fails with it
	StartRefused error             // every start fails with it of a container that has never run
	CreateError  error             // every create call of a client fails with it
	FutureHost   map[string]any    // fields of HostConfig that this engine reports and we do not know
	listeners    []chan eventtypes.Message
	told         int64                // when the last event happened, in nanoseconds
	streams      []chan<- error       // for the ends of their connections
	InCommit     func()               // called once, while a container is committed
	BusyCommits  int                  // so many commits fail, as if the engine were at work on another one of the same image
	OnStart      func(*FakeContainer) // called when a container has started; nil: it goes on running
	Clock        time.Time
	serial       int
	Randomness   byte                // where the next client's random numbers begin
	Service      *FakeVolumes        // nil: volumes are recorded, not archived
	DieAt        string              // the client is killed before a call that begins so
	DieSkips     int                 // so many of these calls come before
	Refused      []string            // calls that begin so are refused
	Spoiled      string              // calls that begin so have their effect, but fail
	beforeCall   string              // before a call that begins so,
	DoBefore     func()              // this is called, once
	Records      map[string]string   // journals that the store holds, by worker ID
	Seen         []volumebackup.Seen // what calls to remove archives said of the engine
	Dead         bool                // the client was killed: its calls have no effect
	Execs        []*FakeExec         // every command that was run in a container
	OnExec       func(*FakeExec)     // called when one starts; it may change how it ends
	StartedTwice bool                // a container was started again after its start had failed
}

// New returns an engine with a key, the image busybox:latest, and the three networks that every
// engine has.
func New() *Docker {
	f := &Docker{
		APIVersion: "1.51",
		About: system.Info{
			ID: "engine-1", DefaultRuntime: "runc", SecurityOptions: []string{"name=cgroupns"},
			Runtimes: map[string]system.RuntimeWithStatus{"runc": {}},
		},
		Networks:  map[string]string{},
		Records:   map[string]string{},
		HostPaths: map[string]bool{"/": true, "/dev/null": true, "/etc": true}, Directories: map[string]string{},
		HostPorts: map[string]bool{},
		Clock:     time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
	}
	for _, name := range []string{"bridge", "host", "none"} {
		f.Networks[name] = f.NewID()
	}
	f.Volumes = []*FakeVolume{{Name: catalog.KeyVolume, Labels: map[string]string{catalog.LabelKey: EngineKey}}}
	f.AddImage("busybox:latest", &container.Config{Env: []string{"PATH=/bin"}, Cmd: []string{"sh"}})
	f.withVolumes()
	return f
}

// NewID returns an ID that no other object has.
func (f *Docker) NewID() string {
	f.serial++
	return fmt.Sprintf("%x", sha256.Sum256([]byte{byte(f.serial), byte(f.serial >> 8)}))
}

// Tick lets a second pass on the engine, and returns its time.
func (f *Docker) Tick() time.Time {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Clock = f.Clock.Add(time.Second)
	return f.Clock
}

// Counter is a source of randomness that is the same in every run.
type Counter struct {
	Last byte

	mu sync.Mutex
}

// Read fills b with the next number.
func (c *Counter) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
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

// Create makes a container, of busybox if config names no image.
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

// ForgetCalls begins to count calls from 1 again.
func (f *Docker) ForgetCalls() { f.Calls = nil }

// World returns everything that the engine has, as text. Tests compare it to see that nothing has
// changed.
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
			continue // it stays once it is made
		}
		lines = append(lines, strings.TrimSpace("volume "+v.Name+" "+v.Content))
	}
	for _, path := range slices.Sorted(maps.Keys(f.Directories)) {
		lines = append(lines, "directory "+path+" "+f.Directories[path])
	}
	return strings.Join(lines, "\n") + "\n"
}

// Clone returns a copy of a value, made by encoding it as the API does. So a caller cannot change
// what the engine holds.
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

// Wait lets time pass on the engine.
func (f *Docker) Wait(d time.Duration) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Clock = f.Clock.Add(d)
}

// Data returns the content of the volume data.
func (f *Docker) Data() string { return f.FindVolume("data").Content }

// AnonymousOf returns the anonymous volume of a container.
func (f *Docker) AnonymousOf(t *testing.T, name string) *FakeVolume {
	t.Helper()
	for _, m := range f.FindContainer(name).Mounts {
		if m.Destination == "/anonymous" {
			return f.FindVolume(m.Name)
		}
	}
	t.Fatalf("%s has no anonymous volume", name)
	return nil
}

// Lock returns the name of the worker with the journal of a restore in place of a container, or "".
func (f *Docker) Lock(name string) string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, c := range f.Containers {
		var j pending.Journal
		if err := json.Unmarshal([]byte(c.Config.Labels[pending.LabelJournal]), &j); err == nil && j.IsAbout([]string{name}) {
			return c.Name
		}
	}
	return ""
}

// By pauses or thaws a container as somebody else does: without a call that counts or can fail. It
// sets each state in turn.
func (f *Docker) By(name string, paused ...bool) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, p := range paused {
		f.SetPaused(f.FindContainer(name), p)
	}
}

// Count returns how many calls begin so.
func (f *Docker) Count(call string) int {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	n := 0
	for _, c := range f.Calls {
		if strings.HasPrefix(c, call) {
			n++
		}
	}
	return n
}

// NoGuard watches over nothing.
func NoGuard(context.Context, dockerop.Watched) (release func(), err error) { return func() {}, nil }

// EngineKey is the key that seals what this engine makes, in hex.
const EngineKey = "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"
