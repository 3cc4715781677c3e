//go:build linux

package worker

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// TestAWalkIsRememberedByTheStore walks a tree, has the store keep the list, and walks again with it.
func TestAWalkIsRememberedByTheStore(t *testing.T) {
	w := newWorld(t)
	root := t.TempDir()
	for i := range 300 {
		assert.NilError(t, os.WriteFile(filepath.Join(root, strings.Repeat("n", 1+i%200)+string(rune('a'+i/200))), bytes.Repeat([]byte{byte(i)}, i), 0o600))
	}
	walker, c := w.connectWith(Options{WalkedRoot: root}), w.connect()
	image, key := strings.Repeat("aa", 32), strings.Repeat("bb", 32)
	request := protocol.WalkRequest{Created: time.Now().Add(time.Hour).Unix()}
	reads := []int64{299, 0} // one is empty
	for n, want := range reads {
		var recalled, list bytes.Buffer
		assert.NilError(t, c.Recall(t.Context(), key, &recalled))
		assert.Equal(t, recalled.Len() > 0, n > 0)
		result, err := walker.Walk(t.Context(), request, &recalled, &list, nil)
		assert.NilError(t, err)
		assert.Equal(t, result.Files, int64(300))
		assert.Equal(t, result.Read, want)
		assert.NilError(t, c.Learn(t.Context(), protocol.LearnRequest{Image: image, Walked: key}, &list, nil))
	}
	known, err := c.Known(t.Context(), []string{image})
	assert.NilError(t, err)
	assert.Equal(t, len(known), 1)
	assert.Equal(t, known[0].Entries, int64(301))
	assert.Equal(t, known[0].Bytes, int64(300*299/2))

	var got []string
	visit := func(change protocol.FileChange) { got = append(got, string(change.Type)+" "+string(change.Path)) }
	r := protocol.DiffRequest{New: protocol.Tree{Image: image}, Hidden: []protocol.Path{""}}
	for i := range 300 {
		if name := strings.Repeat("n", 1+i%200) + string(rune('a'+i/200)); i != 7 {
			r.Hidden = append(r.Hidden, protocol.Path(name))
		}
	}
	assert.NilError(t, c.Diff(t.Context(), r, visit, nil))
	assert.DeepEqual(t, got, []string{"created " + strings.Repeat("n", 8) + "a"})
}

// What is known is bounded, whoever sends it.
func TestAWalkTakesOnlySoMuch(t *testing.T) {
	c := newWorld(t).connectWith(Options{WalkedRoot: t.TempDir()})
	_, err := c.Walk(t.Context(), protocol.WalkRequest{Created: -1}, nil, io.Discard, nil)
	assert.ErrorIs(t, err, errdefs.ErrInvalidArgument)
	_, err = c.Walk(t.Context(), protocol.WalkRequest{}, io.LimitReader(zeros{}, protocol.MaxRecalled+1), io.Discard, nil)
	assert.ErrorContains(t, err, "bytes are known")
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
