package retention

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

func TestUsesTellHowMuchOfEachLimitIsUsed(t *testing.T) {
	got := Uses(Situation{
		Snapshots: read(t, "web 1h\nweb 2h\nweb 3h manual\nweb 4h pinned\ndb 5h\ndb 6h name=x\ndb 7h agent name=y"),
		Sets:      []Set{{Rest: NoRest, Snapshot: 0, Bytes: 100}, {Rest: NoRest, Snapshot: 2, Bytes: 1000}, {Rest: 0, Snapshot: 4, Bytes: 50}},
		Lines:     map[string]Policy{"web": {MaxSnapshots: 3, MaxAge: day}},
		Options:   Options{Policy: Policy{MaxSnapshots: 4, MaxAgent: 8, MaxTotal: 9, MaxSize: 5000}}, Now: now,
	})
	assert.DeepEqual(t, got, []Use{
		{Limit: NameMaxSnapshots, Line: "db", Used: 1, Most: 4},
		{Limit: NameMaxAgent, Line: "db", Used: 1, Most: 8},
		{Limit: NameMaxSnapshots, Line: "web", Used: 2, Most: 3},
		{Limit: NameRetentionDays, Line: "web", Used: int64((2 * time.Hour).Seconds()), Most: 86400},
		{Limit: NameMaxTotal, Used: 3, Most: 9},
		{Limit: NameMaxSize, Used: 150, Most: 5000},
	})
}

func TestAbsentLimitsHaveNoUse(t *testing.T) {
	assert.Equal(t, len(Uses(Situation{Snapshots: read(t, "web 1h"), Now: now})), 0)
}
