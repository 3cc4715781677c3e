package commands

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docker/cli/cli/command/formatter"
	"github.com/docker/cli/templates"
	"github.com/docker/go-units"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot"
)

// result is what happened to one snapshot, for --format. Its JSON form is a
// contract: fields may be added.
type result struct {
	ID            string                  `json:"id"` // of the snapshot
	Status        string                  `json:"status"`
	Timestamp     string                  `json:"timestamp"`
	Size          string                  `json:"size"`
	SizeBytes     int64                   `json:"size_bytes"`
	Name          string                  `json:"name,omitempty"`
	Ref           string                  `json:"ref"`
	Container     string                  `json:"container"`
	ContainerID   string                  `json:"container_id,omitempty"`
	Incomplete    bool                    `json:"incomplete,omitempty"`
	FrozenMillis  *int64                  `json:"frozen_ms,omitempty"` // the sum of all attempts
	Started       *bool                   `json:"started,omitempty"`
	Plan          snapshot.Plan           `json:"plan,omitempty"`
	TimingsMillis map[string]int64        `json:"timings_ms,omitempty"`
	Safety        string                  `json:"safety,omitempty"` // ID of the snapshot that was taken first
	Undo          string                  `json:"undo,omitempty"`   // the command that takes it back
	Volumes       []snapshot.VolumeChange `json:"volumes,omitempty"`
	Config        []snapshot.ConfigChange `json:"config,omitempty"`
	NotCaptured   []notCaptured           `json:"not_captured,omitempty"`
}

// notCaptured is a mount whose content is not in a snapshot.
type notCaptured struct {
	Destination string `json:"destination"`
	Type        string `json:"type"`
	Source      string `json:"source,omitempty"` // a volume's name, or a path on the host
	Reason      string `json:"reason"`
}

// listNotCaptured lists the mounts whose content is not in a snapshot, and why.
func listNotCaptured(mounts []labels.Mount) []notCaptured {
	var list []notCaptured
	for _, m := range mounts {
		if m.Skipped != "" {
			list = append(list, notCaptured{Destination: m.Destination, Type: m.Type, Source: cmp.Or(m.Name, m.Source), Reason: m.Skipped})
		}
	}
	return list
}

// The values of status.
const (
	statusCreated  = "created"
	statusRestored = "restored"
	statusPlanned  = "planned"
	statusDeleted  = "deleted"
)

func newResult(s snapshot.Snapshot, status string, when time.Time) result {
	return result{
		ID:        string(s.ID),
		Status:    status,
		Timestamp: when.UTC().Format(time.RFC3339Nano),
		Size:      units.HumanSize(float64(s.StoredBytes())),
		SizeBytes: s.StoredBytes(),
		Name:      s.Name,
		Ref:       s.Ref(),
		Container: s.Container.Name,
	}
}

// printer writes results: as one word each, as JSON lines or by a template.
type printer struct{ format string }

func (p *printer) addFlag(flags *pflag.FlagSet) {
	flags.Var(checked{&p.format, checkFormat}, "format", "Format the result: 'json', or a Go template")
}

// print writes a result; without --format only word.
func (p printer) print(out io.Writer, word string, r result) error {
	switch p.format {
	case "":
		return writeLine(out, word)
	case formatter.JSONFormatKey:
		return writeJSON(out, r)
	}
	tmpl, err := templates.Parse(p.format)
	if err != nil {
		return fmt.Errorf("parse template: %w", err)
	}
	if err := tmpl.Execute(out, r); err != nil {
		return fmt.Errorf("execute template: %w", err)
	}
	return writeLine(out, "")
}

// failed writes what JSON readers see of an error, and returns the error. A
// result that is merely incomplete was printed, and says so itself.
func (p printer) failed(out io.Writer, err error) error {
	if err == nil || errors.Is(err, errIncomplete) || p.format != formatter.JSONFormatKey {
		return err
	}
	return errors.Join(err, writeJSON(out, struct {
		Status string `json:"status"`
		Error  string `json:"error"`
	}{"error", explain(err)}))
}

func checkFormat(format string) error {
	if format == "" || format == formatter.JSONFormatKey {
		return nil
	}
	_, err := templates.Parse(format)
	return err
}

func writeJSON(out io.Writer, v any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// writeLine writes one line, whatever is in it.
func writeLine(out io.Writer, line string) error {
	if _, err := fmt.Fprintln(out, oneLine(line)); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}
