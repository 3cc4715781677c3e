package manifest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// sample is one entry of each kind, with everything that an entry can have.
func sample() []*Entry {
	attributes := Attributes{Mode: 0o4755, UID: 1, GID: math.MaxUint32, Modified: Timestamp{-5, 999_999_999}}
	cached := Cached{Inode: 1 << 60, Changed: Timestamp{1 << 40, 7}}
	file := &Entry{
		Path: "f", Kind: Regular, Attributes: attributes, Shared: true, Size: 3<<20 + 1, Cached: cached,
		Holes: []Range{{0, 300}, {1 << 20, 2 << 20}},
		Pieces: []Piece{
			{Offset: 0, Length: 1 << 20, Sum: Sum{1}, At: Location{Pack: 1, Codec: Zstd, Stored: 10, Offset: 512}},
			{Offset: 3 << 20, Length: 1, Sum: Sum{2}, At: Location{Pack: 2, Stored: 1, Offset: 2048}, Fingerprint: 1 << 63},
		},
	}
	file.Xattrs = []Xattr{{"trusted.x", "\x00"}, {"user.a", ""}, {"user.b", strings.Repeat("v", 1000)}}
	return []*Entry{
		{Kind: Directory, Attributes: attributes, Cached: cached},
		{Path: "a", Kind: Directory, Cached: cached},
		{Path: "a/\xff\n", Kind: FIFO, Shared: true, Cached: cached},
		{Path: "a-b", Kind: Symlink, Target: "../..", Cached: cached},
		{Path: "b", Kind: BlockDevice, Major: 7, Minor: math.MaxUint32},
		{Path: "c", Kind: CharacterDevice, Major: 1, Minor: 3, Cached: Cached{Unsettled: true}},
		file,
		{Path: "g", Kind: HardLink, Target: "f"},
		{Path: "h", Kind: HardLink, Target: "a/\xff\n"},
		{Path: "s", Kind: Socket},
	}
}

func samplePacks() *PackTable {
	packs := NewPackTable()
	packs.ID("first/0")
	packs.ID("second/12")
	return packs
}

func encode(t testing.TB, packs *PackTable, entries []*Entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, packs)
	assert.NilError(t, err)
	for _, e := range entries {
		assert.NilError(t, w.Append(e))
	}
	_, err = w.Finish()
	assert.NilError(t, err)
	return out.Bytes()
}

func decode(content []byte, packs *PackTable) ([]*Entry, error) {
	r, err := NewReader(bytes.NewReader(content), int64(len(content)), packs)
	if err != nil {
		return nil, err
	}
	return readAll(r)
}

// readAll reads what is left of a manifest, and closes it.
func readAll(r *Reader) ([]*Entry, error) {
	defer r.Close()
	var entries []*Entry
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
}

func TestManifestKeepsEverything(t *testing.T) {
	packs := samplePacks()
	entries, err := decode(encode(t, packs, sample()), packs)
	assert.NilError(t, err)
	assert.DeepEqual(t, entries, sample())
}

// TestManifestNoticesEveryBit flips each bit in turn. Those that zstd does not use change nothing.
func TestManifestNoticesEveryBit(t *testing.T) {
	content := encode(t, samplePacks(), sample())
	unused := 0
	for i := range content {
		for bit := range 8 {
			content[i] ^= 1 << bit
			entries, err := decode(content, samplePacks())
			content[i] ^= 1 << bit
			if err == nil {
				unused++
				assert.DeepEqual(t, entries, sample())
				continue
			}
		}
	}
	assert.Assert(t, unused < 8, "%d", unused)
	for n := range content {
		_, err := decode(content[:n], samplePacks())
		assert.Assert(t, err != nil, "cut off at %d", n)
	}
}

// TestRootIgnoresLocation expects equal roots for equal content, wherever it is stored.
func TestRootIgnoresLocation(t *testing.T) {
	root := func(entries []*Entry) Sum {
		w, err := NewWriter(io.Discard, samplePacks())
		assert.NilError(t, err)
		for _, e := range entries {
			assert.NilError(t, w.Append(e))
		}
		summary, err := w.Finish()
		assert.NilError(t, err)
		return summary.Root
	}
	moved, changed := sample(), sample()
	moved[6].Pieces[0].At = Location{Pack: 2, Stored: 1 << 20, Offset: 99}
	moved[1].Cached.Inode++
	changed[6].Pieces[0].Sum[31]++
	assert.Equal(t, root(moved), root(sample()))
	assert.Assert(t, root(changed) != root(sample()))
}

func TestMerkleRootIsThatOfTheRFC(t *testing.T) {
	leaf := func(s string) Sum { return sha256.Sum256([]byte("\x00" + s)) }
	a, b, c, d, e := leaf("a"), leaf("b"), leaf("c"), leaf("d"), leaf("e")
	for leaves, want := range map[string]Sum{
		"": sha256.Sum256(nil), "a": a, "ab": node(a, b), "abc": node(node(a, b), c),
		"abcd": node(node(a, b), node(c, d)), "abcde": node(node(node(a, b), node(c, d)), e),
	} {
		var m merkle
		for _, l := range leaves {
			m.add([]byte(string(l)))
		}
		assert.Equal(t, m.root(), want, leaves)
	}
}

func TestCompareGoesByComponent(t *testing.T) {
	want := []string{"", "a", "a/b", "a/b/c", "a/b-c", "a-", "a-/x", "a.", "aa", "b", "\xff"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Compare)
	assert.DeepEqual(t, got, want)
}
