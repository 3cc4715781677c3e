package snapshot

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
)

// A group that the user names may have snapshots of other moments: those are not taken together.
func TestTakenWith(t *testing.T) {
	docker := withGroup(t)
	docker.Randomness = 150
	for range 2 {
		docker.Wait(time.Minute)
		docker.Randomness += 10
		var all []capture.Options
		for _, name := range []string{"db", "web"} {
			all = append(all, capture.Options{Container: name, Group: "nightly"})
		}
		_, err := engineOf(docker).CreateTogether(t.Context(), all, nil)
		assert.NilError(t, err)
	}
	for word, want := range map[string]string{"web:one": "db job", "job:one": "db web", "web": "db", "db": "web"} {
		s, err := engineOf(docker).Resolve(t.Context(), word)
		assert.NilError(t, err)
		others, err := engineOf(docker).TakenWith(t.Context(), s)
		assert.NilError(t, err)
		var names []string
		for _, other := range others {
			names = append(names, other.Container.Name)
			assert.Assert(t, other.Created.Equal(s.Created))
		}
		assert.Equal(t, strings.Join(names, " "), want, word)
	}
}
