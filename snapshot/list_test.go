package snapshot

import (
	"slices"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
)

// listScene has four snapshots: a, b and c of web, and d of db, taken a second
// or more apart, around the times that the filters below name.
func listScene(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	web := docker.Create(t, "web", &container.Config{Labels: map[string]string{"team": "shop", "bare": ""}}, &container.HostConfig{})
	db := docker.Run(t, "db")
	take := func(o capture.Options, size int) {
		web.Files, db.Files = strings.Repeat("x", size), strings.Repeat("x", size)
		engine := engineCounting(docker, byte(size))
		_, err := engine.Create(t.Context(), o, nil)
		assert.NilError(t, err)
		docker.Clock = docker.Clock.Add(time.Hour)
	}
	take(capture.Options{Container: "web", Name: "a", Description: "Before the Upgrade", Tags: []string{"x", "y"}, RunID: "r1", Pinned: true}, 30)
	take(capture.Options{Container: "web", Name: "b", Trigger: labels.TriggerInterval, StepID: "s1", Group: "g1", Meta: map[string]string{"k/1": "v"}}, 10)
	take(capture.Options{Container: "web", Name: "c", Tags: []string{"y"}, RunID: "r2", Expires: docker.Clock.Add(time.Minute)}, 20)
	take(capture.Options{Container: "db", Name: "d", RunID: "r1", Trigger: labels.TriggerEvent}, 40)
	docker.ForgetCalls()
	return docker
}

// names are the snapshots' names, in order.
func names(list []catalog.Snapshot) string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = s.Name
	}
	return strings.Join(all, " ")
}

func TestListFilters(t *testing.T) {
	docker := listScene(t)
	b, err := engineOf(docker).Resolve(t.Context(), "b")
	assert.NilError(t, err)
	webID := docker.FindContainer("web").ID
	tests := []struct {
		terms, want string // terms: separated by a blank
	}{
		{"", "d c b a"},
		{"container=web", "c b a"},
		{"container=we", ""},
		{"container=" + webID, "c b a"},
		{"container=" + webID[:12], "c b a"},
		{"container=" + webID[:11], ""},
		{"name=a", "a"},
		{"name=A", ""},
		{"name=a name=d", "d a"},
		{"name=^a|b$", "b a"},
		{"name=^$", ""},
		{"name=", "d c b a"},
		{"tag=y", "c a"},
		{"tag=x", "a"},
		{"tag=z", ""},
		{"run=r1", "d a"},
		{"run=r1 container=web", "a"},
		{"run=r1 run=r2", "d c a"},
		{"run=r1 run=r2 container=web tag=y", "c a"},
		{"step=s1", "b"},
		{"group=g1", "b"},
		{"trigger=interval", "b"},
		{"trigger=interval trigger=event", "d b"},
		{"meta.k/1=v", "b"},
		{"meta.k/1=w", ""},
		{"label=team", "c b a"},
		{"label=team=shop", "c b a"},
		{"label=team=", ""},
		{"label=bare=", "c b a"},
		{"label=none", ""},
		{"pinned=true", "a"},
		{"pinned=0", "d c b"},
		{"expired=true", "c"},
		{"expired=false", "d b a"},
		{"since=b", "d c"},
		{"before=b", "a"},
		{"since=" + string(b.ID), "d c"},
		{"before=web:b", "a"},
		{"since=cua-snapshot/web:b", "d c"},
		{"before=" + string(b.ID)[:18], "a"},
		{"since=" + b.Created.Format(time.RFC3339Nano), "d c"},
		{"before=" + b.Created.Format(time.RFC3339Nano), "a"},
		{"since=90m", "d"},
		{"before=90m", "c b a"},
		{"since=1w", "d c b a"},
		{"since=a before=d", "c b"},
		{"larger=20B", "d a"},
		{"larger=0.02KB", "d a"},
		{"smaller=20", "b"},
		{"larger=10 smaller=40", "c a"},
		{"store=", "d c b a"},
		{"store=other", ""},
	}
	for _, test := range tests {
		t.Run(test.terms, func(t *testing.T) {
			filter, err := catalog.ParseFilter(strings.Fields(test.terms), docker.Clock)
			assert.NilError(t, err)
			list, err := engineOf(docker).List(t.Context(), catalog.ListOptions{Filter: filter}, nil)
			assert.NilError(t, err)
			assert.Equal(t, names(list), test.want)
		})
	}
}

func TestEveryFilterKeyIsKnown(t *testing.T) {
	values := map[string]string{"expired": "true", "pinned": "true", "trigger": "manual", "kind": "state", "larger": "1GB", "smaller": "0"}
	for _, key := range catalog.FilterKeys() {
		term := strings.TrimSuffix(key, ".") + "=x"
		if strings.HasSuffix(key, ".") {
			term = key + "x=y"
		} else if value, ok := values[key]; ok {
			term = key + "=" + value
		}
		_, err := catalog.ParseFilter([]string{term}, time.Time{})
		assert.NilError(t, err)
	}
}

func TestParseFilterRefuses(t *testing.T) {
	for term, want := range map[string]string{
		"web":         "use key=value",
		"=x":          "use key=value",
		"":            "use key=value",
		"colour=red":  "unknown key, use one of before, container",
		"Name=a":      "unknown key",
		"trigger=why": "unknown trigger",
		"pinned=si":   "use true or false",
		"name=[":      "use a part of a name, or a regular expression",
		"expired=":    "use true or false",
	} {
		_, err := catalog.ParseFilter([]string{term}, time.Time{})
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "invalid filter ")
	}
}

