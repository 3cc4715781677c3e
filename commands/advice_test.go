package commands

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/docker/docker/client"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

func TestErrorsSayWhatToDoNext(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"plain", errors.New("it broke"), "it broke"},
		{
			"untagged", &catalog.UntaggedError{ID: firstID, Ref: "cua-snapshot/web:latest", IDRef: "cua-snapshot/web:" + string(firstID)},
			"snapshot " + string(firstID) + " has lost the tag cua-snapshot/web:" + string(firstID) + ", but not its image: that is still there as cua-snapshot/web:latest\n" +
				"This makes it whole again: docker tag cua-snapshot/web:latest cua-snapshot/web:" + string(firstID),
		},
		{
			"not found", &catalog.NotFoundError{Word: "x"},
			"no such snapshot: x\n'docker snapshot ls' lists the snapshots there are",
		},
		{
			"no attachment", &archives.NoAttachmentError{Snapshot: firstID, Attachment: "x"}, "snapshot " + string(firstID) + " has no attachment \"x\"\n" +
				"It has those that this lists: docker snapshot inspect --format '{{json .Attachments}}' " + string(firstID),
		},
		{
			"ambiguous", &catalog.AmbiguousError{Word: "2026", Candidates: []string{"web:a", "db:b"}},
			"\"2026\" is ambiguous, it could be any of:\n  web:a\n  db:b\nUse one of these, or more of the ID",
		},
		{
			"name taken, wrapped", fmt.Errorf("tag: %w", &catalog.NameTakenError{Ref: "web:a", Reuse: true}),
			"tag: snapshot web:a exists already\nUse another name, or --reuse to replace it",
		},
		{
			"name taken by something else", &catalog.NameTakenError{Ref: "web:a", Tag: "cua-snapshot/web:a"},
			"web:a exists already, and is not a snapshot of this container that could be replaced\n" +
				"Use another name, or free this one, if nobody needs what has it: docker image rm cua-snapshot/web:a",
		},
		{
			"pinned, to be replaced", &catalog.PinnedError{ID: firstID, Replaced: true},
			"snapshot " + string(firstID) + " is pinned\nUse another name, or remove it first: docker snapshot rm --force " + string(firstID),
		},
		{"pinned", &catalog.PinnedError{ID: firstID, Name: "before"}, "snapshot before (" + string(firstID) + ") is pinned\nUse --force to remove it anyway"},
		{
			"it would freeze itself", fmt.Errorf("read: %w", &dockerop.SelfError{Container: "web"}),
			"read: freeze container web: this program runs in it\nRun it elsewhere, or use --pause=none; what is captured may then be torn",
		},
		{"it would stop itself", &dockerop.SelfError{Container: "web", Stop: true}, "stop container web: this program runs in it\nRun it elsewhere"},
		{
			"a stale task", &dockerop.StaleTaskError{Container: "9e8f0c1d2b3a4f5e", Err: errors.New("task 9e8f0c1d2b3a4f5e: already exists: unknown")},
			"the engine keeps a process of the earlier run of container 9e8f0c1d2b3a: task 9e8f0c1d2b3a4f5e: already exists: unknown\n" +
				"End that process on the engine's machine (this finds it: pgrep -af 'containerd-shim.*9e8f0c1d2b3a4f5e'), or restart the machine. Then try again",
		},
		{
			"a volume is in use", &replace.InUseError{Volume: "data", User: "app", Container: "web"},
			"volume data is in use by container app\nStop container app, then type: docker snapshot recover web",
		},
		{
			"store is full", fmt.Errorf("read volumes: %w", &volumebackup.FullError{Store: "mine", Err: errors.New("write /store/tmp/x: no space left on device")}),
			"read volumes: store mine is full\nFree space with docker snapshot rm",
		},
		{
			"content is missing", &volumebackup.MissingError{Snapshot: "20260101-000000-abcdef", Volume: "pgdata", Store: "mine", Err: errors.New("not found")},
			"the content of volume pgdata in snapshot 20260101-000000-abcdef is not in store mine\n" +
				"Was volume mine removed (docker volume prune)? Use another snapshot, or the --store that holds this one. " +
				"This brings back the rest, with empty volumes: docker snapshot restore --volumes none 20260101-000000-abcdef",
		},
		{
			"no store", &volumebackup.NoStoreError{Store: "mine"},
			"there is no store mine\nWas volume mine removed (docker volume prune)? Use the --store that holds this snapshot",
		},
		{
			"the store of a snapshot is gone", &volumebackup.NoStoreError{Store: "mine", Snapshot: string(firstID)},
			"the volumes of snapshot " + string(firstID) + " are missing: the store mine that held them is not there\n" +
				"Was volume mine removed (docker volume prune)? Use the --store that holds this snapshot. " +
				"This brings back the rest, with empty volumes: docker snapshot restore --volumes none " + string(firstID),
		},
		{
			"a journal of another version", fmt.Errorf("check: %w", &volumebackup.JournalVersionError{Version: "3", Plugin: "v9.1.0"}),
			"check: read journal: it is of version \"3\", and this plugin understands only version 2\n" +
				"docker snapshot v9.1.0 wrote it: recover with that version, or with a newer one",
		},
		{
			"a journal of nobody knows what", &volumebackup.JournalVersionError{Plugin: "\x1b[2J"},
			"read journal: it is of version \"\", and this plugin understands only version 2\n" +
				"docker snapshot of another version wrote it: recover with that version, or with a newer one",
		},
		{
			"several", errors.Join(errors.New("one"), &catalog.PinnedError{ID: firstID}),
			"one\nsnapshot " + string(firstID) + " is pinned\nUse --force to remove it anyway",
		},
		{
			"problems", &plan.ProblemsError{Problems: []plan.Problem{
				{Kind: plan.ProblemNoNetwork, Subject: "n", Text: "network n does not exist"},
				{Kind: plan.ProblemNameTaken, Subject: "c", Text: "a container named c exists already"},
				{Kind: "of another kind", Text: "and more"},
			}},
			"cannot restore:\n" +
				"  - network n does not exist: create it, use --network to join another, or --skip-missing to leave it out\n" +
				"  - a container named c exists already: use another --name\n" +
				"  - and more",
		},
	} {
		t.Run(tc.name, func(t *testing.T) { assert.Equal(t, explain(tc.err), tc.want) })
	}
}

