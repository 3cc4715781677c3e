package catalog

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for word, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "36h": 36 * time.Hour, "1d": day, "1w": 7 * day, "1w2d": 9 * day, "1w2d3h4m5s": 9*day + 3*time.Hour + 4*time.Minute + 5*time.Second,
		"0": 0, "0d": 0, "1.5h": 90 * time.Minute, "2d500ms": 2*day + 500*time.Millisecond, "100000d": 100_000 * day,
	} {
		got, err := ParseDuration(word)
		assert.NilError(t, err)
		assert.Equal(t, got, want)
	}
	for _, word := range []string{
		"", "d", "w", "1", "-1d", "-5m", "1.5d", "1d2w", "1w1w", "1x", "one day", "1d ", " 1d", "100000w", "15200w", "15000w2000000h", "9999999999999d", "2562047h",
	} {
		got, err := ParseDuration(word)
		assert.ErrorContains(t, err, "invalid duration", "%q gave %s", word, got)
	}
}

func TestParseAge(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for word, want := range map[string]time.Time{
		"2026-01-02T03:04:05Z":      time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		"2026-01-02T03:04:05+01:00": time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC),
		"1d12h":                     time.Date(2026, 1, 30, 0, 0, 0, 0, time.UTC),
	} {
		got, ok := parseAge(word, now)
		assert.Assert(t, ok)
		assert.Assert(t, got.Equal(want), "%s", got)
	}
	for _, word := range []string{"", "web:one", "20260131-120001-000001", "yesterday"} {
		_, ok := parseAge(word, now)
		assert.Assert(t, !ok, word)
	}
}
