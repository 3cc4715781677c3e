package labels

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a Go duration, before which whole weeks (w, 7 d) and days (d, 24 h) may
// stand: 36h, 1w2d, 90m. Labels and options have durations in this form.
func ParseDuration(s string) (time.Duration, error) {
	const longest = 290 * 365 * 24 * time.Hour // almost the most that a time.Duration holds
	invalid := fmt.Errorf("invalid duration %q: use something like 90m, 36h, 1w2d", s)
	var total time.Duration
	rest := s
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		number, after, found := strings.Cut(rest, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil || n > uint64(longest/unit.length) {
			return 0, invalid
		}
		total += time.Duration(n) * unit.length
		rest = after
	}
	if rest != "" || s == "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 || d > longest {
			return 0, invalid
		}
		total += d
	}
	if total < 0 || total > longest {
		return 0, invalid
	}
	return total, nil
}
