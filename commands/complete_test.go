package commands

import (
	"errors"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

func TestCompletion(t *testing.T) {
	for _, tc := range []struct{ name, args, want string }{
		{"commands", "snapshot c|", "cat cp create"},
		{"snapshots with attachments", "snapshot cat web:|", "web:before web:latest"},
		{"one attachment only", "snapshot cat before log |", ""},
		{"containers", "snapshot create |", "web db"},
		{"no completion for names", "snapshot create web |", ""},
		{"container of a list", "snapshot ls |", "web db"},
		{"snapshots", "snapshot restore |", "web:before web:latest " + string(firstID)},
		{"snapshots by prefix", "snapshot restore web:|", "web:before web:latest"},
		{"one snapshot only", "snapshot restore web:before |", ""},
		{"many go back together", "snapshot restore --replace web:before |", "web:latest " + string(firstID)},
		{"containers together", "snapshot create --with |", "web db"},
		{"many, none twice", "snapshot rm web:before |", "web:latest " + string(firstID)},
		{"filter values", "snapshot ls --filter pinned=|", "pinned=true pinned=false"},
		{"filter by container", "snapshot ls --filter container=|", "container=web container=db"},
		{"filter by snapshot", "snapshot ls --filter since=web:l|", "since=web:latest"},
		{"filter by anything", "snapshot ls --filter name=|", ""},
		{"order", "snapshot ls --sort |", "created size name"},
		{"format of lists", "snapshot ls --format |", "table json"},
		{"format", "snapshot rm --format |", "json"},
		{"progress", "snapshot create --progress |", "auto tty plain quiet json"},
		{"volumes", "snapshot create web --volume |", "data-of-web"},
		{"volumes to leave out", "snapshot create --exclude-volume |", "data-of-"},
		{"parts", "snapshot restore web:before --only |", "rootfs data-of-web"},
		{"stores", "snapshot rm --store |", "cua-snapshots"},
		{"networks", "snapshot restore --network |", "front"},
		{"option without", "snapshot create --message |", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, strings.Join(complete(t, newFixture(), tc.args), " "), tc.want)
		})
	}
}

func TestAttachmentsComplete(t *testing.T) {
	f := newFixture()
	f.engine.list = append(f.engine.list, firstSnapshot())
	assert.DeepEqual(t, complete(t, f, "snapshot cat before |"), []string{"log"})
	assert.Equal(t, len(complete(t, newFixture(), "snapshot cat before |")), 0, "of a snapshot that is not there")
}

func TestCompletionDescribes(t *testing.T) {
	f := newFixture()
	f.engine.services = []catalog.Service{
		{Name: "cache", Container: "shop-cache-1", Project: "shop", Directory: "/src/shop"}, {Name: "other", Container: "other-1", Directory: "/src/other"},
	}
	docker := f.docker()
	docker.SetArgs([]string{"__complete", "snapshot", "create", ""})
	assert.NilError(t, docker.ExecuteContext(t.Context()))
	assert.Equal(t, f.stdout.String(), "web\tnginx, running\ndb\tpostgres, \\u001b[1mrunning\ncache\tservice: container shop-cache-1\n:4\n")
	f = newFixture()
	docker = f.docker()
	docker.SetArgs([]string{"__complete", "snapshot", "ls", "--filter", ""})
	assert.NilError(t, docker.ExecuteContext(t.Context()))
	for _, key := range catalog.FilterKeys() {
		assert.Assert(t, is.Regexp(`(?m)^`+key+`=?\t\w`, f.stdout.String()))
	}
	for _, trigger := range labels.Triggers() {
		assert.Assert(t, about[string(trigger)] != "")
	}
}

func TestFilterKeysComplete(t *testing.T) {
	keys := complete(t, newFixture(), "snapshot ls --filter |")
	assert.Assert(t, is.Contains(keys, "container="))
	assert.Assert(t, is.Contains(keys, "meta."))
}

func TestTriggersComplete(t *testing.T) {
	assert.Assert(t, is.Contains(complete(t, newFixture(), "snapshot create --trigger |"), "before_action"))
	assert.Assert(t, is.Contains(complete(t, newFixture(), "snapshot ls --filter trigger=|"), "trigger=before_action"))
}

func TestNothingCompletesWithoutAnEngine(t *testing.T) {
	for _, args := range []string{"snapshot create |", "snapshot rm |"} {
		f := newFixture()
		f.connect = errors.New("out of reach")
		assert.Equal(t, len(complete(t, f, args)), 0)
		f = newFixture()
		f.engine.err = errors.New("broken")
		assert.Equal(t, len(complete(t, f, args)), 0)
	}
}

// complete returns what the shell offers where | is.
func complete(t *testing.T, f *fixture, line string) []string {
	t.Helper()
	docker := f.docker()
	docker.SetArgs(append([]string{"__completeNoDesc"}, strings.Split(strings.TrimSuffix(line, "|"), " ")...))
	assert.NilError(t, docker.ExecuteContext(t.Context()))
	var words []string
	for word := range strings.Lines(f.stdout.String()) {
		if !strings.HasPrefix(word, ":") {
			words = append(words, strings.TrimSpace(word))
		}
	}
	return words
}
