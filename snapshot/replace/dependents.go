package replace

import (
	"context"
	"fmt"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// maxInspect limits the inspection of one container outside the group: the engine may be stuck with it.
const maxInspect = 10 * time.Second

// findDependents finds containers outside the group that share a namespace of an old one. They refer to
// its ID, and would lose the namespace when it goes. The engine's list shows only networks, so each
// container is inspected. One that cannot be inspected is a warning.
func (rp *Replacer) findDependents(ctx context.Context, g *group, m *member, p plan.Progress) error {
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
			inspecting, cancel := context.WithTimeout(ctx, maxInspect)
			defer cancel()
			dependent, _, err := rp.docker.ContainerInspectWithRaw(inspecting, c.ID, false)
			switch {
			case err == nil:
				found[i] = dependence(dependent, *m.Old)
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case client.IsErrConnectionFailed(err):
				return dockerop.Describe(err, "inspect container "+dockerop.SummaryName(c))
			case !cerrdefs.IsNotFound(err):
				p.Warn("check", fmt.Sprintf("container %s cannot be inspected: %v. If it uses a namespace of %s, start it again afterwards", dockerop.SummaryName(c), err, m.Name))
			}
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		return err
	}
	for _, problem := range found {
		if problem != nil {
			m.problems = append(m.problems, *problem)
		}
	}
	return nil
}
