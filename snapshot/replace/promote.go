package replace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// A copy is promoted by a restore in place of the container that it was made of. What is restored is a snapshot of the
// copy, taken within the transaction while the copy is frozen, and recorded as one of the original: with the place that
// the original has. Until that is taken, plannedArchive stands for what it will hold.

// promotion is what was observed of a copy that takes the place of the member's container.
type promotion struct {
	container container.InspectResponse
	of        labels.Container // that it was made of, as it was captured
	snapshot  labels.ID        // that it was made of
	as        capture.As
	request   capture.Request // of its snapshot
	volumes   []string        // those that were made for it
	taken     bool            // its snapshot is there
}

// plannedArchive is that of a volume of a copy that is not captured yet.
func plannedArchive() *labels.Archive { return &labels.Archive{Entries: 2} } // not empty, as far as anybody knows

// NotCopyError means that a container that was to be promoted is none that a restore has made beside its original.
type NotCopyError struct{ Container string }

func (e *NotCopyError) Error() string {
	return fmt.Sprintf("container %s is not a copy that a restore has made of a snapshot", e.Container)
}

// Unwrap gives the error its class.
func (e *NotCopyError) Unwrap() error { return cerrdefs.ErrInvalidArgument }

// findPromoted finds the copy that the options name, and the container whose place it takes. Nobody else has to know
// that the snapshot of the member is still to be taken.
func (rp *Replacer) findPromoted(ctx context.Context, o Options) (*member, error) {
	c, _, err := rp.docker.ContainerInspectWithRaw(ctx, o.Copy, false)
	if err != nil {
		return nil, dockerop.AsNoContainer(err)
	}
	original, err := rp.originOf(ctx, c)
	if err != nil {
		return nil, err
	}
	m := &member{options: o, promoted: &promotion{container: c, of: original.Container, snapshot: original.ID}}
	if m.Old, err = rp.findReplaced(ctx, catalog.Snapshot{Record: original}, o.Name); err != nil {
		return nil, err
	}
	if m.Old != nil && m.Old.ID == c.ID {
		return nil, &NotCopyError{Container: dockerop.ContainerName(c)}
	}
	if m.Name = original.Container.Name; m.Old != nil {
		m.Name = dockerop.ContainerName(*m.Old)
	}
	return m, rp.describePromoted(ctx, m, original)
}

// originOf returns the record of the snapshot that a container is a copy of. The snapshot itself may be gone.
func (rp *Replacer) originOf(ctx context.Context, c container.InspectResponse) (labels.Record, error) {
	none := &NotCopyError{Container: dockerop.ContainerName(c)}
	id := c.Config.Labels[labels.KeyCopyOf]
	if id == "" || !strings.HasPrefix(c.Config.Image, catalog.Namespace) || !strings.HasSuffix(c.Config.Image, ":"+id) {
		return labels.Record{}, none // what somebody makes of a copy with docker commit inherits the label
	}
	img, err := rp.docker.ImageInspect(ctx, c.Image)
	if err != nil {
		return labels.Record{}, fmt.Errorf("inspect the image of container %s: %w", none.Container, err)
	}
	if img.Config == nil {
		return labels.Record{}, none
	}
	r, err := labels.Decode(img.Config.Labels)
	if err != nil || string(r.ID) != id {
		return labels.Record{}, none
	}
	return r, nil
}

// describePromoted works out what the snapshot of the copy will say.
func (rp *Replacer) describePromoted(ctx context.Context, m *member, place labels.Record) (err error) {
	pr := m.promoted
	if pr.request, err = rp.capture.NewRequest(1); err != nil {
		return err
	}
	observed := []capture.Options{{Container: pr.container.ID}}
	if m.Old != nil {
		observed = append(observed, capture.Options{Container: m.Old.ID, RootChecked: m.Old.State.Dead})
	}
	early := rp.docker.AskInfoEarly(ctx)
	defer early.Stop()
	sources, err := rp.capture.Observe(ctx, observed, early, nil)
	if err != nil {
		return err
	}
	record := sources[0].Record()
	for _, file := range sources[0].Whiteouts {
		m.problem(plan.ProblemWhiteout, file, fmt.Sprintf("container %s has %s: %s", record.Container.Name, file, dockerop.DescribeWhiteout(file)))
	}
	if m.Old != nil {
		place, m.whiteouts = sources[1].Record(), sources[1].Whiteouts
	}
	pr.as = capture.As{Container: record.Container, Mounts: place.Mounts}
	pr.as.Container.ID, pr.as.Container.Name = place.Container.ID, m.Name
	if m.Old != nil && !isAtWork(record.Container.State) {
		pr.as.Container.State = place.Container.State
	}
	if pr.as.Config, err = runconfig.TakePlace(record.Config, place.Config); err != nil {
		return fmt.Errorf("container %s: %w", record.Container.Name, err)
	}
	if err := m.chooseCopyVolumes(ctx, rp.docker); err != nil {
		return err
	}
	m.copyProblems(record.Mounts)
	planned := slices.Clone(record.Mounts)
	for i := range planned {
		if planned[i].Skipped == "" {
			planned[i].Archive = plannedArchive()
		}
	}
	m.Snapshot = catalog.Snapshot{Record: record, ImageID: pr.container.Image}
	m.Snapshot.ID, m.Snapshot.Created = pr.request.IDs[0], rp.now()
	m.Snapshot.Container, m.Snapshot.Config, m.Snapshot.Mounts = pr.as.Container, pr.as.Config, pr.as.Place(planned)
	return nil
}

