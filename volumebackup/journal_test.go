package volumebackup

import (
	"testing"

	"gotest.tools/v3/assert"
)

func FuzzFrozenBy(f *testing.F) {
	f.Add("null")
	f.Add(`["a","b"]`)
	f.Add("nonsense")
	f.Fuzz(func(t *testing.T, text string) {
		journal := JournalLabels("v1")
		journal[labelFrozen] = text
		frozen, err := FrozenBy(journal)
		assert.Assert(t, err == nil || len(frozen) == 0)
		assert.Assert(t, len(frozen) <= maxFrozen)
	})
}
