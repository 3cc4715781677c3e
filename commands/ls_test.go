package commands

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"
	"gotest.tools/v3/golden"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

func TestListOutput(t *testing.T) {
	for _, tc := range []struct {
		golden string
		args   []string
	}{
		{"ls-table.golden", nil},
		{"ls-quiet.golden", []string{"-q"}},
		{"ls-quiet.golden", []string{"-q", "--format", "table"}},
		{"ls-json.golden", []string{"--format", "json"}},
		{"ls-template.golden", []string{"--format", "{{.ID}} {{.Tags}} {{.Meta}} {{json .Tags}} {{.Meta.ticket}} {{.Label \"tier\"}} {{upper .Name}}"}},
		{"ls-columns.golden", []string{"--format", `table {{.ID}}\t{{.Description}}\t{{.ContainerID}}\t{{.ImageID}}\t{{.Pinned}}\t{{.Label "tier"}}`}},
		{"ls-no-trunc.golden", []string{"--no-trunc", "--format", `table {{.ID}}\t{{.Description}}\t{{.ContainerID}}\t{{.ImageID}}`}},
	} {
		t.Run(tc.golden, func(t *testing.T) {
			f := newFixture()
			f.engine.list = []catalog.Snapshot{secondSnapshot(), firstSnapshot()}
			assert.Equal(t, f.run(t, append([]string{"ls"}, tc.args...)...), 0, f.stderr.String())
			golden.Assert(t, f.stdout.String(), tc.golden)
			assert.Equal(t, f.stderr.String(), "")
		})
	}
}

// A narrow terminal does without columns, in a fixed order, and never without the IDs.
func TestTheTableFitsTheTerminal(t *testing.T) {
	list := []catalog.Snapshot{secondSnapshot(), firstSnapshot()}
	var all bytes.Buffer
	assert.NilError(t, writeTable(&all, list, noon, 0, true))
	headersAt := func(width int) string {
		var out bytes.Buffer
		assert.NilError(t, writeTable(&out, list, noon, width, true))
		assert.Assert(t, widest(out.String()) <= max(width, len(firstID)), "%d:\n%s", width, &out)
		header, _, _ := strings.Cut(out.String(), "\n")
		return strings.Join(regexp.MustCompile(" {2,}").Split(strings.TrimSpace(header), -1), ",")
	}
	assert.Equal(t, headersAt(widest(all.String())), "SNAPSHOT ID,NAME,CONTAINER,TRIGGER,CREATED,SIZE,VOLUMES,PINNED,EXPIRES,DESCRIPTION")
	var dropped []string
	shown := "SNAPSHOT ID,NAME,CONTAINER,TRIGGER,CREATED,SIZE,VOLUMES,PINNED,EXPIRES,DESCRIPTION"
	for width := widest(all.String()); width > 0; width-- {
		now := headersAt(width)
		for header := range strings.SplitSeq(shown, ",") {
			if !slices.Contains(strings.Split(now, ","), header) {
				dropped = append(dropped, header)
			}
		}
		shown = now
	}
	assert.Equal(t, shown, "SNAPSHOT ID")
	assert.Equal(t, strings.Join(dropped, " "), "DESCRIPTION TRIGGER VOLUMES SIZE EXPIRES PINNED CONTAINER CREATED NAME")
}

func TestWhatNoSnapshotHasIsNoColumn(t *testing.T) {
	f := newFixture()
	f.engine.list = []catalog.Snapshot{secondSnapshot()}
	assert.Equal(t, f.run(t, "ls"), 0)
	assert.Assert(t, is.Regexp(`^SNAPSHOT ID +NAME +CONTAINER +TRIGGER +CREATED +SIZE +VOLUMES\n`, f.stdout.String()))
}

func TestExpiresIn(t *testing.T) {
	for want, expires := range map[string]time.Time{
		"": {}, "in 2 weeks": noon.Add(15 * 24 * time.Hour), "3 hours ago": noon.Add(-3 * time.Hour),
	} {
		f := newFixture()
		s := secondSnapshot()
		s.Expires = expires
		f.engine.list = []catalog.Snapshot{s}
		assert.Equal(t, f.run(t, "ls", "--format", "{{.ExpiresIn}}"), 0)
		assert.Equal(t, f.stdout.String(), want+"\n")
	}
}

