package manifest

import (
	"fmt"
	"strings"
)

// Compare orders paths by component: a directory comes right before what is in it.
func Compare(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] == b[i] {
			continue
		}
		return component(a[i]) - component(b[i])
	}
	return len(a) - len(b)
}

// component puts the separator before every other byte.
func component(c byte) int {
	if c == '/' {
		return 0
	}
	return int(c)
}

// Parent is the directory that holds path; that of a top-level entry is the root, "".
func Parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}

// checkPath refuses what could lead outside of a volume.
func checkPath(path string) error {
	if len(path) > MaxPath {
		return fmt.Errorf("path of %d bytes", len(path))
	}
	for c := range strings.SplitSeq(path, "/") {
		if c == "" || c == "." || c == ".." || len(c) > maxComponent || strings.IndexByte(c, 0) >= 0 {
			return fmt.Errorf("path %q is not clean", path)
		}
	}
	return nil
}
