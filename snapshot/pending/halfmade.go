package pending

import (
	"encoding/json"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// LabelMade is on the worker that makes and fills the volumes of a copy, and holds a [HalfMade].
// The worker lives until the copy mounts them. If it is dead, the copy was never finished, unless the worker is settled.
const LabelMade = labels.Prefix + "worker.made"

// HalfMade names what there may be of a copy whose restore was interrupted.
type HalfMade struct {
	Operation string   `json:"operation"`           // labels everything but the anonymous volumes
	Volumes   []string `json:"volumes,omitempty"`   // made by the worker
	Anonymous []string `json:"anonymous,omitempty"` // made by the engine, together with the copy
	Together  bool     `json:"together,omitempty"`  // there are to be all copies of the operation or none: also those that run go
	Heir      string   `json:"heir,omitempty"`      // ID of the worker after which this one clears up; empty: it is the restore's own
}

// Labels returns the labels for the worker.
func (h HalfMade) Labels() (map[string]string, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("write journal: %w", err)
	}
	return map[string]string{LabelMade: string(text)}, nil
}

// HalfMade returns what a worker says that its restore has made, or nil if it says nothing or the restore is over.
func (w Worker) HalfMade() (*HalfMade, error) {
	text, ok := w.Labels[LabelMade]
	if !ok || w.IsOver() {
		return nil, nil
	}
	var made HalfMade
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		return nil, fmt.Errorf("read journal %.200q: %w", text, err)
	}
	if made.Operation == "" {
		return nil, fmt.Errorf("read journal %.200q: it names no operation", text)
	}
	return &made, nil
}
