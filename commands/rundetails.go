package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/docker/cli/cli/command/formatter"
	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// runSummary is what is printed of a run in a list.
type runSummary struct {
	RunID          string `json:"run_id"`
	Container      string `json:"container"`
	ContainerID    string `json:"container_id"`
	Command        argv   `json:"command"`
	Interval       string `json:"interval"`
	Status         string `json:"status"`
	ExitCode       *int   `json:"exit_code"`
	Started        string `json:"started"`
	Ended          string `json:"ended"`
	SnapshotCount  int    `json:"snapshot_count"` // of those that exist
	SnapshotsTaken int    `json:"snapshots_taken"`
}

// existing are the IDs of the snapshots that exist.
type existing map[labels.ID]bool

// existingSnapshots asks the engine for all snapshots: a session still names those that were removed.
func existingSnapshots(ctx context.Context, eng engine, p plan.Progress) (existing, error) {
	all, err := eng.List(ctx, catalog.ListOptions{}, p)
	ids := existing{}
	for _, s := range all {
		ids[s.ID] = true
	}
	return ids, err
}

func newRunSummary(s session.Session, ids existing) runSummary {
	r := runSummary{
		RunID: s.RunID, Container: s.Container, ContainerID: s.ContainerID, Command: append(argv{}, s.Command...), Interval: s.Interval,
		Status: string(s.Status), ExitCode: s.ExitCode, Started: rfc3339(s.Started), Ended: rfc3339(s.Ended), SnapshotsTaken: len(s.Snapshots),
	}
	for _, one := range s.Snapshots {
		if ids[one.ID] {
			r.SnapshotCount++
		}
	}
	return r
}

// argv is a command that templates print with blanks, and JSON as a list.
type argv []string

func (a argv) String() string { return strings.Join(a, " ") }

// runDetails is what runs inspect prints.
type runDetails struct {
	runSummary
	Volumes             []sessionMount        `json:"volumes"`
	Binds               []sessionMount        `json:"binds"`
	Snapshots           []sessionSnapshot     `json:"snapshots"`
	Restores            []sessionRestore      `json:"restores"`
	EngineNetworkEvents []sessionNetworkEvent `json:"engine_network_events"`
	NetworkEvents       []any                 `json:"network_events"`
}

// sessionMount is a volume or a bind mount that the container had when the run started.
type sessionMount struct {
	Name        string `json:"name"`   // of a volume
	Source      string `json:"source"` // of a bind mount
	Destination string `json:"destination"`
}

// sessionSnapshot is a snapshot that was taken in a run. It may have been removed since.
type sessionSnapshot struct {
	Number    int    `json:"number"`
	ID        string `json:"id"`
	Trigger   string `json:"trigger"`
	Container string `json:"container"`
	Root      string `json:"root"` // of the state in it
	Removed   bool   `json:"removed"`
}

// sessionRestore is a restore in place while the run was under way.
type sessionRestore struct {
	At       string `json:"at"`
	Snapshot string `json:"snapshot"`
	Safety   string `json:"safety"`
	Status   string `json:"status"`
}

// sessionNetworkEvent is that the container was connected to a network, or disconnected from one.
type sessionNetworkEvent struct {
	At      string `json:"at"`
	Action  string `json:"action"`
	Network string `json:"network"`
}

func newRunDetails(s session.Session, ids existing) runDetails {
	d := runDetails{
		runSummary: newRunSummary(s, ids),
		Volumes:    convert(s.Volumes, func(m session.Mount) sessionMount { return sessionMount(m) }),
		Binds:      convert(s.Binds, func(m session.Mount) sessionMount { return sessionMount(m) }),
		Snapshots: convert(s.Snapshots, func(one session.Snapshot) sessionSnapshot {
			return sessionSnapshot{Number: one.Number, ID: string(one.ID), Trigger: string(one.Trigger), Container: one.Container, Root: one.Root, Removed: !ids[one.ID]}
		}),
		Restores: convert(s.Restores, func(r session.Restore) sessionRestore {
			return sessionRestore{At: rfc3339(r.At), Snapshot: string(r.Snapshot), Safety: string(r.Safety), Status: string(r.Status)}
		}),
		EngineNetworkEvents: convert(s.EngineNetwork, func(e session.NetworkEvent) sessionNetworkEvent {
			return sessionNetworkEvent{At: rfc3339(e.At), Action: e.Action, Network: e.Network}
		}),
		NetworkEvents: []any{},
	}
	if len(s.NetworkEvents) > 0 {
		_ = json.Unmarshal(s.NetworkEvents, &d.NetworkEvents) // it was checked when the session was read
	}
	return d
}

// runRow is a run in a list.
type runRow struct {
	formatter.HeaderContext
	runSummary
	age time.Duration // since it started
}

// StartedSince is how long ago the run started.
func (r *runRow) StartedSince() string { return units.HumanDuration(r.age) + " ago" }

// Snapshots counts the snapshots of the run and, if some were removed, those that it took.
func (r *runRow) Snapshots() string {
	if r.SnapshotCount == r.SnapshotsTaken {
		return strconv.Itoa(r.SnapshotCount)
	}
	return fmt.Sprintf("%d of %d", r.SnapshotCount, r.SnapshotsTaken)
}

// MarshalJSON writes the run as it is everywhere.
func (r *runRow) MarshalJSON() ([]byte, error) { return json.Marshal(r.runSummary) }

// ExitCode is what templates show of the exit status: nothing, if there is none.
func (r *runRow) ExitCode() string {
	if r.runSummary.ExitCode == nil {
		return ""
	}
	text, _ := json.Marshal(*r.runSummary.ExitCode) // a number
	return string(text)
}

// writeRuns writes runs in the format of the context.
func writeRuns(c formatter.Context, all []session.Session, ids existing, now time.Time) error {
	header := &runRow{}
	header.Header = formatter.SubHeaderContext{
		"RunID": "RUN", "Container": "CONTAINER", "ContainerID": formatter.ContainerIDHeader, "Command": "COMMAND", "Interval": "INTERVAL",
		"Status": formatter.StatusHeader, "ExitCode": "EXIT", "Started": "STARTED", "StartedSince": "STARTED", "Ended": "ENDED", "SnapshotCount": "SNAPSHOTS", "SnapshotsTaken": "TAKEN", "Snapshots": "SNAPSHOTS",
	}
	return c.Write(header, func(format func(formatter.SubContext) error) error {
		for _, s := range all {
			if err := format(&runRow{runSummary: newRunSummary(s, ids), age: now.Sub(s.Started)}); err != nil {
				return err
			}
		}
		return nil
	})
}