func TestListFailsOnAFilterThatNamesNoSnapshot(t *testing.T) {
	docker := listScene(t)
	for _, term := range []string{"before=gone", "since=gone", "before=2026", "since="} {
		filter, err := catalog.ParseFilter([]string{term}, docker.Clock)
		assert.NilError(t, err)
		_, err = engineOf(docker).List(t.Context(), catalog.ListOptions{Filter: filter}, nil)
		assert.Assert(t, err != nil, term)
	}
}

func TestListOrderAndChoice(t *testing.T) {
	docker := listScene(t)
	for name, test := range map[string]struct {
		options catalog.ListOptions
		want    string
	}{
		"newest first":          {catalog.ListOptions{}, "d c b a"},
		"oldest first":          {catalog.ListOptions{Reverse: true}, "a b c d"},
		"largest first":         {catalog.ListOptions{Sort: catalog.SortSize}, "d a c b"},
		"smallest first":        {catalog.ListOptions{Sort: catalog.SortSize, Reverse: true}, "b c a d"},
		"by name":               {catalog.ListOptions{Sort: catalog.SortName}, "a b c d"},
		"by creation":           {catalog.ListOptions{Sort: catalog.SortCreated}, "d c b a"},
		"the last two":          {catalog.ListOptions{Last: 2}, "d c"},
		"the two largest":       {catalog.ListOptions{Sort: catalog.SortSize, Last: 2}, "d a"},
		"more than there are":   {catalog.ListOptions{Last: 9}, "d c b a"},
		"of one container":      {catalog.ListOptions{Container: "web"}, "c b a"},
		"found by description":  {catalog.ListOptions{Search: "uPGRADe"}, "a"},
		"found by name":         {catalog.ListOptions{Search: "B"}, "b a"},
		"found by nothing":      {catalog.ListOptions{Search: "zzz"}, ""},
		"found in a container":  {catalog.ListOptions{Container: "db", Search: "upgrade"}, ""},
		"no glob in the search": {catalog.ListOptions{Search: "*"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			docker.ForgetCalls()
			list, err := engineOf(docker).List(t.Context(), test.options, nil)
			assert.NilError(t, err)
			assert.Equal(t, names(list), test.want)
			slices.Sort(docker.Calls)
			assert.DeepEqual(t, docker.Calls, []string{"ImageList", "VolumeInspect cua-snapshots"})
		})
	}
}

func TestListRefusesWhatIsNoContainerName(t *testing.T) {
	docker := enginetest.New()
	for _, name := range []string{"*", "a/b", "web:one", "[a]", "-web"} {
		_, err := engineOf(docker).List(t.Context(), catalog.ListOptions{Container: name}, nil)
		assert.ErrorContains(t, err, "invalid container name")
	}
}

func TestListTellsContainersOfSimilarNamesApart(t *testing.T) {
	docker, _ := withSnapshots(t, "web:small", "Web:large")
	for name, want := range map[string]string{"web": "small", "Web": "large"} {
		list, err := engineOf(docker).List(t.Context(), catalog.ListOptions{Container: name}, nil)
		assert.NilError(t, err)
		assert.Equal(t, names(list), want)
	}
}

func TestListOfNoContainer(t *testing.T) {
	docker := listScene(t)
	for _, name := range []string{"nobody", "we", "WEB", strings.Repeat("0", 64)} {
		_, err := engineOf(docker).List(t.Context(), catalog.ListOptions{Container: name}, nil)
		assert.Error(t, err, "no container "+name+", and no snapshot of one")
		assert.Assert(t, cerrdefs.IsNotFound(err))
	}
	docker.Run(t, "fresh")
	list, err := engineOf(docker).List(t.Context(), catalog.ListOptions{Container: "fresh"}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(list), 0)
	assert.NilError(t, docker.ContainerRemove(t.Context(), "web", container.RemoveOptions{Force: true}))
	nothing, err := catalog.ParseFilter([]string{"tag=none"}, docker.Clock)
	assert.NilError(t, err)
	list, err = engineOf(docker).List(t.Context(), catalog.ListOptions{Container: "web", Filter: nothing}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(list), 0)
}

func TestListLeavesOutWhatIsNoSnapshotAndWarnsOfBrokenOnes(t *testing.T) {
	docker, made := withSnapshots(t, "web:good", "web:bad")
	inherited := docker.FindImage(made[0].ImageID).Config.Labels
	docker.AddImage("cua-snapshot/web:built-from-it", &container.Config{Labels: inherited})
	docker.AddImage("mine/web:built-from-it", &container.Config{Labels: inherited})
	docker.AddImage("cua-snapshot/web:plain", &container.Config{})
	bad := docker.FindImage(made[1].ImageID)
	bad.Config.Labels[labels.KeyConfig] = "{"

	var got enginetest.Events
	list, err := engineOf(docker).List(t.Context(), catalog.ListOptions{}, got.Progress)
	assert.NilError(t, err)

	assert.Equal(t, names(list), "good")
	assert.Equal(t, len(got.Warnings()), 1)
	assert.Equal(t, got.Warnings()[0], "image cua-snapshot/web:"+string(made[1].ID)+", cua-snapshot/web:bad, cua-snapshot/web:latest "+
		"is not listed because its labels cannot be read: label cua.snapshot.config=\"{\": broken JSON: unexpected end of JSON input")
}
