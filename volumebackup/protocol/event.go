package protocol

import (
	"encoding/json"
	"fmt"
)

// Type names what an event carries.
type Type string

// The types of event.
const (
	TypeHello    Type = "hello"
	TypeProgress Type = "progress"
	TypeWarning  Type = "warning"
	TypeEntries  Type = "entries"
	TypeChanges  Type = "changes"
	TypeLost     Type = "lost"
	TypeFrame    Type = "frame"
	TypeResult   Type = "result"
	TypeError    Type = "error"
)

// Event is what the worker says. The field named like Type is set.
type Event struct {
	Type     Type            `json:"type"`
	Hello    *Hello          `json:"hello,omitempty"`
	Progress *Progress       `json:"progress,omitempty"`
	Warning  *Warning        `json:"warning,omitempty"`
	Entries  []Entry         `json:"entries,omitempty"`
	Changes  []FileChange    `json:"changes,omitempty"`
	Lost     *Lost           `json:"lost,omitempty"`
	Frame    *Frame          `json:"frame,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"` // of the type that belongs to the operation
	Error    *Error          `json:"error,omitempty"`
}

// Hello is the worker's first word.
type Hello struct {
	Protocol int `json:"protocol"`
}

// Progress tells how far the present request is.
type Progress struct {
	Phase string `json:"phase"`
	Files int64  `json:"files"`
	Bytes int64  `json:"bytes"`
	Total int64  `json:"total,omitempty"` // bytes in all; zero while unknown
}

// Warning tells of something that was left out or could not be kept exactly.
type Warning struct {
	Mount   int    `json:"mount"`
	Path    Path   `json:"path"`
	Message string `json:"message"`
	Volume  string `json:"-"` // its name, which the client's side knows
}

// decodeEvent reads one line of the worker.
func decodeEvent(line []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return Event{}, fmt.Errorf("decode worker's message: %w", err)
	}
	complete := map[Type]bool{
		TypeHello: e.Hello != nil, TypeProgress: e.Progress != nil, TypeWarning: e.Warning != nil, TypeEntries: len(e.Entries) > 0,
		TypeChanges: len(e.Changes) > 0, TypeLost: e.Lost != nil,
		TypeFrame: e.Frame != nil, TypeResult: len(e.Result) > 0 && string(e.Result) != "null", TypeError: e.Error != nil,
	}
	if !complete[e.Type] {
		return Event{}, fmt.Errorf("worker's message of type %q has no content", e.Type)
	}
	return e, nil
}
