package protocol

import (
	"encoding/json"
	"fmt"
)

// Version is the version of the conversation; both ends must speak the same.
const Version = 2

// Request asks for one operation.
type Request struct {
	// LockTimeoutMillis is how long to wait for others who use the store: a removal waits for captures and restores,
	// and they wait for a removal.
	LockTimeoutMillis int64
	// Sends says that the client is going to send bytes.
	Sends     bool
	Arguments Arguments
}

// requestLine is how a request is written.
type requestLine struct {
	Op                Op              `json:"op"`
	LockTimeoutMillis int64           `json:"lock_timeout_ms"`
	Sends             bool            `json:"sends,omitempty"`
	Arguments         json.RawMessage `json:"arguments"`
}

// MarshalJSON implements json.Marshaler.
func (r Request) MarshalJSON() ([]byte, error) {
	arguments, err := json.Marshal(r.Arguments)
	if err != nil {
		return nil, err
	}
	return json.Marshal(requestLine{Op: r.Arguments.Op(), LockTimeoutMillis: r.LockTimeoutMillis, Sends: r.Sends, Arguments: arguments})
}

// said is a line of the client: a request, or, if it has one, a frame.
type said struct {
	request Request
	frame   *Frame
}

// decodeLine reads a line of the client. Whatever is wrong with it is an [Error] of the class [Invalid].
func decodeLine(line []byte) (said, error) {
	var l struct {
		requestLine
		Frame *Frame `json:"frame"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return said{}, invalid("decode request: %v", err)
	}
	if l.Frame != nil {
		return said{frame: l.Frame}, nil
	}
	decode, known := operations[l.Op]
	if !known {
		return said{}, invalid("request %.100q is unknown", l.Op)
	}
	if len(l.Arguments) == 0 || string(l.Arguments) == "null" {
		return said{}, invalid("request %q without its arguments", l.Op)
	}
	arguments, err := decode(l.Arguments)
	if err != nil {
		return said{}, invalid("request %q with other arguments: %v", l.Op, err)
	}
	if err := arguments.validate(); err != nil {
		return said{}, invalid("request %q: %v", l.Op, err)
	}
	return said{request: Request{LockTimeoutMillis: l.LockTimeoutMillis, Sends: l.Sends, Arguments: arguments}}, nil
}

func invalid(format string, values ...any) *Error {
	return &Error{Class: Invalid, Message: fmt.Sprintf(format, values...)}
}