// isAtWork tells whether a container does something, or would if its user had not paused it.
func isAtWork(s labels.State) bool { return s == labels.StateRunning || s == labels.StatePaused }

// chooseCopyVolumes finds the named volumes that were made for the copy.
func (m *member) chooseCopyVolumes(ctx context.Context, docker *dockerop.Engine) error {
	for _, name := range dockerop.MountedVolumes(m.promoted.container) {
		if m.Old != nil && slices.Contains(dockerop.MountedVolumes(*m.Old), name) {
			continue
		}
		v, err := docker.VolumeInspect(ctx, name)
		switch {
		case cerrdefs.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("inspect volume %s: %w", name, err)
		case v.Labels[labels.KeyRestoredFrom] == string(m.promoted.snapshot):
			m.promoted.volumes = append(m.promoted.volumes, name)
		}
	}
	return nil
}

// copyProblems finds what stands against the copy itself.
func (m *member) copyProblems(mounts []labels.Mount) {
	c := m.promoted.container
	name := dockerop.ContainerName(c)
	if c.State.Restarting || c.State.Status == container.StateRestarting {
		m.problem(plan.ProblemCopyState, name, fmt.Sprintf("container %s is restarting", name))
	}
	places, held := m.promoted.as.Mounts, map[string]string{}
	for _, own := range mounts {
		if own.Type != string(mount.TypeVolume) {
			continue
		}
		at := slices.IndexFunc(places, func(p labels.Mount) bool { return p.Destination == own.Destination })
		switch {
		case at < 0:
			m.problem(plan.ProblemCopyMount, own.Destination, fmt.Sprintf("container %s has a volume at %s, and container %s mounts nothing there", name, own.Destination, m.Name))
			continue
		case places[at].Type != own.Type:
			m.problem(plan.ProblemCopyMount, own.Destination, fmt.Sprintf("container %s has a volume at %s, and container %s a mount of another type: %s", name, own.Destination, m.Name, places[at].Type))
			continue
		}
		first, known := held[places[at].Name]
		if known && first != own.Name {
			m.problem(plan.ProblemCopyMount, own.Destination, fmt.Sprintf("container %s mounts volume %s in two places, and container %s has a volume in each", m.Name, places[at].Name, name))
		}
		held[places[at].Name] = own.Name
	}
}

// copyConflicts finds what uses the copy, and what it uses itself and the new container needs.
func (m *member) copyConflicts(g *group, around runconfig.Surroundings) {
	pr := m.promoted
	if pr == nil {
		return
	}
	name := dockerop.ContainerName(pr.container)
	others := slices.DeleteFunc(slices.Clone(around.Containers), func(c container.Summary) bool { return c.ID == pr.container.ID })
	m.problems = append(m.problems, g.inUse(others, pr.volumes)...)
	if !m.Start {
		return
	}
	alone := around
	alone.Containers = slices.DeleteFunc(slices.Clone(around.Containers), func(c container.Summary) bool { return c.ID != pr.container.ID })
	for _, p := range m.Spec.PortProblems(alone) {
		m.problem(plan.ProblemCopyPort, name, p.Text)
	}
}

// journalCopy describes the copy in the journal.
func (g *group) journalCopy() *pending.Copy {
	pr := g.promoted()
	if pr == nil {
		return nil
	}
	return &pending.Copy{
		ID: pr.container.ID, Name: dockerop.ContainerName(pr.container), Of: pr.snapshot,
		Running: pr.container.State.Running, Paused: pr.container.State.Paused, Volumes: pr.volumes,
	}
}

// promoted is the copy that takes the place of the only member; nil: a snapshot is restored.
func (g *group) promoted() *promotion { return g.members[0].promoted }

// isPlanned tells whether what is restored is still to be captured.
func (m *member) isPlanned() bool { return m.promoted != nil && !m.promoted.taken }

// isCopy tells whether a container is the copy that is promoted.
func (g *group) isCopy(id string) bool { return g.promoted() != nil && g.promoted().container.ID == id }
