package manifest

import (
	"errors"
	"math"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

func TestHostileEntriesAreRefused(t *testing.T) {
	root := &Entry{Kind: Directory}
	file := func(path string) *Entry { return &Entry{Path: path, Kind: Regular} }
	for name, entries := range map[string][]*Entry{
		"no root":           {file("a")},
		"root is a file":    {{Kind: Regular}},
		"absolute":          {root, file("/a")},
		"dot dot":           {root, file("..")},
		"dot dot inside":    {root, {Path: "a", Kind: Directory}, file("a/../b")},
		"dot":               {root, file(".")},
		"empty component":   {root, {Path: "a", Kind: Directory}, file("a//b")},
		"trailing slash":    {root, file("a/")},
		"NUL":               {root, file("a\x00b")},
		"long component":    {root, file(strings.Repeat("a", 256))},
		"out of order":      {root, file("b"), file("a")},
		"twice":             {root, file("a"), file("a")},
		"second root":       {root, root},
		"no parent":         {root, file("a/b")},
		"parent is a file":  {root, file("a"), file("a/b")},
		"parent is a link":  {root, {Path: "a", Kind: Symlink, Target: "/"}, file("a/b")},
		"parent was left":   {root, {Path: "a", Kind: Directory}, file("b"), file("a/c")},
		"link to nothing":   {root, {Path: "a", Kind: HardLink, Target: "b"}},
		"link to itself":    {root, {Path: "a", Kind: HardLink, Target: "a"}},
		"link to later":     {root, {Path: "a", Kind: HardLink, Target: "b"}, {Path: "b", Kind: Regular, Shared: true}},
		"link to a link":    {root, {Path: "a", Kind: Regular, Shared: true}, {Path: "b", Kind: HardLink, Target: "a"}, {Path: "c", Kind: HardLink, Target: "b"}},
		"link to unshared":  {root, file("a"), {Path: "b", Kind: HardLink, Target: "a"}},
		"link to directory": {root, {Path: "a", Kind: Directory}, {Path: "b", Kind: HardLink, Target: "a"}},
		"link outside":      {root, {Path: "b", Kind: HardLink, Target: "../a"}},
	} {
		var o order
		var err error
		for _, e := range entries {
			err = errors.Join(err, o.check(e))
		}
		assert.Assert(t, err != nil, name)
	}
}

func TestHostileRecordsAreRefused(t *testing.T) {
	for name, e := range map[string]*Entry{
		"kind":              {Kind: 'x'},
		"mode":              {Kind: FIFO, Attributes: Attributes{Mode: 0o10000}},
		"nanoseconds":       {Kind: FIFO, Attributes: Attributes{Modified: Timestamp{0, 1e9}}},
		"xattrs unsorted":   {Kind: FIFO, Attributes: Attributes{Xattrs: []Xattr{{"b", ""}, {"a", ""}}}},
		"xattr twice":       {Kind: FIFO, Attributes: Attributes{Xattrs: []Xattr{{"a", ""}, {"a", ""}}}},
		"shared directory":  {Kind: Directory, Shared: true},
		"size":              {Kind: Regular, Size: -1},
		"missing bytes":     {Kind: Regular, Size: 10},
		"hole too long":     {Kind: Regular, Size: 10, Holes: []Range{{0, 11}}},
		"hole overflows":    {Kind: Regular, Size: 10, Holes: []Range{{5, math.MaxInt64}}},
		"empty hole":        {Kind: Regular, Size: 10, Holes: []Range{{0, 0}, {0, 10}}},
		"piece too long":    {Kind: Regular, Size: 10, Pieces: []Piece{{Length: 11}}},
		"piece too large":   {Kind: Regular, Size: math.MaxInt64, Pieces: []Piece{{Length: MaxPiece + 1}}},
		"empty piece":       {Kind: Regular, Size: 10, Pieces: []Piece{{Length: 10}, {Offset: 10}}},
		"gap":               {Kind: Regular, Size: 10, Pieces: []Piece{{Length: 4}, {Offset: 6, Length: 4}}},
		"gap before a hole": {Kind: Regular, Size: 10, Holes: []Range{{5, 5}}, Pieces: []Piece{{Length: 4}}},
	} {
		_, err := decodeContent(appendContent(nil, e))
		assert.Assert(t, err != nil, name)
	}
	file := &Entry{Kind: Regular, Size: 10, Pieces: []Piece{{Length: 10, At: Location{Pack: 1}}}}
	place := func(PackID) uint64 { return 1 }
	for name, at := range map[string]Location{
		"codec":          {Pack: 1, Codec: 2, Stored: 5},
		"raw but short":  {Pack: 1, Stored: 5},
		"longer":         {Pack: 1, Codec: Zstd, Stored: 11},
		"offset":         {Pack: 1, Codec: Zstd, Stored: 5, Offset: -1},
		"stored is huge": {Pack: 1, Codec: Zstd, Stored: math.MaxUint32},
	} {
		file.Pieces[0].At = at
		assert.Assert(t, decodeLocator(appendLocator(nil, file, place), file, []PackID{1}) != nil, name)
	}
	file.Pieces[0].At = Location{Pack: 1, Stored: 10}
	assert.Assert(t, decodeLocator(appendLocator(nil, file, place), file, nil) != nil, "no such pack")
}
