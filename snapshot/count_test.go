package snapshot

import (
	"fmt"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
)

// The more images an engine has, the fewer calls have it list them.
func TestCountingCostsTheSameHoweverManyImagesThereAre(t *testing.T) {
	const calls = 1000 // each number is drawn equally often
	for _, tc := range []struct{ images, counted int }{
		{images: 1, counted: calls},
		{images: 100, counted: calls},
		{images: 125, counted: calls * 100 / 125},
		{images: 200, counted: calls * 100 / 200},
	} {
		t.Run(fmt.Sprint(tc.images), func(t *testing.T) {
			docker := enginetest.New()
			docker.Run(t, "db")
			docker.Run(t, "web")
			for _, container := range []string{"db", "web", "web"} {
				_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: container, Trigger: labels.TriggerInterval}, nil)
				assert.NilError(t, err)
			}
			for _, o := range []capture.Options{{Trigger: labels.TriggerAgent}, {Trigger: labels.TriggerManual}} { // these do not count
				o.Container = "web"
				_, err := engineOf(docker).Create(t.Context(), o, nil)
				assert.NilError(t, err)
			}
			docker.About.Images = tc.images
			p := partsOf(docker)
			draws := &everyNumber{below: tc.images}
			p.random = draws
			e := assemble(p)
			before, counted := docker.Count("ImageList"), 0
			for range calls {
				count, ok, err := e.CountAtTimes(t.Context(), "web")
				assert.NilError(t, err)
				if ok {
					assert.Equal(t, count.Automatic, 2)
					assert.Assert(t, !count.Newest.IsZero())
					counted++
				}
			}
			assert.Equal(t, counted, tc.counted)
			assert.Equal(t, docker.Count("ImageList")-before, counted)
		})
	}
}

// everyNumber is a source of single bytes in which each number below a limit comes equally often.
type everyNumber struct{ below, next int }

func (r *everyNumber) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r.next)
		r.next = (r.next + 1) % r.below
	}
	return len(b), nil
}
