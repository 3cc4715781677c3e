package manifest

import (
	"testing"

	"gotest.tools/v3/assert"
)

func FuzzManifest(f *testing.F) {
	f.Add(encode(f, samplePacks(), sample()))
	f.Add(encode(f, samplePacks(), sample()[:1]))
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, err := decode(content, samplePacks())
		if err != nil {
			return
		}
		packs := samplePacks()
		back, err := decode(encode(t, packs, entries), packs)
		assert.NilError(t, err)
		assert.Equal(t, len(back), len(entries))
	})
}

// FuzzRecord goes past the checksums that keep FuzzManifest from getting far.
func FuzzRecord(f *testing.F) {
	place := func(id PackID) uint64 { return uint64(id) }
	for _, e := range sample() {
		f.Add(appendContent(nil, e), appendLocator(nil, e, place))
	}
	f.Fuzz(func(t *testing.T, content, locator []byte) {
		e, err := decodeContent(content)
		if err != nil {
			return
		}
		again, err := decodeContent(appendContent(nil, e))
		assert.NilError(t, err)
		assert.DeepEqual(t, again, e)
		if decodeLocator(locator, e, []PackID{1, 2}) != nil {
			return
		}
		assert.NilError(t, decodeLocator(appendLocator(nil, e, place), again, []PackID{1, 2}))
		assert.DeepEqual(t, again, e)
	})
}
