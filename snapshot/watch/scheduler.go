package watch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

const (
	// settle is how long an event waits for others that belong to it: oom and die come together.
	settle = 100 * time.Millisecond
	// pause is the least time between the end of a snapshot and one for an event: a container may be
	// restarted and die again and again.
	pause = 10 * time.Second
	// rearm is by how many per cent memory has to fall below the threshold before it counts again.
	rearm = 5
	// atOnce is how many containers are captured at the same time.
	atOnce = 2
)

// After a failure a snapshot is tried again: so often, and after a pause that doubles.
const (
	maxTries   = 5
	firstRetry = time.Minute
)

// Container is a container as it is now.
type Container struct {
	ID, Name string
	Running  bool
	Policy   Policy
	Last     time.Time // when the last snapshot by interval was taken; zero: never
}

// Decision is a snapshot to take now.
type Decision struct {
	ID, Name string
	Trigger  labels.Trigger
	Reason   string
}

// Scheduler decides when to take snapshots. It may not be used by several goroutines at once.
type Scheduler struct{ watched map[string]*state }

// state is what is known of one container.
type state struct {
	Container
	interval time.Time // when the next one is due; zero: never
	schedule time.Time
	due      *due // waits to be taken
	busy     *due // is being taken
	calm     time.Time
	tripped  bool // memory was over its threshold, and not below it since
}

// due is a snapshot that is to be taken.
type due struct {
	trigger labels.Trigger
	reason  string
	at      time.Time
	tries   int
}

// New returns a scheduler that watches nothing.
func New() *Scheduler { return &Scheduler{watched: map[string]*state{}} }

// Put adds a container, or says what it is like now. That one has died meanwhile, while nobody
// listened, counts like the event.
func (s *Scheduler) Put(c Container, now time.Time) {
	known := s.watched[c.ID]
	if known == nil {
		known = &state{Container: c, schedule: c.Policy.Schedule.next(now)}
		if c.Policy.Interval > 0 {
			known.interval = now.Add(c.Policy.Interval)
			if !c.Last.IsZero() {
				known.interval = earliest(known.interval, c.Last.Add(c.Policy.Interval))
			}
		}
		s.watched[c.ID] = known
		return
	}
	died := known.Running && !c.Running
	known.Name, known.Running = c.Name, c.Running
	if died {
		known.tripped = false
		s.Event(c.ID, Die, now)
	}
}

// Remove forgets a container.
func (s *Scheduler) Remove(id string) { delete(s.watched, id) }

// Knows tells whether a container is watched.
func (s *Scheduler) Knows(id string) bool { return s.watched[id] != nil }

// Name returns the name of a container that is watched.
func (s *Scheduler) Name(id string) string { return s.watched[id].Name }

// Watched returns the IDs of all containers that are watched, sorted.
func (s *Scheduler) Watched() []string { return slices.Sorted(maps.Keys(s.watched)) }

// Event says that something has happened to a container.
func (s *Scheduler) Event(id string, e Event, now time.Time) {
	c := s.watched[id]
	if c == nil {
		return
	}
	if e == Die {
		c.Running = false
	}
	if slices.Contains(c.Policy.On, e) {
		c.want(labels.TriggerEvent, string(e), latest(now.Add(settle), c.calm))
	}
}

// Memory says how many per cent of its limit a container uses. The threshold counts again once the
// use has been well below it.
func (s *Scheduler) Memory(id string, percent float64, now time.Time) {
	c := s.watched[id]
	switch {
	case c == nil || c.Policy.Memory == 0:
	case percent >= float64(c.Policy.Memory) && !c.tripped:
		c.tripped = true
		c.want(labels.TriggerThreshold, fmt.Sprintf("memory at %.0f%% of the limit", percent), now)
	case percent < float64(c.Policy.Memory-rearm):
		c.tripped = false
	}
}

// want has a snapshot taken. One that waits already is enough; what happened is a better reason than
// that time has passed.
func (c *state) want(trigger labels.Trigger, reason string, at time.Time) {
	switch {
	case c.due == nil:
		c.due = &due{trigger: trigger, reason: reason, at: at}
	case c.due.trigger == labels.TriggerInterval && trigger != labels.TriggerInterval:
		c.due.trigger, c.due.reason = trigger, reason
		fallthrough
	default:
		c.due.at = earliest(c.due.at, at)
	}
}

// Due returns the snapshots to take now. Done has to be called after each.
func (s *Scheduler) Due(now time.Time) []Decision {
	var decided []Decision
	busy := 0
	for _, c := range s.watched {
		c.tick(now)
		if c.busy != nil {
			busy++
		}
	}
	for _, id := range s.byDue() {
		c := s.watched[id]
		if busy == atOnce || c.due.at.After(now) {
			break
		}
		busy++
		c.busy, c.due = c.due, nil
		decided = append(decided, Decision{ID: id, Name: c.Name, Trigger: c.busy.trigger, Reason: c.busy.reason})
	}
	return decided
}

// byDue returns the containers that wait for a snapshot, and none is being taken of, in the order in
// which they have to be taken.
func (s *Scheduler) byDue() []string {
	waiting := slices.DeleteFunc(s.Watched(), func(id string) bool { return s.watched[id].due == nil || s.watched[id].busy != nil })
	slices.SortStableFunc(waiting, func(a, b string) int { return s.watched[a].due.at.Compare(s.watched[b].due.at) })
	return waiting
}

// tick makes due what time has brought. A container that does not run does not change.
func (c *state) tick(now time.Time) {
	if !c.Running {
		return
	}
	if !c.interval.IsZero() && !c.interval.After(now) {
		c.interval = now.Add(c.Policy.Interval)
		c.want(labels.TriggerInterval, "every "+c.Policy.Interval.String(), now)
	}
	if !c.schedule.IsZero() && !c.schedule.After(now) {
		c.schedule = c.Policy.Schedule.next(now)
		c.want(labels.TriggerInterval, "as scheduled", now)
	}
}

// Done says that a snapshot was taken, or failed. That is tried again, after a while.
func (s *Scheduler) Done(id string, failed bool, now time.Time) {
	c := s.watched[id]
	if c == nil || c.busy == nil {
		return
	}
	last := c.busy
	c.busy, c.calm = nil, now.Add(pause)
	if c.due != nil && c.due.trigger == labels.TriggerEvent {
		c.due.at = latest(c.due.at, c.calm)
	}
	if failed && c.due == nil && last.tries+1 < maxTries {
		last.at = now.Add(firstRetry << last.tries)
		last.tries++
		c.due = last
	}
}

// Next returns when Due has to be called next; zero: not before something happens.
func (s *Scheduler) Next() time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	busy := 0
	for _, c := range s.watched {
		if c.busy != nil {
			busy++
		}
	}
	for _, c := range s.watched {
		if c.due != nil && c.busy == nil && busy < atOnce {
			sooner(c.due.at)
		}
		if c.Running {
			sooner(c.interval)
			sooner(c.schedule)
		}
	}
	return next
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
