//go:build linux

package store

import (
	"bytes"
	"slices"
	"testing"

	"gotest.tools/v3/assert"
)

func FuzzPackIndex(f *testing.F) {
	header := appendPackHeader(nil, "id/0", 0)
	pack := appendMember(slices.Clone(header), "name", 3, 1)
	pack = append(pack, make([]byte, 512)...)
	f.Add(pack, int64(packHeader+512))
	f.Add(appendMember(header, string(bytes.Repeat([]byte("n"), 200)), 0, -1), int64(0))
	f.Fuzz(func(t *testing.T, pack []byte, live int64) {
		in := bytes.NewReader(pack)
		size := int64(len(pack))
		empty := false // no piece is, so such a member need not be kept
		_ = walkMembers(in, size, func(m member) error {
			empty = empty || m.data == live && m.size == 0
			assert.Assert(t, m.start >= 0 && m.start < m.data && m.data+m.size <= m.end && m.end <= size)
			return nil
		})
		if err := checkIdentity(in, size, "id/0"); err == nil {
			assert.Assert(t, bytes.HasPrefix(pack, appendPackHeader(nil, "id/0", size)))
		}
		dead, err := deadRanges(in, size, []int64{live})
		if err != nil {
			return
		}
		at := int64(packHeader)
		for _, d := range dead {
			assert.Assert(t, d.Offset >= at && d.Length > 0 && d.Offset+d.Length <= size)
			assert.Assert(t, empty || live < d.Offset || live >= d.Offset+d.Length, "what is live is not freed")
			at = d.Offset + d.Length
		}
	})
}
