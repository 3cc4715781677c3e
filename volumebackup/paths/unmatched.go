package paths

import (
	"slices"
	"strings"
)

// Unmatched finds the patterns that match no path. Patterns that begin with '!' only take away; they need not match.
type Unmatched struct {
	patterns []string
	filters  []*Filter
}

// NewUnmatched returns the patterns of which none has matched yet.
func NewUnmatched(patterns []string) (*Unmatched, error) {
	u := &Unmatched{}
	for _, pattern := range patterns {
		if strings.HasPrefix(strings.TrimSpace(pattern), "!") {
			continue
		}
		filter, err := New([]string{pattern})
		if err != nil {
			return nil, err
		}
		u.patterns, u.filters = append(u.patterns, pattern), append(u.filters, filter)
	}
	return u, nil
}

// See drops the patterns that match a path in the container.
func (u *Unmatched) See(at string) {
	for i := range slices.Backward(u.filters) {
		if u.filters[i].Has(at) {
			u.patterns, u.filters = slices.Delete(u.patterns, i, i+1), slices.Delete(u.filters, i, i+1)
		}
	}
}

// Patterns returns those that have matched no path so far.
func (u *Unmatched) Patterns() []string { return u.patterns }
