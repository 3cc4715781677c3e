package replace

import (
	"context"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// dependents finds containers that share a namespace of the old one. They refer to its ID, and
// would lose the namespace when it goes. The engine's list shows only networks, so each
// container is inspected.
func (rp *Replacer) dependents(ctx context.Context, old *container.InspectResponse, around runconfig.Surroundings) ([]plan.Problem, error) {
	if old == nil {
		return nil, nil
	}
	containers := without(around.Containers, old)
	found := make([]*plan.Problem, len(containers))
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(dockerop.MaxConcurrentCalls)
	for i, c := range containers {
		calls.Go(func() error {
			dependent, _, err := rp.docker.ContainerInspectWithRaw(ctx, c.ID, false)
			if err == nil {
				found[i] = runconfig.Dependence(dependent, *old)
			}
			if cerrdefs.IsNotFound(err) {
				return nil
			}
			return dockerop.Describe(err, "inspect container "+dockerop.SummaryName(c))
		})
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	var problems []plan.Problem
	for _, p := range found {
		if p != nil {
			problems = append(problems, *p)
		}
	}
	return problems, nil
}
