//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// scriptDurations tells how long each script took.
var scriptDurations = durations{took: map[string]time.Duration{}}

type durations struct {
	mu   sync.Mutex
	took map[string]time.Duration
}

func (d *durations) add(script string, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.took[script] = took
}

// slowest lists so many scripts, and how many seconds each took.
func (d *durations) slowest(count int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	scripts := slices.SortedFunc(maps.Keys(d.took), func(a, b string) int { return cmp.Compare(d.took[b], d.took[a]) })
	var text strings.Builder
	for _, script := range scripts[:min(count, len(scripts))] {
		fmt.Fprintf(&text, " %s %.0f", script, d.took[script].Seconds())
	}
	return text.String()
}
