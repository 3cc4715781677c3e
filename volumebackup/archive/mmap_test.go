//go:build linux

package archive

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
)

// mapped is a file that is written to through a mapping only. Nothing ever syncs it.
type mapped struct {
	mu     sync.Mutex // held by whoever freezes the writer
	memory []byte
	stop   chan struct{}
	done   sync.WaitGroup
}

func mapFile(t *testing.T, path string, size int) *mapped {
	t.Helper()
	f, err := os.Create(path)
	assert.NilError(t, err)
	assert.NilError(t, f.Truncate(int64(size)))
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	assert.NilError(t, err)
	assert.NilError(t, f.Close())
	m := &mapped{memory: memory, stop: make(chan struct{})}
	t.Cleanup(func() {
		close(m.stop)
		m.done.Wait()
		assert.NilError(t, unix.Munmap(memory))
	})
	return m
}

// writeForever counts up in every page, again and again, and rests every few rounds.
func (m *mapped) writeForever(rest time.Duration) {
	m.done.Go(func() {
		for n := uint64(1); ; n++ {
			pause := time.Duration(0)
			if n%4 == 0 {
				pause = rest
			}
			select {
			case <-m.stop:
				return
			case <-time.After(pause):
			}
			m.writeAll(n)
		}
	})
}

func (m *mapped) writeAll(n uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at := 0; at < len(m.memory); at += os.Getpagesize() {
		binary.LittleEndian.PutUint64(m.memory[at:], n)
	}
}

// TestWritesThroughAMapping makes snapshots of a file while it is written to through a mapping; each
// restores to the bytes of its moment. A writer that rests for longer than a tick of the clock may
// do so with all pages writable.
func TestWritesThroughAMapping(t *testing.T) {
	for _, rest := range []time.Duration{0, granularity + 5*time.Millisecond} {
		t.Run(rest.String(), func(t *testing.T) { testWrites(t, rest) })
	}
}

func testWrites(t *testing.T, rest time.Duration) {
	t.Helper()
	w := newWorld(t)
	m := mapFile(t, w.path("mapped"), 3<<20)
	m.writeForever(rest)
	for range 8 {
		id := "s" + string(rune('a'+w.next))
		w.next++
		b, err := w.begin(id)
		assert.NilError(t, err)
		_, err = b.Pass(t.Context(), Live, w, &Counter{})
		assert.NilError(t, err)
		m.mu.Lock() // as a pause of the container does
		_, err = b.Pass(t.Context(), Frozen, w, &Counter{})
		want := string(m.memory)
		m.mu.Unlock()
		assert.NilError(t, err)
		_, err = b.Publish(w)
		assert.NilError(t, err)
		assert.NilError(t, b.Discard())
		target := archivetest.Dir(t)
		w.restore(id, "copy-"+id, target)
		got, err := os.ReadFile(filepath.Join(target, "mapped"))
		assert.NilError(t, err)
		assert.Assert(t, string(got) == want, id)
	}
}

// TestLateWriteThroughAMapping writes to pages that are dirty already right after a
// file was read, which need not move its times: the next snapshot has to notice.
func TestLateWriteThroughAMapping(t *testing.T) {
	for name, modes := range map[string][]Mode{"live": {Live}, "frozen": {Frozen}, "both": {Live, Frozen}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := mapFile(t, w.path("mapped"), 64<<10)
			m.writeAll(1)
			w.settle()
			b, err := w.begin("first")
			assert.NilError(t, err)
			for _, mode := range modes {
				_, err = b.Pass(t.Context(), mode, w, &Counter{})
				assert.NilError(t, err)
			}
			want := archivetest.Describe(t, w.volume)
			m.writeAll(2)
			_, err = b.Publish(w)
			assert.NilError(t, err)
			assert.NilError(t, b.Discard())
			w.checkRestore("first", want)
			w.settle()
			w.checkSnapshot(modes...)
		})
	}
}