// Every error of the client about the connection is told as docker tells it.
func TestConnectionErrorsAreToldByTheClient(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NilError(t, err)
	host := "tcp://" + listener.Addr().String()
	assert.NilError(t, listener.Close()) // now nobody listens there
	docker, err := client.NewClientWithOpts(client.WithHost(host))
	assert.NilError(t, err)
	_, err = docker.Ping(t.Context())
	assert.Assert(t, client.IsErrConnectionFailed(err))
	assert.Equal(t, explain(fmt.Errorf("inspect container web: %w", err)),
		"Cannot connect to the Docker daemon at "+host+". Is the docker daemon running?")
}

func TestEveryKindOfProblemHasASolution(t *testing.T) {
	source, err := os.ReadFile("../snapshot/plan/problem.go")
	assert.NilError(t, err)
	kinds := regexp.MustCompile(`Problem\w+ +ProblemKind = "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1)
	assert.Equal(t, len(kinds), len(solutions))
	for _, kind := range kinds {
		assert.Assert(t, solutions[plan.ProblemKind(kind[1])] != "", "%s", kind[1])
	}
}

func TestPromoteNamesOnlyFlagsThatItHas(t *testing.T) {
	flags := newPromoteCommand(deps{}).Flags()
	for kind := range solutions {
		for _, word := range flagWord.FindAllString(solution(plan.Problem{Kind: kind}, true), -1) {
			assert.Check(t, flags.Lookup(strings.TrimLeft(word, "-")) != nil, "%s: %s", kind, word)
		}
	}
	for kind, want := range map[plan.ProblemKind]string{
		plan.ProblemNoNetwork:   "create it",
		plan.ProblemPortTaken:   "stop what holds it",
		plan.ProblemVolumeInUse: "stop it, or use --stop-others",
		plan.ProblemNoDevice:    "",
		plan.ProblemCopyPort:    "stop the copy first, with docker stop",
	} {
		assert.Check(t, is.Equal(solution(plan.Problem{Kind: kind}, true), want))
	}
}

func TestNotesAndWarningsSayWhatToDo(t *testing.T) {
	for topic, want := range map[plan.Topic]string{
		plan.TopicReadOnlyBind: "it (--binds shared: writable)",
		plan.TopicOriginalGone: "it: --replace brings it back under its own name, with its own volumes",
		plan.TopicUnfinished:   "it. When the cause is removed, type: docker snapshot recover web",
		"":                     "it",
	} {
		f := newFixture()
		f.engine.restored = restoredCopy()
		f.engine.events = []plan.Event{{Level: plan.LevelWarning, Text: "it", Topic: topic, Subject: "web"}}
		assert.Equal(t, f.run(t, "restore", "--format", "{{.Warnings}}", "x"), 0)
		assert.Equal(t, withoutState(f.stderr.String()), "WARNING: "+want+"\n")
		assert.Equal(t, f.stdout.String(), want+"\n")
	}
}
