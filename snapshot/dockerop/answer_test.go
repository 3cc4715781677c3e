package dockerop

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

func TestLastStatus(t *testing.T) {
	for stream, want := range map[string]string{
		`{"status":"sha256:12"}`:                                "sha256:12",
		"{\"status\":\"working\"}\r\n{\"status\":\"sha256:3\"}": "sha256:3",
		`{"progress":1}{"status":"sha256:4"}{"aux":{}}`:         "sha256:4",
		``:   "",
		`{}`: "",
	} {
		status, err := LastStatus(strings.NewReader(stream))
		assert.NilError(t, err)
		assert.Equal(t, status, want)
	}
	for stream, want := range map[string]string{
		`{"status":"sha256:1"`:               "unexpected EOF",
		`{"status":"x"}{"error":"no space"}`: "no space",
		`{"status":7}`:                       "cannot unmarshal",
		`<html>`:                             "invalid character",
	} {
		_, err := LastStatus(strings.NewReader(stream))
		assert.ErrorContains(t, err, want)
	}
}
