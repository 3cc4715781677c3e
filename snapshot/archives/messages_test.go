package archives

import (
	"fmt"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

func TestWarningsOfAWorkerNameTheVolumeAndAreNotTooMany(t *testing.T) {
	var got []string
	tell := Progress(func(e plan.Event) { got = append(got, e.Text) })
	tell(protocol.Event{Warning: &protocol.Warning{Volume: "data", Message: "everything is read"}})
	for n := range 2 * maxWarnings {
		tell(protocol.Event{Warning: &protocol.Warning{Volume: "data", Path: protocol.Path(fmt.Sprint("n", n)), Message: "left out"}})
	}
	assert.Equal(t, len(got), maxWarnings+1)
	assert.DeepEqual(t, got[:2], []string{"volume data: everything is read", "volume data: n0: left out"})
	assert.Equal(t, got[maxWarnings], "there are more of these")
}

func TestWorkersSpeakInWords(t *testing.T) {
	for phase, want := range map[string]string{"pass": "reading volumes", "restore": "restoring volumes", "waiting: for somebody": "waiting: for somebody"} {
		var got string
		Progress(func(e plan.Event) { got = e.Text })(protocol.Event{Progress: &protocol.Progress{Phase: phase}})
		assert.Equal(t, got, want)
	}
	for _, op := range protocol.Operations() {
		assert.Assert(t, workerPhases[op] != "", "%s has no words", op)
	}
}
