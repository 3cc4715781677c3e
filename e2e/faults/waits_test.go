//go:build e2e

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

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
