package dockerop

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"
)

// contradicting is an engine that refuses some times to thaw a container which it shows as paused.
type contradicting struct {
	refusals int
	refusal  error
	asked    int
}

func (c *contradicting) ContainerUnpause(context.Context, string) error {
	c.asked++
	if c.asked <= c.refusals {
		return c.refusal
	}
	return nil
}

func (c *contradicting) ContainerInspectWithRaw(context.Context, string, bool) (container.InspectResponse, []byte, error) {
	return container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{State: &container.State{Paused: c.asked <= c.refusals}}}, nil, nil
}

func TestThawAsksAgainIfTheEngineContradictsItself(t *testing.T) {
	const forEver = 1 << 30
	notPaused := errors.Join(errors.New("Container web is not paused"), cerrdefs.ErrConflict)
	for name, test := range map[string]struct {
		engine contradicting
		early  bool
		err    string
	}{
		"at once":        {engine: contradicting{}},
		"some refusals":  {engine: contradicting{refusals: 3, refusal: notPaused}, early: true},
		"for ever":       {engine: contradicting{refusals: forEver, refusal: notPaused}, err: "container web is still paused, thaw it with docker unpause"},
		"another reason": {engine: contradicting{refusals: 1, refusal: errors.New("refused")}, err: "container web is still paused, thaw it with docker unpause: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				early, err := Thaw(t.Context(), &test.engine, nil, []string{"web"})
				assert.Equal(t, early, test.early)
				if test.err == "" {
					assert.NilError(t, err)
				} else {
					assert.ErrorContains(t, err, test.err)
				}
			})
		})
	}
}
