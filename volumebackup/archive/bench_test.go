//go:build linux

package archive

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
)

// scaleVariable makes the tree of the benchmarks larger: 1 stands for four
// files of 150 MB and 20,000 small ones, 718 MB in all.
const scaleVariable = "DOCKER_SNAPSHOT_BENCH_SCALE"

// benchTree builds the tree that the numbers in the documentation are about.
func benchTree(b *testing.B) *world {
	b.Helper()
	scale := 0.1
	if s := os.Getenv(scaleVariable); s != "" {
		var err error
		scale, err = strconv.ParseFloat(s, 64)
		assert.NilError(b, err)
	}
	w := newWorld(b)
	for i := range 4 {
		w.write(fmt.Sprintf("big%d", i), archivetest.Random(uint64(i), int(scale*150e6)))
	}
	for i := range int(scale * 20_000) {
		dir := fmt.Sprintf("small/%d", i/100)
		assert.NilError(b, os.MkdirAll(w.path(dir), 0o755))
		w.write(fmt.Sprintf("%s/%d", dir, i), archivetest.Random(uint64(i+10), 5900))
	}
	w.settle()
	return w
}

// changeOnePercent writes to random pages of the large files and to some of the small ones.
func (w *world) changeOnePercent() {
	w.t.Helper()
	w.next++
	r := rand.New(rand.NewPCG(uint64(w.next), 0))
	for i := range 16 {
		f, err := os.OpenFile(w.path(fmt.Sprintf("big%d", i%4)), os.O_RDWR, 0)
		assert.NilError(w.t, err)
		info, err := f.Stat()
		assert.NilError(w.t, err)
		_, err = f.WriteAt(archivetest.Random(r.Uint64(), 4096), r.Int64N(info.Size()/4096)*4096)
		assert.NilError(w.t, err)
		assert.NilError(w.t, f.Close())
	}
	small, err := filepath.Glob(w.path("small/*/*"))
	assert.NilError(w.t, err)
	for range len(small) / 200 {
		assert.NilError(w.t, os.WriteFile(small[r.IntN(len(small))], archivetest.Random(r.Uint64(), 5900), 0o644))
	}
	w.settle()
}

// measure runs an operation b.N times, with what comes before and after each run not
// counted. Beside the time it reports the processor's, which other load does not change much.
func measure(b *testing.B, before, run, after func()) {
	b.Helper()
	var used time.Duration
	for b.Loop() {
		b.StopTimer()
		before()
		start := processorTime(b)
		b.StartTimer()
		run()
		b.StopTimer()
		used += processorTime(b) - start
		after()
		b.StartTimer()
	}
	b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage unix.Rusage
	assert.NilError(b, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func nothing() {}

func BenchmarkBackupFull(b *testing.B) {
	w := benchTree(b)
	var id string
	measure(b, nothing, func() { id, _ = w.snapshot(Idle) }, func() {
		w.remove(id)
		assert.NilError(b, w.store.DropHead("vol"))
	})
}

func BenchmarkBackupClean(b *testing.B) {
	w := benchTree(b)
	w.snapshot(Idle)
	var id string
	measure(b, nothing, func() { id, _ = w.snapshot(Idle) }, func() { w.remove(id) })
}

func BenchmarkBackupOnePercent(b *testing.B) {
	w := benchTree(b)
	w.snapshot(Idle)
	measure(b, func() { w.changeOnePercent() }, func() { w.snapshot(Idle) }, nothing)
}

// BenchmarkFrozen measures the pass for which writers are frozen, with one per cent changed since the live one.
func BenchmarkFrozen(b *testing.B) {
	w := benchTree(b)
	var backup *Backup
	var err error
	before := func() {
		w.next++
		backup, err = w.begin(fmt.Sprint(w.next))
		assert.NilError(b, err)
		_, err = backup.Pass(b.Context(), Live, w, &Counter{})
		assert.NilError(b, err)
		w.changeOnePercent()
	}
	measure(b, before, func() {
		_, err = backup.Pass(b.Context(), Frozen, w, &Counter{})
		assert.NilError(b, err)
	}, func() {
		_, err = backup.Publish(w)
		assert.NilError(b, err)
		assert.NilError(b, backup.Discard())
	})
}

func BenchmarkRestoreNew(b *testing.B) {
	w := benchTree(b)
	id, _ := w.snapshot(Idle)
	var target string
	// What was restored stays until the end: ext4 is slow to create files where some were deleted just before.
	measure(b, func() { target = archivetest.Dir(b) }, func() { w.restore(id, "copy", target) }, func() {
		assert.NilError(b, w.store.DropHead("copy"))
	})
}

// BenchmarkRestoreOnePercent goes back by one per cent, after the snapshot that keeps what is given up.
func BenchmarkRestoreOnePercent(b *testing.B) {
	w := benchTree(b)
	id, _ := w.snapshot(Idle)
	before := func() {
		w.changeOnePercent()
		w.snapshot(Idle)
	}
	measure(b, before, func() { w.restore(id, "vol", w.volume) }, nothing)
}
