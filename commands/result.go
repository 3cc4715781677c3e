package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"text/template"
	"time"

	"github.com/docker/cli/cli/command/formatter"
	"github.com/docker/cli/templates"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// outcome is what happened to one snapshot, and when.
type outcome struct {
	Status    string `json:"status"`
	Timestamp string `json:"timestamp"`
	summary
}

// The values of status.
const (
	statusCreated   = "created"
	statusRestored  = "restored"
	statusPromoted  = "promoted"
	statusPlanned   = "planned"
	statusRemoved   = "removed"
	statusKept      = "kept"
	statusPruned    = "pruned"
	statusAnnotated = "annotated"
	statusRecovered = "recovered"
	statusMissing   = "not_found"
	statusSkipped   = "skipped"
	statusWritten   = "written"
	statusProtected = "protected"
	statusFailed    = "error"
)

func newOutcome(s catalog.Snapshot, status string, when time.Time) outcome {
	return outcome{Status: status, Timestamp: rfc3339(when), summary: newSummary(s)}
}

// createResult is what create prints.
type createResult struct {
	outcome
	Root            string        `json:"root"`             // of the state in it
	ExcludedEntries int64         `json:"excluded_entries"` // of volumes; a directory counts once
	Incomplete      bool          `json:"incomplete"`
	Contradicted    bool          `json:"contradicted"` // files are not what the store said of them
	FrozenMS        int64         `json:"frozen_ms"`    // the sum of all attempts
	Changes         *changeReport `json:"changes"`      // since the parent; nil: not asked for, or not known
	Warnings        words         `json:"warnings"`
}

func newCreateResult(s capture.Created, warned words) createResult {
	return createResult{
		outcome: newOutcome(s.Snapshot, statusCreated, s.Created), Root: s.Root(), ExcludedEntries: countExcluded(s.Mounts),
		Incomplete: s.Incomplete, Contradicted: s.Contradicted, FrozenMS: s.Frozen.Milliseconds(), Warnings: newWords(warned),
	}
}

// restoreResult is what restore prints.
type restoreResult struct {
	outcome
	Incomplete          bool             `json:"incomplete"`
	RestoredContainer   string           `json:"restored_container"`
	RestoredContainerID string           `json:"restored_container_id"`
	Started             bool             `json:"started"`
	ContainerKept       bool             `json:"container_kept"` // only volumes went back
	Copy                string           `json:"copy"`           // that was promoted; empty: a snapshot was restored
	Safety              string           `json:"safety"`         // ID of the snapshot that was taken first
	Undo                string           `json:"undo"`           // the command that takes it back
	Plan                []planStep       `json:"plan"`
	VolumeChanges       []volumeChange   `json:"volume_changes"`
	Changes             *changeReport    `json:"changes"` // nil: not compared
	ConfigChanges       []configChange   `json:"config_changes"`
	TimingsMS           map[string]int64 `json:"timings_ms"`
	Warnings            words            `json:"warnings"`
}

// removeResult is what rm prints.
type removeResult struct{ outcome }

// annotateResult is what annotate prints.
type annotateResult struct{ outcome }

// missingResult is what rm --force prints for a word that means no snapshot.
type missingResult struct {
	Status string `json:"status"`
	Word   string `json:"word"`
}

// planStep is one thing that a restore does.
type planStep struct {
	Op     string `json:"op"`
	Target string `json:"target"`
	Reason string `json:"reason"`
}

// volumeChange is what a restore in place did with one volume.
type volumeChange struct {
	Volume string `json:"volume"`
	Made   bool   `json:"made"` // it was gone
	Kept   bool   `json:"kept"` // it was left as it is
	Reason string `json:"reason"`
}

// configChange is what a restore in place did to one part of the configuration.
type configChange struct {
	What string `json:"what"`
	Name string `json:"name"`
	Verb string `json:"verb"`
	Now  string `json:"now"`
	Then string `json:"then"`
}

// convert makes a list from another one. It is never nil, so JSON shows an empty one as [].
func convert[From, To any](list []From, one func(From) To) []To {
	converted := make([]To, len(list))
	for i, from := range list {
		converted[i] = one(from)
	}
	return converted
}

// warningList collects the warnings of an operation, for its result. Several goroutines may warn.
type warningList struct {
	mu   sync.Mutex
	list words
}

// from passes events on, and keeps the warnings among them.
func (w *warningList) from(p plan.Progress) plan.Progress {
	return func(e plan.Event) {
		if e.Level == plan.LevelWarning {
			w.mu.Lock()
			w.list = append(w.list, e.Text)
			w.mu.Unlock()
		}
		p(e)
	}
}

// printer writes results: as one word each, as JSON lines or by a template.
type printer struct {
	format   string
	template *template.Template // of format, unless that is empty or json
}

// parsePrinter reads what --format takes. A template must fit one of the results.
func parsePrinter(format string, results []any) (printer, error) {
	if format == "" || format == formatter.JSONFormatKey {
		return printer{format: format}, nil
	}
	compiled, err := templates.Parse(format)
	if err != nil {
		return printer{}, err
	}
	return printer{format, compiled}, checkFields(compiled, results)
}

// option is the option that fills a printer, of a command that prints results of these types.
func (p *printer) option(results ...any) *option {
	return parsed(p, "string", func(format string) (printer, error) { return parsePrinter(format, results) })
}

func (p *printer) addFlag(flags *pflag.FlagSet, results ...any) {
	flags.Var(p.option(results...), "format", "Format the result: 'json', or a Go template")
}

// formats tells whether results are asked for in a format, and not as words.
func (p printer) formats() bool { return p.format != "" }

// print writes a result; without --format only word.
func (p printer) print(out io.Writer, word string, result any) error {
	switch {
	case p.template != nil:
		if err := p.template.Execute(out, result); err != nil {
			return fmt.Errorf("execute template: %w", err)
		}
		return writeLine(out, "")
	case p.formats():
		return writeJSON(out, result)
	}
	return writeLine(out, word)
}

func writeJSON(out io.Writer, v any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// writeLine writes text as one line, even if it has several.
func writeLine(out io.Writer, line string) error {
	if _, err := fmt.Fprintln(out, oneLine(line)); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}
