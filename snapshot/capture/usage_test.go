package capture

import (
	"fmt"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// Each curve is what usage is, call by call; + follows where a snapshot is taken.
func TestUsageOverACurve(t *testing.T) {
	for name, tc := range map[string]struct {
		thresholds []float64
		curve      string
	}{
		"never reached":          {[]float64{0.85}, "0 0.5 0.84 0.8499"},
		"once":                   {[]float64{0.85}, "0.5 0.84 0.85+ 0.85 0.9 0.99 1.2"},
		"at once":                {[]float64{0.85}, "0.91+ 0.91"},
		"fallen and risen":       {[]float64{0.85}, "0.9+ 0.5 0.86+ 0.87 0.1 0.2 0.84 0.9+"},
		"fallen, not below":      {[]float64{0.85}, "0.95+ 0.86 0.95 0.85 0.99"},
		"three":                  {[]float64{0.5, 0.75, 0.9}, "0.4 0.5+ 0.6 0.75+ 0.8 0.9+ 0.99"},
		"two in one step":        {[]float64{0.5, 0.9}, "0.95+ 0.6 0.7 0.92+ 0.95 0.3 0.6+ 0.95+"},
		"fallen below the upper": {[]float64{0.9, 0.5}, "0.95+ 0.7 0.6 0.9+ 0.6 0.4 0.5+"},
		"around one":             {[]float64{0.85}, "0.85+ 0.84 0.85+ 0.84 0.85+"},
		"the whole":              {[]float64{1}, "0.99 1+ 1 0.99 1+"},
	} {
		t.Run(name, func(t *testing.T) {
			var last *labels.Record
			var got []string
			for word := range strings.FieldsSeq(tc.curve) {
				u := Usage{Thresholds: tc.thresholds}
				_, err := fmt.Sscan(strings.TrimSuffix(word, "+"), &u.Now)
				assert.NilError(t, err)
				assert.NilError(t, u.Check())
				d := u.decide(last)
				text := fmt.Sprint(u.Now)
				switch {
				case d.take:
					text += "+"
					last = &labels.Record{Usage: &u.Now}
				case d.fell:
					last.UsageLow = &u.Now
				}
				assert.Equal(t, d.reason == "", d.take)
				got = append(got, text)
			}
			assert.Equal(t, strings.Join(got, " "), tc.curve)
		})
	}
}

// Only the call that finds usage below a threshold for the first time has something to remember.
func TestAFallIsRememberedOnce(t *testing.T) {
	high, low := 0.9, 0.5
	last := &labels.Record{Usage: &high}
	assert.Assert(t, Usage{Now: 0.5, Thresholds: []float64{0.85}}.decide(last).fell)
	last.UsageLow = &low
	assert.Assert(t, !Usage{Now: 0.4, Thresholds: []float64{0.85}}.decide(last).fell)
	assert.Assert(t, Usage{Now: 0.1, Thresholds: []float64{0.85}, Force: true}.decide(last).take)
}
