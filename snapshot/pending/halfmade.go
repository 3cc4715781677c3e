package pending

import (
	"encoding/json"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// LabelMade stands on the worker that makes and fills the volumes of a copy, and
// holds a [halfMade]. The worker lives until the copy mounts them. One that is dead
// says that the copy was never finished.
const LabelMade = labels.Prefix + "worker.made"

// HalfMade is what there may be of a copy whose restore was interrupted.
type HalfMade struct {
	Operation string   `json:"operation"`           // what all of it is labelled with, but the anonymous volumes
	Volumes   []string `json:"volumes,omitempty"`   // that the worker makes
	Anonymous []string `json:"anonymous,omitempty"` // that the engine has made together with the copy
}

func (h HalfMade) Labels() (map[string]string, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("write journal: %w", err)
	}
	return map[string]string{LabelMade: string(text)}, nil
}
