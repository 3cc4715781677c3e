package retention

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

func TestEverySettingChangesThePolicyOrFails(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       func(*Policy) // nil: it is refused
	}{
		{NameEnabled, "false", func(p *Policy) { p.Enabled = false }},
		{NameEnabled, "perhaps", nil},
		{NameInterval, "every_action", func(p *Policy) { p.Interval = IntervalEveryAction }},
		{NameInterval, "15m", nil},
		{NameMaxSnapshots, "3", func(p *Policy) { p.MaxSnapshots = 3 }},
		{NameMaxSnapshots, "0", func(p *Policy) { p.MaxSnapshots = 0 }},
		{NameMaxSnapshots, "-1", nil},
		{NameMaxSnapshots, "99999999999", nil},
		{NameMaxTotal, "7", func(p *Policy) { p.MaxTotal = 7 }},
		{NameMaxSize, "500MB", func(p *Policy) { p.MaxSize = 500_000_000 }},
		{NameMaxSize, "0", func(p *Policy) { p.MaxSize = 0 }},
		{NameMaxSize, "-1", nil},
		{NameMaxSize, "much", nil},
		{NameRetentionDays, "30", func(p *Policy) { p.MaxAge = 30 * day }},
		{NameRetentionDays, "36501", nil},
		{NameRetentionDays, "1.5", nil},
		{NameAutoCleanup, "0", func(p *Policy) { p.AutoCleanup = false }},
		{"nonsense", "1", nil},
	} {
		t.Run(tc.name+"="+tc.text, func(t *testing.T) {
			got, want := Default(), Default()
			err := got.Set(tc.name, tc.text)
			if tc.want != nil {
				tc.want(&want)
				assert.NilError(t, err)
			} else {
				assert.Assert(t, err != nil)
			}
			assert.DeepEqual(t, got, want)
		})
	}
}

func TestLabelsChangeThePolicyOfTheirContainer(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   func(*Policy)
		wrong  string
	}{
		"none":                 {},
		"short names":          {labels: map[string]string{"keep": "3", "retention": "36h"}, want: func(p *Policy) { p.MaxSnapshots, p.MaxAge = 3, 36*time.Hour }},
		"long names":           {labels: map[string]string{"max-snapshots": "3", "retention-days": "2"}, want: func(p *Policy) { p.MaxSnapshots, p.MaxAge = 3, 2*day }},
		"both: the short ones": {labels: map[string]string{"max-snapshots": "3", "keep": "4", "retention-days": "2", "retention": "1h"}, want: func(p *Policy) { p.MaxSnapshots, p.MaxAge = 4, time.Hour }},
		"switches":             {labels: map[string]string{"enabled": "false", "auto-cleanup": "false"}, want: func(p *Policy) { p.Enabled, p.AutoCleanup = false, false }},
		"interval of runs":     {labels: map[string]string{"interval": "run_end"}, want: func(p *Policy) { p.Interval = IntervalRunEnd }},
		"interval of a watch":  {labels: map[string]string{"interval": "15m"}},
		"not a container's":    {labels: map[string]string{"max-total": "1", "max-size": "1"}},
		"empty, of an image":   {labels: map[string]string{"keep": ""}},
		"wrong, with a good one": {
			labels: map[string]string{"keep": "many", "retention": "1h"}, want: func(p *Policy) { p.MaxAge = time.Hour },
			wrong: `invalid value "many" of label cua.snapshot.policy.keep: use a number of snapshots; 0 means no limit`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			onContainer := map[string]string{"com.example.keep": "1"}
			for key, value := range tc.labels {
				onContainer[labels.PrefixPolicy+key] = value
			}
			want := Default()
			if tc.want != nil {
				tc.want(&want)
			}
			got, wrong := Default().ForContainer(onContainer)
			assert.DeepEqual(t, got, want)
			if tc.wrong == "" {
				assert.Equal(t, len(wrong), 0, "%v", wrong)
				return
			}
			assert.Equal(t, len(wrong), 1)
			assert.Error(t, wrong[0], tc.wrong)
		})
	}
}
