//go:build linux

package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/exclude"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Limits are how much of a mount is captured at most. Zero means no limit.
type Limits struct {
	Entries int64
	Bytes   int64
}

// Size is how much is in a mount, or in a directory of one.
type Size struct {
	Entries int64
	Bytes   int64 // of content, without holes
}

// DirectorySize is how much is in a directory, and in those below.
type DirectorySize struct {
	Path string
	Size Size
}

// TooLargeError means that a mount has more than its limits allow.
type TooLargeError struct {
	Mount   Mount
	Size    Size
	Largest []DirectorySize // the largest first
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s is too large: %d entries, %d bytes", labels.DescribeKey(e.Mount.Key), e.Size.Entries, e.Size.Bytes)
}

// largestShown is how many directories a [TooLargeError] names.
const largestShown = 10

// CheckLimits fails with a [TooLargeError] if a mount has more than its limits allow. It reads no content, and does not
// count what is excluded. The counter shows how far it is.
func CheckLimits(ctx context.Context, mounts []Mount, counter *Counter) error {
	for _, m := range mounts {
		if m.Limits == (Limits{}) {
			continue
		}
		if err := checkLimits(ctx, m, counter); err != nil {
			return err
		}
	}
	return nil
}

func checkLimits(ctx context.Context, m Mount, counter *Counter) (err error) {
	t, err := openTree(m.Path)
	if err != nil {
		return fmt.Errorf("count what is in %s: %w", labels.DescribeKey(m.Key), err)
	}
	defer func() { err = errors.Join(err, t.close()) }()
	c := tally{filter: newFilter(m.Excluded, nil, func(string) {}), counter: counter, links: map[uint64]bool{}}
	if err := t.walkReadable(ctx, c.visit, func(string, bool) {}); err != nil {
		return fmt.Errorf("count what is in %s: %w", labels.DescribeKey(m.Key), err)
	}
	c.leave("")
	total := c.open[0].Size
	overBytes := m.Limits.Bytes > 0 && total.Bytes > m.Limits.Bytes
	overEntries := m.Limits.Entries > 0 && total.Entries > m.Limits.Entries
	switch {
	case overBytes:
		return &TooLargeError{Mount: m, Size: total, Largest: c.byBytes}
	case overEntries:
		return &TooLargeError{Mount: m, Size: total, Largest: c.byEntries}
	}
	return nil
}

// tally counts what a walk visits. It keeps the directories that the walk is in, and the largest of those that it has left.
type tally struct {
	filter             filter
	counter            *Counter
	links              map[uint64]bool // files with several names that were counted
	open               []DirectorySize // from the root
	byBytes, byEntries []DirectorySize
}

func (c *tally) visit(f *found) error {
	if len(f.path) > manifest.MaxPath {
		return errLeaveOut
	}
	verdict, err := c.filter.decide(f)
	if err != nil {
		return err
	}
	if verdict == exclude.LeaveOut {
		return errLeaveOut
	}
	c.leave(f.path)
	kind, ok := kindOf(f.stat.Mode)
	if !ok || f.mount && kind != manifest.Directory {
		return nil
	}
	if f.path != "" && verdict == exclude.Take {
		c.count(f, kind)
	}
	if kind == manifest.Directory {
		c.open = append(c.open, DirectorySize{Path: f.path})
	}
	return nil
}

func (c *tally) count(f *found, kind manifest.Kind) {
	now := &c.open[len(c.open)-1].Size
	now.Entries++
	c.counter.Files.Add(1)
	if kind != manifest.Regular {
		return
	}
	if f.stat.Nlink > 1 {
		if c.links[f.stat.Ino] {
			return
		}
		c.links[f.stat.Ino] = true
	}
	now.Bytes += contentOf(&f.stat)
}

// contentOf is how many bytes a file has, without its holes as far as that shows without opening it.
func contentOf(st *unix.Stat_t) int64 {
	const block = 512
	if isSparse(st) {
		return min(st.Size, st.Blocks*block)
	}
	return st.Size
}

// leave adds up the directories that an entry is not in.
func (c *tally) leave(path string) {
	for n := len(c.open) - 1; n > 0 && (path == "" || !isIn(path, c.open[n].Path)); n-- {
		left := c.open[n]
		c.open = c.open[:n]
		above := &c.open[n-1].Size
		above.Entries += left.Size.Entries
		above.Bytes += left.Size.Bytes
		c.byBytes = keepLargest(c.byBytes, left, func(s Size) int64 { return s.Bytes })
		c.byEntries = keepLargest(c.byEntries, left, func(s Size) int64 { return s.Entries })
	}
}

func keepLargest(largest []DirectorySize, one DirectorySize, by func(Size) int64) []DirectorySize {
	at, _ := slices.BinarySearchFunc(largest, one, func(a, b DirectorySize) int {
		return cmp.Or(-cmp.Compare(by(a.Size), by(b.Size)), cmp.Compare(a.Path, b.Path))
	})
	if at >= largestShown {
		return largest
	}
	largest = slices.Insert(largest, at, one)
	return largest[:min(len(largest), largestShown)]
}
