package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// allocatedBy says how much memory something takes in all.
func allocatedBy(run func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// hostileFile is the record of a file with as many holes or pieces as fit into it. In the
// store it takes next to nothing.
func hostileFile(holes bool) []byte {
	b := appendContent(nil, &Entry{Path: "f", Kind: Regular})
	b = b[:len(b)-3] // size, count of holes, count of pieces
	b = binary.AppendUvarint(b, math.MaxInt64)
	each := []byte{0, 1}
	if !holes {
		b = append(b, 0)
		each = append(each, make([]byte, len(Sum{}))...)
	}
	count := (maxRecord - 100) / len(each)
	b = binary.AppendUvarint(b, uint64(count))
	return append(b, bytes.Repeat(each, count)...)
}

func TestHostileRecordsTakeLittleMemory(t *testing.T) {
	for name, holes := range map[string]bool{"holes": true, "pieces": false} {
		record := hostileFile(holes)
		used := allocatedBy(func() {
			_, err := decodeContent(record)
			assert.ErrorContains(t, err, name)
		})
		assert.Assert(t, used < 1<<20, "%s: %d bytes", name, used)

		var out bytes.Buffer
		w, err := NewWriter(&out, NewPackTable())
		assert.NilError(t, err)
		assert.NilError(t, w.Append(&Entry{Kind: Directory}))
		w.body = binary.AppendUvarint(w.body, uint64(len(record)))
		w.body = append(w.body, record...)
		_, err = w.Finish()
		assert.NilError(t, err)
		assert.Assert(t, out.Len() < 1<<20, "in the store it is small: %d", out.Len())
		used = allocatedBy(func() {
			_, err = decode(out.Bytes(), NewPackTable())
			assert.ErrorContains(t, err, name)
		})
		assert.Assert(t, used < 7*maxRecord, "%s: %d bytes", name, used)
	}
}

// TestPathsOfFilesWithSeveralNamesAreNotKept reads a manifest of a few hundred kB in which they take 130 MB.
func TestPathsOfFilesWithSeveralNamesAreNotKept(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, NewPackTable())
	assert.NilError(t, err)
	assert.NilError(t, w.Append(&Entry{Kind: Directory}))
	dir := ""
	for range 256 {
		dir += strings.Repeat("d", 250)
		assert.NilError(t, w.Append(&Entry{Path: dir, Kind: Directory}))
		dir += "/"
	}
	const count = 2000
	for i := range count {
		assert.NilError(t, w.Append(&Entry{Path: dir + fmt.Sprintf("%06d", i), Kind: FIFO, Shared: true}))
	}
	_, err = w.Finish()
	assert.NilError(t, err)
	r, err := NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), NewPackTable())
	assert.NilError(t, err)
	defer r.Close()
	entries := 0
	for {
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		assert.NilError(t, err)
		entries++
	}
	assert.Equal(t, entries, 1+256+count)
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	assert.Assert(t, now.HeapAlloc < 64<<20, "%d bytes", now.HeapAlloc)
	runtime.KeepAlive(r)
}

// TestWhatIsWrittenCanBeRead offers the writer what is just within and just beyond each limit.
func TestWhatIsWrittenCanBeRead(t *testing.T) {
	xattrs := func(n, length int) []Xattr {
		x := make([]Xattr, n)
		for i := range x {
			x[i] = Xattr{Name: "user." + string(rune(0x10000+i)), Value: strings.Repeat("v", length)}
		}
		return x
	}
	alternating := func(n int) *Entry {
		e := &Entry{Kind: Regular, Size: int64(n) * 8192}
		for i := range n {
			e.Holes = append(e.Holes, Range{Offset: int64(i) * 8192, Length: 4096})
		}
		for at := int64(0); at < e.Size; at += 1 << 20 {
			e.Pieces = append(e.Pieces, Piece{Offset: at, Length: uint32(min(1<<20, e.Size-at))})
		}
		return e
	}
	pieces := func(n int) *Entry {
		e := &Entry{Kind: Regular, Size: int64(n) << 18, Pieces: make([]Piece, n)}
		for i := range e.Pieces {
			e.Pieces[i] = Piece{Offset: int64(i) << 18, Length: 1 << 18}
		}
		return e
	}
	long := strings.Repeat(strings.Repeat("d", 254)+"/", 257)[:MaxPath]
	for name, test := range map[string]struct {
		e    *Entry
		fits bool
	}{
		"xattrs":             {&Entry{Kind: FIFO, Attributes: Attributes{Xattrs: xattrs(maxXattrs, 1)}}, true},
		"too many xattrs":    {&Entry{Kind: FIFO, Attributes: Attributes{Xattrs: xattrs(maxXattrs+1, 1)}}, false},
		"long xattr":         {&Entry{Kind: FIFO, Attributes: Attributes{Xattrs: xattrs(1, maxXattr)}}, true},
		"too long xattr":     {&Entry{Kind: FIFO, Attributes: Attributes{Xattrs: xattrs(1, maxXattr+1)}}, false},
		"all xattrs":         {&Entry{Kind: FIFO, Attributes: Attributes{Xattrs: xattrs(maxXattrBytes/maxXattr, maxXattr)}}, true},
		"too long xattrs":    {&Entry{Kind: FIFO, Attributes: Attributes{Xattrs: xattrs(maxXattrBytes/maxXattr+1, maxXattr)}}, false},
		"holes":              {alternating(MaxHoles), true},
		"too many holes":     {alternating(MaxHoles + 1), false},
		"adjacent holes":     {&Entry{Kind: Regular, Size: 10, Holes: []Range{{0, 5}, {5, 5}}}, false},
		"pieces":             {pieces(MaxPieces), true},
		"too many pieces":    {pieces(MaxPieces + 1), false},
		"missing bytes":      {&Entry{Kind: Regular, Size: 10}, false},
		"symlink to nothing": {&Entry{Kind: Symlink}, false},
		"time":               {&Entry{Kind: FIFO, Cached: Cached{Changed: Timestamp{Nsec: 1e9}}}, false},
		"component":          {&Entry{Path: strings.Repeat("c", maxComponent), Kind: FIFO}, true},
		"too long component": {&Entry{Path: strings.Repeat("c", maxComponent+1), Kind: FIFO}, false},
		"too long path":      {&Entry{Path: long + "xx", Kind: FIFO}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if test.e.Path == "" {
				test.e.Path = "entry"
			}
			slices.SortFunc(test.e.Xattrs, func(a, b Xattr) int { return strings.Compare(a.Name, b.Name) })
			var out bytes.Buffer
			w, err := NewWriter(&out, NewPackTable())
			assert.NilError(t, err)
			assert.NilError(t, w.Append(&Entry{Kind: Directory}))
			err = w.Append(test.e)
			if !test.fits {
				assert.ErrorIs(t, err, ErrUnfit)
			} else {
				assert.NilError(t, err)
			}
			assert.NilError(t, w.Append(&Entry{Path: "zz", Kind: FIFO})) // goes on in any case
			_, err = w.Finish()
			assert.NilError(t, err)
			entries, err := decode(out.Bytes(), NewPackTable())
			assert.NilError(t, err)
			if test.fits {
				assert.Equal(t, len(entries), 3)
				test.e.Cached.Unsettled = len(test.e.Pieces) > 0 // they are in no pack
				assert.Assert(t, bytes.Equal(appendContent(nil, entries[1]), appendContent(nil, test.e)))
				assert.Equal(t, entries[1].Cached, test.e.Cached)
				return
			}
			assert.Equal(t, len(entries), 2)
		})
	}
}
