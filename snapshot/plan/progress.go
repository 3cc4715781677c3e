package plan

// Level says who an [Event] is for.
type Level int

// The levels of events.
const (
	LevelStatus  Level = iota // what is happening now
	LevelNote                 // worth knowing
	LevelWarning              // the user has to know it when all is over
)

// Event is one report of a running operation.
type Event struct {
	Level   Level
	Phase   string // a fixed word: inspect, commit, flatten, tag, create, start, volumes …
	Text    string // for people; the whole message of a note or a warning
	Current int64  // bytes done, if the phase counts bytes
	Total   int64  // bytes in all; 0: not known
	Files   int64  // entries done, if the phase counts them
	Topic   Topic  // of a note or a warning that users can do something about
	Subject string // what the topic says
}

// Topic is what a note or a warning is about. The commands know what users can do about it.
type Topic string

// The topics.
const (
	TopicReadOnlyBind Topic = "read-only-bind" // a bind mount that a copy may only read
	TopicOriginalGone Topic = "original-gone"  // the container that a copy is of is gone
	TopicLost         Topic = "lost"           // Subject: one of several snapshots that have lost their images
	TopicCleaned      Topic = "cleaned"        // somebody has removed images of this program, which may be snapshots
	TopicUnfinished   Topic = "unfinished"     // Subject: a container whose restore in place has left something to do
)

// Progress receives events, from several goroutines at once. A nil Progress discards them.
type Progress func(Event)

// Send reports an event.
func (p Progress) Send(e Event) {
	if p != nil {
		p(e)
	}
}

// Status reports what is happening now.
func (p Progress) Status(phase, text string) {
	if p != nil {
		p(Event{Level: LevelStatus, Phase: phase, Text: text})
	}
}

// Warn reports what the user has to know when all is over.
func (p Progress) Warn(phase, text string) {
	if p != nil {
		p(Event{Level: LevelWarning, Phase: phase, Text: text})
	}
}

// Note reports what is worth knowing.
func (p Progress) Note(phase, text string) {
	if p != nil {
		p(Event{Level: LevelNote, Phase: phase, Text: text})
	}
}
