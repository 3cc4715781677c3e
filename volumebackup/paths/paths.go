// Package paths picks files by where a container sees them, as --path does: of a comparison, and of a restore in place.
package paths

import (
	"fmt"
	"path"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/patternmatcher"
)

// maxPatterns bounds what every file is compared with.
const maxPatterns = 1000

// Filter picks files. One that is nil picks all.
type Filter struct {
	matcher *patternmatcher.PatternMatcher
}

// New returns the filter for some patterns, which are as in a .dockerignore: seen from the root of the container,
// "etc" or "/etc", "**/*.conf", and "!**/*.tmp" for what is not meant after all. Without patterns the filter is nil.
func New(patterns []string) (*Filter, error) {
	if len(patterns) == 0 {
		return nil, nil //nolint:nilnil // nothing is left out
	}
	if len(patterns) > maxPatterns {
		return nil, fmt.Errorf("more than %d path patterns: %w", maxPatterns, errdefs.ErrInvalidArgument)
	}
	matcher, err := patternmatcher.New(relative(patterns))
	if err != nil {
		return nil, fmt.Errorf("path pattern: %w: %w", err, errdefs.ErrInvalidArgument)
	}
	return &Filter{matcher: matcher}, nil
}

// relative writes patterns that begin at the root without its slash.
func relative(patterns []string) []string {
	all := make([]string, len(patterns))
	for i, pattern := range patterns {
		named, isNegated := strings.CutPrefix(strings.TrimSpace(pattern), "!")
		all[i] = strings.TrimLeft(strings.TrimSpace(named), "/")
		if isNegated {
			all[i] = "!" + all[i]
		}
	}
	return all
}

// Has tells whether a path in the container is meant: a pattern names it, or a directory that it is in.
func (f *Filter) Has(at string) bool {
	if f == nil {
		return true
	}
	at = strings.TrimPrefix(path.Clean(at), "/")
	if at == "" { // a pattern names what is in the root
		return false
	}
	has, err := f.matcher.MatchesOrParentMatches(at)
	return err == nil && has
}
