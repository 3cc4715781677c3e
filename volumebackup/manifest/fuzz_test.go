package manifest

import (
	"bytes"
	"io"
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

// FuzzHead reads as stat caches are read, whose root nobody checks. Whatever else is wrong with one is found, or does no harm.
func FuzzHead(f *testing.F) {
	f.Add(encode(f, samplePacks(), sample()), 0, byte(0))
	f.Add(encode(f, samplePacks(), sample()[:1]), 40, byte(1))
	f.Fuzz(func(t *testing.T, content []byte, at int, flip byte) {
		if at >= 0 && at < len(content) {
			content[at] ^= flip
		}
		read := func(open func(io.ReaderAt, int64, *PackTable) (*Reader, error)) ([]*Entry, error) {
			r, err := open(bytes.NewReader(content), int64(len(content)), samplePacks())
			if err != nil {
				return nil, err
			}
			return readAll(r)
		}
		cached, err := read(NewCacheReader)
		checked, checkedErr := read(NewReader)
		if checkedErr == nil {
			assert.NilError(t, err)
			assert.DeepEqual(t, cached, checked)
		}
		assert.Assert(t, len(cached) <= len(content)*maxShrink, "%d entries of %d bytes", len(cached), len(content))
	})
}

// maxShrink is how much of a manifest its compression can at most have taken away.
const maxShrink = 1 << 15

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
