package labels

import (
	"encoding/json"
	"fmt"
)

// Scope describes, on a safety snapshot, the restore in place that it takes back: the parts that went back, and the safety snapshot
// that undo restores after this one.
type Scope struct {
	Only       []string `json:"only,omitempty"`        // volumes, by name or destination, and rootfs; empty: everything
	Paths      []string `json:"paths,omitempty"`       // of the volumes in Only; empty: everything
	ReadOnly   []string `json:"read_only,omitempty"`   // volumes that went back although the container only reads them
	Live       bool     `json:"live,omitempty"`        // the container was only frozen
	StopOthers bool     `json:"stop_others,omitempty"` // other containers that hold the volumes were stopped
	Undo       bool     `json:"undo,omitempty"`        // the restore took back another one
	// Next is the safety snapshot that undo restores once this one is taken back or, if Undo is set, now. It is [UndoNone] if
	// that restore took none, and empty if no other is left.
	Next string `json:"next,omitempty"`
}

// maxScope limits the lists of a [Scope].
const maxScope = 4096

// Undoes returns the safety snapshot that undo restores next if s is that of the newest restore in place of a container. Like
// [Scope.Next] it may be [UndoNone], or empty.
func (r Record) Undoes() string {
	if r.Scope != nil && r.Scope.Undo {
		return r.Scope.Next
	}
	return string(r.ID)
}

func (d *decoder) scope() *Scope {
	text := d.text(KeyScope)
	if text == "" {
		return nil
	}
	var s Scope
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		d.fail(KeyScope, fmt.Errorf("broken JSON: %w", err))
		return nil
	}
	if max(len(s.Only), len(s.Paths), len(s.ReadOnly)) > maxScope {
		d.fail(KeyScope, fmt.Errorf("more than %d items", maxScope))
	}
	if s.Next != "" && s.Next != UndoNone {
		if _, err := ParseID(s.Next); err != nil {
			d.fail(KeyScope, err)
		}
	}
	return &s
}

func encodeScope(s *Scope) (string, error) {
	if s == nil {
		return "", nil
	}
	return encodeJSON(KeyScope, s)
}
