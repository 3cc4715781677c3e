package metadata

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	climetadata "github.com/docker/cli/cli-plugins/metadata"
	"gotest.tools/v3/assert"
)

func TestWhenItAnswers(t *testing.T) {
	for _, tc := range []struct {
		name, args, version string
		want                bool
	}{
		{"the CLI asks", "docker-snapshot docker-cli-plugin-metadata", "v1.2.3", true},
		{"a build without a stamp", "docker-snapshot docker-cli-plugin-metadata", "", false},
		{"a command", "docker-snapshot snapshot ls", "v1.2.3", false},
		{"a container of that name", "docker-snapshot create docker-cli-plugin-metadata", "v1.2.3", false},
		{"nothing", "docker-snapshot", "v1.2.3", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, answers(strings.Fields(tc.args), tc.version), tc.want)
		})
	}
}

func TestAnswer(t *testing.T) {
	var out, problems bytes.Buffer
	assert.Equal(t, answer(&out, &problems, "v1.2.3"), 0)
	assert.Equal(t, problems.String(), "")
	var got climetadata.Metadata
	assert.NilError(t, json.Unmarshal(out.Bytes(), &got))
	assert.DeepEqual(t, got, Plugin("v1.2.3"))
	// What the CLI insists on.
	assert.Equal(t, got.SchemaVersion, "0.1.0")
	assert.Equal(t, got.Version, "v1.2.3")
	assert.Assert(t, got.Vendor != "" && got.ShortDescription != "")
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestAnAnswerThatNobodyHears(t *testing.T) {
	var problems bytes.Buffer
	assert.Equal(t, answer(brokenPipe{}, &problems, "v1.2.3"), 1)
	assert.Equal(t, problems.String(), "broken pipe\n")
}

// With any of these below it, the package would be initialized as late as they are.
func TestItNeedsNothingThatIsInitializedLate(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	assert.NilError(t, err)
	deps := strings.Fields(string(out))
	assert.Assert(t, slices.Contains(deps, "encoding/json"))
	for _, late := range []string{"runtime/debug", "regexp", "net", "github.com/spf13/cobra"} {
		assert.Assert(t, !slices.Contains(deps, late), late)
	}
}
