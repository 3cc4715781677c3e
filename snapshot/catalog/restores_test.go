package catalog

import (
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

func TestRestoresAreKnownByWhatTheyLeft(t *testing.T) {
	const one, safety, gone labels.ID = "20260131-100000-000001", "20260131-110000-000002", "20260131-120000-000003"
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	restored := func(id, name, undo string, at time.Time) container.Summary {
		return container.Summary{ID: id, Names: []string{"/" + name}, Created: at.Unix(), Labels: map[string]string{
			labels.KeyRestoredFrom: string(one), labels.KeyRestoredAt: labels.FormatTime(at), labels.KeyUndo: undo,
		}}
	}
	before := func(id labels.ID, at time.Time) Snapshot {
		return Snapshot{Record: labels.Record{ID: id, Created: at, Restores: one, Container: labels.Container{Name: "web"}}}
	}
	inherited := restored("00", "other", "", noon)
	inherited.Labels[labels.KeyRestoredFrom] = ""
	unmarked := restored("04", "old", "", noon.Add(-5*time.Hour))
	delete(unmarked.Labels, labels.KeyRestoredAt)

	got := Traces{
		Snapshots: []Snapshot{before(safety, noon), before(gone, noon.Add(-time.Hour)), {Record: labels.Record{ID: one}}},
		Containers: []container.Summary{
			restored("01", "web", string(safety), noon.Add(time.Second)), restored("02", "copy", "", noon.Add(-2*time.Hour)),
			restored("03", "bold", labels.UndoNone, noon.Add(-3*time.Hour)), inherited, unmarked,
		},
		Sessions: []session.Session{{RunID: "r", Container: "web", Restores: []session.Restore{
			{At: noon, Snapshot: one, Safety: gone, Status: session.OutcomeRestored},
			{At: noon, Snapshot: one, Status: session.OutcomeRolledBack},
		}}, {RunID: "s", Container: "bold", Restores: []session.Restore{
			{At: noon.Add(-3 * time.Hour).Add(time.Second), Snapshot: one, Status: session.OutcomeRestored},
			{At: noon.Add(-4 * time.Hour), Snapshot: one, Status: session.OutcomeRestored},
		}}},
	}.Restores()

	assert.DeepEqual(t, got, []Restore{
		{Snapshot: one, At: noon.Add(time.Second), Container: "web", ContainerID: "01", InPlace: true, Safety: safety},
		{Snapshot: one, At: noon.Add(-time.Hour), Container: "web", InPlace: true, Safety: gone, RunID: "r"},
		{Snapshot: one, At: noon.Add(-2 * time.Hour), Container: "copy", ContainerID: "02"},
		{Snapshot: one, At: noon.Add(-3 * time.Hour), Container: "bold", ContainerID: "03", InPlace: true, RunID: "s"},
		{Snapshot: one, At: noon.Add(-4 * time.Hour), Container: "bold", InPlace: true, RunID: "s"},
		{Snapshot: one, At: noon.Add(-5 * time.Hour), Container: "old", ContainerID: "04"},
	})
}
