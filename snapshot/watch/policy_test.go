package watch

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

func TestPoliciesAreReadFromLabelsAndOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		asked  Texts
		want   string
		fails  string
	}{
		"nothing":               {},
		"all":                   {map[string]string{labels.KeyPolicyInterval: "1d", labels.KeyPolicySchedule: "@daily", labels.KeyPolicyOn: "oom, die,oom", labels.KeyPolicyMemory: "85%"}, Texts{}, "every 24h0m0s, as scheduled, on oom, on die, at 85% of its memory limit", ""},
		"options go first":      {map[string]string{labels.KeyPolicyInterval: "1d", labels.KeyPolicyOn: "die"}, Texts{Interval: "15m"}, "every 15m0s, on die", ""},
		"an interval of runs":   {map[string]string{labels.KeyPolicyInterval: "every_action"}, Texts{}, "", ""},
		"no duration":           {map[string]string{labels.KeyPolicyInterval: "often"}, Texts{}, "", `invalid interval "often": invalid duration`},
		"a tiny interval":       {nil, Texts{Interval: "1ms"}, "", "use at least 1s"},
		"a schedule that isn't": {nil, Texts{Schedule: "at night"}, "", `invalid schedule "at night": use the five fields of cron`},
		"a zone without more":   {nil, Texts{Schedule: "TZ=Europe/Berlin"}, "", "use the five fields of cron"},
		"a long schedule":       {nil, Texts{Schedule: strings.Repeat("1,", 999) + "1 * * * *"}, "", "use the five fields of cron"},
		"an unknown event":      {nil, Texts{On: "die,start"}, "", "use some of die, oom, unhealthy"},
		"no part":               {nil, Texts{Memory: "2g"}, "", "use a part of the memory limit"},
		"too large a part":      {nil, Texts{Memory: "101%"}, "", "use a part of the memory limit"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := tc.asked.Over(TextsOf(tc.labels)).Parse()
			if tc.fails != "" {
				assert.ErrorContains(t, err, tc.fails)
				return
			}
			assert.NilError(t, err)
			assert.Equal(t, p.String(), tc.want)
			assert.Equal(t, p.Never(), tc.want == "")
		})
	}
}

// Labels come from images, and images from anywhere.
func FuzzPolicy(f *testing.F) {
	f.Add("15m", "30 2 * * *", "die,oom", "85%")
	f.Add("", "TZ=UTC @daily", "", "")
	f.Add("", "CRON_TZ=", "", "%")
	f.Add("1w", "0 0 30 2 *", "unhealthy", "0")
	f.Fuzz(func(t *testing.T, interval, schedule, on, memory string) {
		p, err := Texts{Interval: interval, Schedule: schedule, On: on, Memory: memory}.Parse()
		if err != nil {
			return
		}
		now := time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)
		if next := p.Schedule.next(now); !next.IsZero() && !next.After(now) {
			t.Errorf("the schedule %q leads from %s to %s", schedule, now, next)
		}
	})
}