// What lacks its archives is marked.
func TestListMarksWhatIsGone(t *testing.T) {
	f := newFixture()
	gone := firstSnapshot()
	gone.Gone = true
	f.engine.list = []catalog.Snapshot{gone}
	assert.Equal(t, f.run(t, "ls", "--format", "{{.VolumeCount}}"), 0)
	assert.Assert(t, is.Regexp(`^\d+( of \d+)?, gone\n$`, f.stdout.String()))
}

func TestAnEmptyListHasItsHeader(t *testing.T) {
	f := newFixture()
	assert.Equal(t, f.run(t, "ls"), 0)
	assert.Assert(t, is.Regexp(`^SNAPSHOT ID +NAME +CONTAINER +TRIGGER +CREATED +SIZE +VOLUMES\n$`, f.stdout.String()))
}

func TestListOptions(t *testing.T) {
	f := newFixture()
	assert.Equal(t, f.run(t, "list", "web", "--search", "up", "--sort", "size", "-r", "-n", "3"), 0)
	assert.Equal(t, f.engine.listed.Container, "web")
	assert.Equal(t, f.engine.listed.Search, "up")
	assert.Equal(t, f.engine.listed.Sort, catalog.SortSize)
	assert.Equal(t, f.engine.listed.Reverse, true)
	assert.Equal(t, f.engine.listed.Last, 3)
}

func TestListRefusesWithoutAskingTheEngine(t *testing.T) {
	for _, tc := range []struct {
		name, message string
		args          []string
		status        int
	}{
		{"two containers", "at most 1 argument", []string{"a", "b"}, 125},
		{"empty container", "container name cannot be empty", []string{""}, 1},
		{"filter without value", "use key=value", []string{"-f", "name"}, 125},
		{"unknown filter", "unknown key", []string{"--filter", "colour=red"}, 125},
		{"order", "use one of created, size, name", []string{"--sort", "age"}, 125},
		{"negative", "--last", []string{"-n", "-1"}, 125},
		{"template", "--format", []string{"--format", "table {{.ID"}, 125},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			assert.Equal(t, f.run(t, append([]string{"ls"}, tc.args...)...), tc.status)
			assert.Assert(t, is.Contains(f.stderr.String(), tc.message))
			assert.Equal(t, f.engine.calls, 0)
		})
	}
}

func TestAFieldThatDoesNotExist(t *testing.T) {
	f := newFixture()
	f.engine.list = []catalog.Snapshot{firstSnapshot()}
	assert.Equal(t, f.run(t, "ls", "--format", "{{.Colour}}"), 125)
	assert.Assert(t, is.Contains(f.stderr.String(), `invalid argument "{{.Colour}}" for "--format" flag: the result has no field Colour`))
	assert.Equal(t, f.stdout.String(), "")
	assert.Equal(t, f.engine.calls, 0)
}

func TestListFormatComesFromFlagEnvironmentOrConfig(t *testing.T) {
	for _, tc := range []struct {
		name                string
		environment, config string
		args                []string
		stdout, stderr      string
		status              int
	}{
		{name: "config", config: "{{.Name}}", stdout: "before\n"},
		{name: "environment", environment: "{{.Container}}", config: "{{.Name}}", stdout: "web\n"},
		{name: "flag", environment: "{{.Container}}", config: "{{.Name}}", args: []string{"--format", "{{.ContainerImage}}"}, stdout: "nginx:1.29\n"},
		{name: "quiet", environment: "{{.Container}}", args: []string{"-q"}, stdout: string(firstID) + "\n"},
		{name: "bad environment", environment: "{{", status: 1, stderr: `invalid value "{{" of DOCKER_SNAPSHOT_FORMAT: `},
		{name: "bad config", config: "{{", status: 1, stderr: `invalid value "{{" of plugins.snapshot.format in /home/me/.docker/config.json: `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			f.engine.list = []catalog.Snapshot{firstSnapshot()}
			f.environment = map[string]string{"DOCKER_SNAPSHOT_FORMAT": tc.environment}
			f.config = map[string]string{"format": tc.config}
			assert.Equal(t, f.run(t, append([]string{"ls"}, tc.args...)...), tc.status)
			assert.Equal(t, f.stdout.String(), tc.stdout)
			assert.Assert(t, is.Contains(f.stderr.String(), tc.stderr))
		})
	}
}
