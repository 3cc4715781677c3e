package session_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 5, time.UTC)

func full() session.Session {
	status := 3
	return session.Session{
		RunID: "run-1", Command: []string{"agent", "--go"}, Container: "web", ContainerID: strings.Repeat("ab", 32), Interval: "manual",
		Volumes: []session.Mount{{Name: "data", Destination: "/data"}}, Binds: []session.Mount{{Source: "/srv", Destination: "/srv"}},
		Started: noon, Ended: noon.Add(time.Second), ExitCode: &status, Status: session.StatusFailed, Next: 3,
		Snapshots:     []session.Snapshot{{Number: 2, ID: "20260314-092653-58979a", Trigger: labels.TriggerRunStart, Container: "web", Root: strings.Repeat("0f", 32)}},
		Restores:      []session.Restore{{At: noon, Snapshot: "20260314-092653-58979a", Status: session.OutcomeRestored}},
		EngineNetwork: []session.NetworkEvent{{At: noon, Action: "connect", Network: "front"}},
		NetworkEvents: json.RawMessage(`[{"a":1}]`),
	}
}

func TestEncodeThenDecode(t *testing.T) {
	text, err := session.Encode(full())
	assert.NilError(t, err)
	decoded, err := session.Decode(text)
	assert.NilError(t, err)
	assert.DeepEqual(t, decoded, full())
}

func TestDecodeRefusesWhatItCannotTrust(t *testing.T) {
	for want, change := range map[string]func(*session.Session){
		"invalid run ID":         func(s *session.Session) { s.RunID = "a#b" },
		"not a container name":   func(s *session.Session) { s.Container = "../web" },
		"when the run started":   func(s *session.Session) { s.Started = time.Time{} },
		"unknown status":         func(s *session.Session) { s.Status = "fine" },
		"is negative":            func(s *session.Session) { s.Next = -1 },
		"has the number -2":      func(s *session.Session) { s.Snapshots[0].Number = -2 },
		"of container \"a/b\"":   func(s *session.Session) { s.Snapshots[0].Container = "a/b" },
		"not a snapshot ID":      func(s *session.Session) { s.Snapshots[0].ID = "latest" },
		"has the root":           func(s *session.Session) { s.Snapshots[0].Root = "x" },
		"\"x\" is not a snapsho": func(s *session.Session) { s.Restores[0].Snapshot = "x" },
		"not a JSON list":        func(s *session.Session) { s.NetworkEvents = json.RawMessage(`{}`) },
		"longer than":            func(s *session.Session) { s.Command = []string{strings.Repeat("x", 4<<20)} },
	} {
		s := full()
		change(&s)
		_, err := session.Encode(s)
		assert.ErrorContains(t, err, want)
	}
	_, err := session.Decode("{")
	assert.ErrorContains(t, err, "read the record of a run")
}

func FuzzDecode(f *testing.F) {
	text, err := session.Encode(full())
	assert.NilError(f, err)
	f.Add(text)
	f.Add(`{"run_id":"a","container":"b","started":"2026-03-14T12:00:00Z","status":"unfinished"}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := session.Decode(text)
		if err != nil {
			return
		}
		again, err := session.Encode(s)
		if err != nil { // encoding may make it longer than is allowed
			assert.ErrorContains(t, err, "longer than")
			return
		}
		_, err = session.Decode(again)
		assert.NilError(t, err)
	})
}

func TestParseWord(t *testing.T) {
	for word, want := range map[string]struct {
		runID  string
		number int
	}{
		"run-1#0": {"run-1", 0}, "a/b:c@d#-1": {"a/b:c@d", -1}, "X#12": {"X", 12},
	} {
		runID, number, ok := session.ParseWord(word)
		assert.Assert(t, ok, word)
		assert.Equal(t, runID, want.runID)
		assert.Equal(t, number, want.number)
	}
	for _, word := range []string{"", "web", "web:latest", "#0", "run#", "run#x", "run#99999999999", "a b#0", "a#b#0", strings.Repeat("x", 129) + "#0"} {
		_, _, ok := session.ParseWord(word)
		assert.Assert(t, !ok, word)
	}
}

func TestNumbers(t *testing.T) {
	var s session.Session
	first, second := s.Claim(), s.Claim()
	assert.Equal(t, first, 0)
	assert.Equal(t, second, 1)
	s.GiveBack(first) // a later one was claimed since: it stays a gap
	assert.Equal(t, s.Claim(), 2)
	s.GiveBack(2)
	assert.Equal(t, s.Claim(), 2)
	s.Add(session.Snapshot{Number: 2})
	s.Add(session.Snapshot{Number: 1})
	assert.Equal(t, s.Snapshots[0].Number, 1)
}

func TestOfVeryManyNetworkEventsTheLatestStay(t *testing.T) {
	var s session.Session
	for i := range 1100 {
		s.HeardNetwork(session.NetworkEvent{At: noon.Add(time.Duration(i))})
	}
	assert.Equal(t, len(s.EngineNetwork), 1000)
	assert.Equal(t, s.EngineNetwork[999].At, noon.Add(1099))
}

func TestCheckNetworkEvents(t *testing.T) {
	assert.NilError(t, session.CheckNetworkEvents([]byte(` [{"a":1}, 2] `)))
	assert.ErrorContains(t, session.CheckNetworkEvents(nil), "nothing was given")
	assert.ErrorContains(t, session.CheckNetworkEvents([]byte(`{}`)), "not a JSON list")
	assert.ErrorContains(t, session.CheckNetworkEvents(make([]byte, session.MaxNetworkBytes+1)), "more than")
}

// Both kinds of image store find the same configuration, each by its own table of contents.
func TestArchive(t *testing.T) {
	archive, err := session.Archive("cua-snapshot-run/a:session", "arm64", "text")
	assert.NilError(t, err)
	members := map[string][]byte{}
	for files := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		assert.NilError(t, err)
		members[header.Name], err = io.ReadAll(files)
		assert.NilError(t, err)
	}
	var saved []struct{ Config string }
	assert.NilError(t, json.Unmarshal(members["manifest.json"], &saved))
	var config struct {
		Architecture string
		Config       struct{ Labels map[string]string }
	}
	assert.NilError(t, json.Unmarshal(members[saved[0].Config], &config))
	assert.Equal(t, config.Architecture, "arm64")
	assert.DeepEqual(t, config.Config.Labels, map[string]string{labels.KeyVersion: "1", labels.KeySession: "text"})
	type descriptor struct{ Digest string }
	var index struct{ Manifests []descriptor }
	assert.NilError(t, json.Unmarshal(members["index.json"], &index))
	var manifest struct{ Config descriptor }
	assert.NilError(t, json.Unmarshal(members["blobs/sha256/"+strings.TrimPrefix(index.Manifests[0].Digest, "sha256:")], &manifest))
	assert.Equal(t, "blobs/sha256/"+strings.TrimPrefix(manifest.Config.Digest, "sha256:"), saved[0].Config)
}
