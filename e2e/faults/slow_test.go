//go:build e2e

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gotest.tools/v3/assert"
)

// slowAfter is how long a command that nothing happens to may take before we look at what it waits for.
const slowAfter = 20 * time.Second

// runPlain runs a command without any fault. It checks that the command does not wait longer than it may; of one that does it shows
// what it asked the engine for, and where its processes waited.
func (f *fixture) runPlain(args ...string) outcome {
	f.Helper()
	p, address := startProxy(f.T, socket, cell{fault: faultNone})
	waits := make(chan string, 1)
	began := time.Now()
	look := time.AfterFunc(slowAfter, func() { waits <- f.waits() })
	o := f.run(address, args...)
	took := time.Since(began)
	look.Stop()
	if took > lockTimeout {
		f.Logf("after %s:\n%s", slowAfter, <-waits)
	}
	assert.Check(f, took <= lockTimeout, "%s took %s: %s\n%s", args, took, o, p.timeline())
	return o
}

// waits tells for each thread of the cell's clients and workers where in the kernel it waits.
func (f *fixture) waits() string {
	var text strings.Builder
	for _, pid := range slices.Concat(f.clients(true), f.workers()) {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		for _, thread := range threads {
			fmt.Fprintf(&text, "process %d, thread %s:", pid, filepath.Base(thread))
			for _, name := range []string{"comm", "wchan", "syscall", "stack"} {
				content, err := os.ReadFile(filepath.Join(thread, name))
				if err != nil {
					content = []byte(err.Error())
				}
				fmt.Fprintf(&text, " %s", strings.TrimSpace(string(content)))
			}
			text.WriteByte('\n')
		}
	}
	return text.String()
}
