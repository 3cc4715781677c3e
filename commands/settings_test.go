package commands

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

// The later overrides the earlier: built in, config.json, the environment, the container's labels.
func TestThePolicyComesFromConfigEnvironmentAndLabels(t *testing.T) {
	f := newFixture()
	f.config = map[string]string{"max-snapshots": "1", "max-total": "2", "retention-days": "3", "interval": "run_end"}
	f.environment = map[string]string{"DOCKER_SNAPSHOT_MAX_TOTAL": "20", "DOCKER_SNAPSHOT_RETENTION_DAYS": "30", "DOCKER_SNAPSHOT_AUTO_CLEANUP": "false"}
	want := retention.Default()
	want.MaxSnapshots, want.MaxTotal, want.MaxAge, want.AutoCleanup = 1, 20, 30*24*time.Hour, false
	want.Interval = retention.IntervalRunEnd
	got, err := f.deps().settings.policy()
	assert.NilError(t, err)
	assert.DeepEqual(t, got, want)

	want.MaxAge = time.Hour
	var warnings []string
	got, err = f.deps().settings.policyOf(map[string]string{
		"cua.snapshot.policy.retention": "1h", "cua.snapshot.policy.keep": "many",
	}, func(text string) { warnings = append(warnings, text) })
	assert.NilError(t, err)
	assert.DeepEqual(t, got, want)
	assert.DeepEqual(t, warnings, []string{`invalid value "many" of label cua.snapshot.policy.keep: use a number of snapshots; 0 means no limit`})
}

func TestAWrongPolicySettingSaysWhereItIsFrom(t *testing.T) {
	f := newFixture()
	f.environment = map[string]string{"DOCKER_SNAPSHOT_MAX_SIZE": "much"}
	_, err := f.deps().settings.policy()
	assert.Error(t, err, `invalid value "much" of DOCKER_SNAPSHOT_MAX_SIZE: use a size such as 500MB or 10GB; 0 means no limit`)
}

func TestLostRetention(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 0, "2w": 14 * 24 * time.Hour, "36h": 36 * time.Hour} {
		f := newFixture()
		f.environment = map[string]string{"DOCKER_SNAPSHOT_LOST_RETENTION": value}
		config, err := defaultVolumes().config(f.deps().settings)
		assert.NilError(t, err)
		assert.Equal(t, config.LostRetention, want)
	}
	for _, value := range []string{"0", "soon", "-1h"} {
		f := newFixture()
		f.config = map[string]string{"lost-retention": value}
		_, err := defaultVolumes().config(f.deps().settings)
		assert.ErrorContains(t, err, "of plugins.snapshot.lost-retention in ")
	}
}
