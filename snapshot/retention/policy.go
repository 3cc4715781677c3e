package retention

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// Policy says when automatic snapshots are taken, and how many of them are kept. Automatic are all
// but those with the trigger manual. A limit of 0 is none.
type Policy struct {
	Enabled      bool          // whether snapshots are taken automatically
	Interval     Interval      // at which moments of a run
	MaxSnapshots int           // of one line
	MaxAgent     int           // of those that agents took of one line
	MaxTotal     int           // of all lines together, without those
	MaxSize      int64         // bytes that all of them may occupy
	MaxAge       time.Duration // how old one may become
	AutoCleanup  bool          // whether the limits are applied after each automatic snapshot
}

// Interval says at which moments of a run snapshots are taken.
type Interval string

// The intervals.
const (
	IntervalManual        Interval = "manual"
	IntervalEveryAction   Interval = "every_action"
	IntervalRunStart      Interval = "run_start"
	IntervalRunEnd        Interval = "run_end"
	IntervalRunBoundaries Interval = "run_boundaries"
)

// Intervals lists all intervals, in the order in which help texts show them.
func Intervals() []Interval {
	return []Interval{IntervalManual, IntervalEveryAction, IntervalRunStart, IntervalRunEnd, IntervalRunBoundaries}
}

const day = 24 * time.Hour

// Default returns the policy of users who have set nothing.
func Default() Policy {
	return Policy{
		Enabled: true, Interval: IntervalRunBoundaries, AutoCleanup: true,
		MaxSnapshots: 10, MaxAgent: 20, MaxTotal: 100, MaxSize: 10 * units.GB, MaxAge: 7 * day,
	}
}

// The names of what a policy consists of, as settings have them. Labels have them after
// [labels.PrefixPolicy].
const (
	NameEnabled       = "enabled"
	NameInterval      = "interval"
	NameMaxSnapshots  = "max-snapshots"
	NameMaxAgent      = "max-agent"
	NameMaxTotal      = "max-total"
	NameMaxSize       = "max-size"
	NameRetentionDays = "retention-days"
	NameAutoCleanup   = "auto-cleanup"
)

// Names that only labels have, for the same as a longer one.
const (
	labelKeep      = "keep"      // [NameMaxSnapshots]
	labelRetention = "retention" // [NameRetentionDays], as a duration
)

// setters put the text of a setting into a policy.
var setters = map[string]func(p *Policy, text string) error{
	NameEnabled:       func(p *Policy, text string) error { return set(&p.Enabled, text, parseBool) },
	NameInterval:      func(p *Policy, text string) error { return set(&p.Interval, text, parseInterval) },
	NameMaxSnapshots:  func(p *Policy, text string) error { return set(&p.MaxSnapshots, text, ParseCount) },
	NameMaxAgent:      func(p *Policy, text string) error { return set(&p.MaxAgent, text, ParseCount) },
	NameMaxTotal:      func(p *Policy, text string) error { return set(&p.MaxTotal, text, ParseCount) },
	NameMaxSize:       func(p *Policy, text string) error { return set(&p.MaxSize, text, ParseSize) },
	NameRetentionDays: func(p *Policy, text string) error { return set(&p.MaxAge, text, parseDays) },
	NameAutoCleanup:   func(p *Policy, text string) error { return set(&p.AutoCleanup, text, parseBool) },
}

// Set changes what a setting of that name is about. It changes nothing if the text is wrong.
func (p *Policy) Set(name, text string) error {
	setter, known := setters[name]
	if !known {
		return fmt.Errorf("unknown name %q", name)
	}
	return setter(p, text)
}

// labelSetters put the text of a container's label into a policy. The limits on all snapshots
// together are not a container's.
var labelSetters = map[string]func(p *Policy, text string) error{
	NameEnabled:       setters[NameEnabled],
	NameInterval:      setInterval,
	NameMaxSnapshots:  setters[NameMaxSnapshots],
	labelKeep:         setters[NameMaxSnapshots],
	NameMaxAgent:      setters[NameMaxAgent],
	NameRetentionDays: setters[NameRetentionDays],
	labelRetention:    func(p *Policy, text string) error { return set(&p.MaxAge, text, labels.ParseDuration) },
	NameAutoCleanup:   setters[NameAutoCleanup],
}

// ForContainer returns the policy of a container, which its labels may change. It returns an error
// for each label that cannot be read, and passes over that label.
func (p Policy) ForContainer(containerLabels map[string]string) (Policy, []error) {
	var wrong []error
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(labelSetters))) { // the short names come last, and win
		key := labels.PrefixPolicy + name
		text := containerLabels[key]
		if text == "" {
			continue
		}
		if err := labelSetters[name](&p, text); err != nil {
			wrong = append(wrong, fmt.Errorf("invalid value %q of label %s: %w", text, key, err))
		}
	}
	return p, wrong
}

// setInterval passes over durations: a label of this name says with one how often a container that
// is watched is captured.
func setInterval(p *Policy, text string) error {
	if _, err := labels.ParseDuration(text); err == nil {
		return nil
	}
	return setters[NameInterval](p, text)
}

func set[T any](field *T, text string, parse func(string) (T, error)) error {
	value, err := parse(text)
	if err == nil {
		*field = value
	}
	return err
}

func parseBool(text string) (bool, error) {
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, errors.New("use true or false")
	}
	return value, nil
}

func parseInterval(text string) (Interval, error) {
	if !slices.Contains(Intervals(), Interval(text)) {
		words := make([]string, 0, len(Intervals()))
		for _, interval := range Intervals() {
			words = append(words, string(interval))
		}
		return "", errors.New("use one of " + strings.Join(words, ", "))
	}
	return Interval(text), nil
}

// ParseCount reads a number of snapshots; 0 means no limit.
func ParseCount(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, errors.New("use a number of snapshots; 0 means no limit")
	}
	return int(n), nil
}

// ParseSize reads a number of bytes, such as 10GB, in powers of 1000; 0 means no limit.
func ParseSize(text string) (int64, error) {
	bytes, err := units.FromHumanSize(text)
	if err != nil || bytes < 0 {
		return 0, errors.New("use a size such as 500MB or 10GB; 0 means no limit")
	}
	return bytes, nil
}

// mostDays is a hundred years, which is more than anybody waits, and less than a time.Duration
// holds.
const mostDays = 36500

func parseDays(text string) (time.Duration, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n > mostDays {
		return 0, fmt.Errorf("use a number of days up to %d; 0 means no limit", mostDays)
	}
	return time.Duration(n) * day, nil
}
