package watch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

// Policy says when a container is captured. Its zero value never does.
type Policy struct {
	Interval time.Duration // while it runs; 0: not by time
	Schedule Schedule      // while it runs
	On       []Event       // when one of these happens
	Memory   int           // when it uses so many per cent of its memory limit; 0: not by memory
}

// Never tells whether the policy never captures anything.
func (p Policy) Never() bool {
	return p.Interval == 0 && p.Schedule.cron == nil && len(p.On) == 0 && p.Memory == 0
}

// Event is something that happens to a container.
type Event string

// The events that a container can be captured at.
const (
	Die       Event = "die"       // its main process ended
	OOM       Event = "oom"       // the kernel killed one of its processes, because its memory was used up
	Unhealthy Event = "unhealthy" // its healthcheck failed
)

// Events lists all events.
func Events() []Event { return []Event{Die, OOM, Unhealthy} }

// Texts are the parts of a policy as people write them. An empty one says nothing.
type Texts struct{ Interval, Schedule, On, Memory string }

// Over returns the texts with those of other where there are none.
func (t Texts) Over(other Texts) Texts {
	pick := func(a, b string) string {
		if a != "" {
			return a
		}
		return b
	}
	return Texts{
		Interval: pick(t.Interval, other.Interval), Schedule: pick(t.Schedule, other.Schedule),
		On: pick(t.On, other.On), Memory: pick(t.Memory, other.Memory),
	}
}

// TextsOf returns what the labels of a container say.
func TextsOf(containerLabels map[string]string) Texts {
	t := Texts{
		Interval: containerLabels[labels.KeyPolicyInterval], Schedule: containerLabels[labels.KeyPolicySchedule],
		On: containerLabels[labels.KeyPolicyOn], Memory: containerLabels[labels.KeyPolicyMemory],
	}
	if slices.Contains(retention.Intervals(), retention.Interval(t.Interval)) {
		t.Interval = "" // that is about runs
	}
	return t
}

// Parse reads a policy.
func (t Texts) Parse() (p Policy, err error) {
	for _, part := range []struct {
		name, text string
		parse      func(string) error
	}{
		{"interval", t.Interval, func(text string) (err error) { p.Interval, err = ParseInterval(text); return err }},
		{"schedule", t.Schedule, func(text string) (err error) { p.Schedule, err = ParseSchedule(text); return err }},
		{"on", t.On, func(text string) (err error) { p.On, err = ParseEvents(text); return err }},
		{"memory", t.Memory, func(text string) (err error) { p.Memory, err = ParseMemory(text); return err }},
	} {
		if part.text == "" {
			continue
		}
		if err := part.parse(part.text); err != nil {
			return Policy{}, fmt.Errorf("invalid %s %q: %w", part.name, part.text, err)
		}
	}
	return p, nil
}

// ParseInterval reads the time between two snapshots.
func ParseInterval(text string) (time.Duration, error) {
	d, err := labels.ParseDuration(text)
	if err == nil && d < time.Second {
		err = errors.New("use at least 1s")
	}
	return d, err
}

// Schedule says at which times of the day or week a container is captured.
type Schedule struct{ cron cron.Schedule }

// maxSchedule bounds the text of a schedule: labels may come from anywhere.
const maxSchedule = 256

// ParseSchedule reads the five fields of cron, or one of its words, as @daily.
func ParseSchedule(text string) (s Schedule, err error) {
	zone := strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=")
	if len(text) > maxSchedule || zone && !strings.Contains(text, " ") { // which the library does not survive
		return Schedule{}, errors.New("use the five fields of cron, as in 30 2 * * *")
	}
	s.cron, err = cron.ParseStandard(text)
	if err != nil {
		return Schedule{}, fmt.Errorf("use the five fields of cron, as in 30 2 * * *: %w", err)
	}
	return s, nil
}

// next returns the first time after now; zero: there is none.
func (s Schedule) next(now time.Time) time.Time {
	if s.cron == nil {
		return time.Time{}
	}
	return s.cron.Next(now)
}

// ParseEvents reads a list of events, with commas between them.
func ParseEvents(text string) ([]Event, error) {
	var events []Event
	for word := range strings.SplitSeq(text, ",") {
		event := Event(strings.TrimSpace(word))
		if !slices.Contains(Events(), event) {
			return nil, errors.New("use some of die, oom, unhealthy, with commas between them")
		}
		if !slices.Contains(events, event) {
			events = append(events, event)
		}
	}
	return events, nil
}

// ParseMemory reads a part of a memory limit, as in 85%.
func ParseMemory(text string) (percent int, err error) {
	percent, err = strconv.Atoi(strings.TrimSuffix(text, "%"))
	if err != nil || percent < 1 || percent > 100 {
		return 0, errors.New("use a part of the memory limit, as in 85%")
	}
	return percent, nil
}

// String says when a container is captured.
func (p Policy) String() string {
	var parts []string
	if p.Interval > 0 {
		parts = append(parts, "every "+p.Interval.String())
	}
	if p.Schedule.cron != nil {
		parts = append(parts, "as scheduled")
	}
	for _, event := range p.On {
		parts = append(parts, "on "+string(event))
	}
	if p.Memory > 0 {
		parts = append(parts, fmt.Sprintf("at %d%% of its memory limit", p.Memory))
	}
	return strings.Join(parts, ", ")
}
