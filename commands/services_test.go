package commands

import (
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
)

func TestAServiceStandsForItsContainer(t *testing.T) {
	shop := snapshot.Service{Name: "db", Container: "shop-db-1", Project: "shop", Directory: "/src/shop"}
	second := snapshot.Service{Name: "db", Container: "shop-db-2", Project: "shop", Directory: "/src/shop"}
	other := snapshot.Service{Name: "db", Container: "other-db-1", Project: "other", Directory: "/src/other"}
	for name, tc := range map[string]struct {
		services []snapshot.Service
		project  string
		want     string // the container, or the error
		status   int
	}{
		"of this directory":    {[]snapshot.Service{other, shop}, "", "shop-db-1", 0},
		"of the variable":      {[]snapshot.Service{other, shop}, "other", "other-db-1", 0},
		"of another project":   {[]snapshot.Service{other}, "", "db is a service of project other: other-db-1", 1},
		"with several of them": {[]snapshot.Service{shop, second}, "", "db is a service of project shop: shop-db-2", 1},
		"that does not exist":  {nil, "", "no such container: db", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			f.environment = map[string]string{projectVariable: tc.project}
			f.engine.containers = []string{"shop-db-1", "other-db-1"}
			f.engine.services = tc.services
			f.engine.created = snapshot.Created{Snapshot: firstSnapshot()}
			assert.Equal(t, f.run(t, "create", "db"), tc.status)
			if tc.status == 0 {
				assert.Equal(t, f.engine.create.Container, tc.want)
				return
			}
			assert.Assert(t, is.Contains(f.stderr.String(), tc.want))
		})
	}
}
