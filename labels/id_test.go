package labels_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

func TestNewID(t *testing.T) {
	east := time.FixedZone("east", 3*60*60)
	id, err := labels.NewID(time.Date(2026, 1, 1, 1, 2, 3, 999, east), bytes.NewReader([]byte{0x00, 0xab, 0x7f}))
	assert.NilError(t, err)
	assert.Equal(t, id, labels.ID("20251231-220203-00ab7f"))

	parsed, err := labels.ParseID(string(id))
	assert.NilError(t, err)
	assert.Equal(t, parsed, id)
}

func TestNewIDFailsWithoutRandomness(t *testing.T) {
	_, err := labels.NewID(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), bytes.NewReader([]byte{1}))
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestIDsSortByTime(t *testing.T) {
	random := func() io.Reader { return bytes.NewReader([]byte{0xff, 0, 0xff}) }
	moment := time.Date(2025, 12, 31, 23, 59, 59, 0, time.UTC)
	earlier, err := labels.NewID(moment, random())
	assert.NilError(t, err)
	later, err := labels.NewID(moment.Add(time.Second), bytes.NewReader(make([]byte, 3)))
	assert.NilError(t, err)
	assert.Assert(t, earlier < later)
}

func TestParseIDRefuses(t *testing.T) {
	for name, word := range map[string]string{
		"nothing":          "",
		"a name":           "before-upgrade",
		"a prefix":         "20260131-2359",
		"a thirteenth":     "20261301-000000-abcdef",
		"no such day":      "20260230-000000-abcdef",
		"no such hour":     "20260228-240000-abcdef",
		"upper-case hex":   "20260228-000000-ABCDEF",
		"something after":  "20260228-000000-abcdef0",
		"a newline after":  "20260228-000000-abcdef\n",
		"something before": " 20260228-000000-abcdef",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := labels.ParseID(word)
			assert.ErrorContains(t, err, "is not a snapshot ID")
		})
	}
}

func TestCheckName(t *testing.T) {
	tests := []struct {
		name, want string // want: part of the error; empty: legal
	}{
		{"a", ""},
		{"_a", ""},
		{"v1.2-rc_3", ""},
		{"LATEST", ""},
		{"20260131", ""},
		{strings.Repeat("n", 128), ""},
		{strings.Repeat("n", 129), "use 1 to 128"},
		{strings.Repeat("n", 200), "use 1 to 128"},
		{"", "use 1 to 128"},
		{"-a", "not beginning with"},
		{".a", "not beginning with"},
		{"a/b", "use 1 to 128"},
		{"a:b", "use 1 to 128"},
		{"a b", "use 1 to 128"},
		{"a*", "use 1 to 128"},
		{"näme", "use 1 to 128"},
		{"a\n", "use 1 to 128"},
		{"latest", "always means the newest"},
		{"20260131-235959-0a1b2c", "reads like a snapshot ID"},
		{"99999999-999999-ffffff", "reads like a snapshot ID"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := labels.CheckName(test.name)
			if test.want == "" {
				assert.NilError(t, err)
				return
			}
			assert.ErrorContains(t, err, test.want)
		})
	}
}
