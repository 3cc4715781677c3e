package volumebackup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// fakeEngine holds containers by name, as far as locking needs them.
type fakeEngine struct {
	Docker // panics on what a test does not expect

	mu         sync.Mutex                            // held by every method
	containers map[string]*container.InspectResponse // by name
	busy       int                                   // how often a container is there yet that somebody else removes
	behind     time.Duration                         // what its clock shows less than ours
	lost       int                                   // renames whose answer is lost
	unanswered int                                   // create calls whose answer is lost
	thawed     int                                   // containers that somebody else thaws at the same moment
	slow       time.Duration                         // how long a create call takes
	created    []string                              // names, in order
	calls      []string
}

func newFakeEngine(containers ...*container.InspectResponse) *fakeEngine {
	f := &fakeEngine{containers: map[string]*container.InspectResponse{}}
	for _, c := range containers {
		f.containers[strings.TrimPrefix(c.Name, "/")] = c
	}
	return f
}

func (f *fakeEngine) find(word string) (string, *container.InspectResponse, error) {
	for name, c := range f.containers {
		if name == word || c.ID == word {
			return name, c, nil
		}
	}
	return "", nil, fmt.Errorf("no such container: %s: %w", word, cerrdefs.ErrNotFound)
}

func (f *fakeEngine) Info(context.Context) (system.Info, error) {
	return system.Info{SystemTime: time.Now().Add(-f.behind).Format(time.RFC3339Nano)}, nil
}

func (f *fakeEngine) ContainerCreate(_ context.Context, config *container.Config, _ *container.HostConfig, _ *network.NetworkingConfig, _ *ocispec.Platform, name string) (container.CreateResponse, error) {
	time.Sleep(f.slow)
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, taken := f.containers[name]; taken {
		return container.CreateResponse{}, fmt.Errorf("the name %s is in use: %w", name, cerrdefs.ErrConflict)
	}
	f.created = append(f.created, name)
	f.containers[name] = worker(name, "created", time.Now(), config.Labels)
	if f.unanswered--; f.unanswered >= 0 {
		return container.CreateResponse{}, errors.New("the connection broke")
	}
	return container.CreateResponse{ID: f.containers[name].ID}, nil
}

func (f *fakeEngine) ContainerInspectWithRaw(_ context.Context, word string, _ bool) (container.InspectResponse, []byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, c, err := f.find(word)
	if err != nil {
		return container.InspectResponse{}, nil, err
	}
	if c.State.Status == container.StateRemoving {
		if f.busy--; f.busy == 0 {
			delete(f.containers, name)
		}
	}
	// A copy, as what an engine answers is: what the container does next is not in it.
	base, state := *c.ContainerJSONBase, *c.State
	base.State = &state
	answer := *c
	answer.ContainerJSONBase = &base
	return answer, nil, nil
}

func (f *fakeEngine) ContainerRemove(_ context.Context, word string, _ container.RemoveOptions) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, c, err := f.find(word)
	if err != nil {
		return err
	}
	if f.busy > 0 {
		c.State.Status = container.StateRemoving
		return fmt.Errorf("removal of container %s is already in progress: %w", word, cerrdefs.ErrConflict)
	}
	delete(f.containers, name)
	f.calls = append(f.calls, "remove "+name)
	return nil
}

func (f *fakeEngine) ContainerRename(_ context.Context, word, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, c, err := f.find(word)
	if err != nil {
		return err
	}
	if f.containers[to] != nil {
		return fmt.Errorf("the name %s is taken: %w", to, cerrdefs.ErrConflict)
	}
	delete(f.containers, name)
	c.Name = "/" + to
	f.containers[to] = c
	if f.lost--; f.lost >= 0 {
		return errors.New("the connection broke")
	}
	return nil
}

func (f *fakeEngine) ContainerUnpause(_ context.Context, word string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, c, err := f.find(word)
	if err != nil {
		return err
	}
	c.State.Paused = false
	if f.thawed--; f.thawed >= 0 {
		return fmt.Errorf("container %s is not paused", word)
	}
	f.calls = append(f.calls, "unpause "+name)
	return nil
}

// testImage is the ID of an image that launcherOn takes for a worker's.
const testImage = "sha256:worker"

func launcherOn(f *fakeEngine) *containerLauncher {
	return &containerLauncher{docker: f, images: workerImages{docker: f, judged: map[string]bool{testImage: true, "sha256:other": false}}}
}

// worker is a container in a state; its ID follows from its name.
func worker(name, status string, created time.Time, labels map[string]string) *container.InspectResponse {
	journal := JournalLabels("v1")
	journal[LabelPurpose] = "test"
	maps.Copy(journal, labels)
	return &container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{
			ID: fmt.Sprintf("%x", name), Image: testImage, Name: "/" + name, Created: created.Format(time.RFC3339Nano),
			State: &container.State{Status: status, Running: status == "running"},
		},
		Config: &container.Config{Labels: journal},
	}
}

func paused(name string) *container.InspectResponse {
	c := worker(name, "paused", time.Time{}, nil)
	c.State.Running, c.State.Paused = true, true
	return c
}

const testLock = "cua-snapshot-web"
