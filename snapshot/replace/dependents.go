package replace

import (
	"context"

	cerrdefs "github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// findDependents finds containers outside the group that share a namespace of an old one. They refer to
// its ID, and would lose the namespace when it goes. The engine's list shows only networks, so each
// container is inspected.
func (rp *Replacer) findDependents(ctx context.Context, g *group, m *member) error {
	if m.Old == nil || g.live {
		return nil
	}
	dependence := runconfig.Dependence
	if g.keeps {
		dependence = runconfig.DependenceOnStop
	}
	containers := g.without(m.around.Containers)
	found := make([]*plan.Problem, len(containers))
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(dockerop.MaxConcurrentCalls)
	for i, c := range containers {
		calls.Go(func() error {
			dependent, _, err := rp.docker.ContainerInspectWithRaw(ctx, c.ID, false)
			if err == nil {
				found[i] = dependence(dependent, *m.Old)
			}
			if cerrdefs.IsNotFound(err) {
				return nil
			}
			return dockerop.Describe(err, "inspect container "+dockerop.SummaryName(c))
		})
	}
	if err := calls.Wait(); err != nil {
		return err
	}
	for _, p := range found {
		if p != nil {
			m.problems = append(m.problems, *p)
		}
	}
	return nil
}
