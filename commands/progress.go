package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// The ways to show progress. All of them write to stderr, and all show warnings;
// quiet shows nothing else.
const (
	progressAuto  = "auto" // tty on a terminal, else plain
	progressTTY   = "tty"
	progressPlain = "plain"
	progressQuiet = "quiet"
	progressJSON  = "json"
)

var progressModes = choices{progressAuto, progressTTY, progressPlain, progressQuiet, progressJSON}

// patience is how long a phase lasts before it is worth mentioning.
const patience = time.Second

// How often a long phase is shown anew.
const (
	ttyInterval   = 100 * time.Millisecond
	plainInterval = 10 * time.Second
)

// clock is the time as the renderers see it.
type clock struct {
	now   func() time.Time
	after func(d time.Duration, f func()) (stop func() bool)
}

func afterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// progressOptions are the flags about progress.
type progressOptions struct {
	mode  string
	quiet bool
}

func (o *progressOptions) addFlags(flags *pflag.FlagSet) {
	flags.Var(checked(&o.mode, progressModes.check), "progress", "Show progress as 'auto', 'tty', 'plain', 'quiet' or 'json'")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "Show no progress and no notes, only warnings")
}

// call dials the engine and calls f with it. Progress is shown until f returns.
func call[T any](d deps, volumes volumeOptions, o progressOptions, f func(engine, plan.Progress) (T, error)) (T, error) {
	var none T
	show, err := d.progress(o)
	if err != nil {
		return none, err
	}
	defer show.close()
	eng, err := d.engine(volumes)
	if err != nil {
		return none, err
	}
	return f(eng, show.show)
}

// display shows events until it is closed. It may be used by several goroutines.
type display interface {
	show(e plan.Event)
	close()
}

// progress starts a display as the options, the settings and stderr ask for.
func (d deps) progress(o progressOptions) (display, error) {
	mode, err := d.settings.value(settingProgress, o.mode, progressAuto)
	if err != nil {
		return nil, err
	}
	if mode == progressAuto {
		mode = progressPlain
		if d.err.IsTerminal() {
			mode = progressTTY
		}
	}
	if o.quiet && mode != progressJSON {
		mode = progressQuiet
	}
	switch mode {
	case progressJSON:
		return &jsonDisplay{out: d.err, now: d.clock.now, quiet: o.quiet}, nil
	case progressQuiet:
		return warnings{d.err}, nil
	case progressTTY:
		return &liveDisplay{out: d.err, clock: d.clock, line: &ttyLine{out: d.err}, interval: ttyInterval}, nil
	}
	return &liveDisplay{out: d.err, clock: d.clock, line: plainLine{d.err}, interval: plainInterval}, nil
}

// warnings shows warnings only.
type warnings struct{ out io.Writer }

func (w warnings) show(e plan.Event) {
	if e.Level == plan.LevelWarning {
		_, _ = fmt.Fprintln(w.out, "WARNING: "+indented(plain(e.Text)))
	}
}

func (warnings) close() {}

// jsonDisplay writes every event as a line of JSON.
type jsonDisplay struct {
	mu    sync.Mutex
	out   io.Writer
	now   func() time.Time
	quiet bool // warnings only
}

func (j *jsonDisplay) show(e plan.Event) {
	if j.quiet && e.Level != plan.LevelWarning {
		return
	}
	level := map[plan.Level]string{plan.LevelStatus: "status", plan.LevelNote: "note", plan.LevelWarning: "warning"}[e.Level]
	j.mu.Lock()
	defer j.mu.Unlock()
	encoder := json.NewEncoder(j.out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(progressLine{level, e.Phase, plain(e.Text), e.Current, e.Total, e.Files, rfc3339(j.now())})
}

// progressLine is one event as --progress json shows it.
type progressLine struct {
	Level     string `json:"level"`
	Phase     string `json:"phase"`
	Text      string `json:"text"`
	Current   int64  `json:"current"` // bytes
	Total     int64  `json:"total"`   // bytes; 0: not known
	Files     int64  `json:"files"`
	Timestamp string `json:"timestamp"`
}

func (j *jsonDisplay) close() {}

// liveDisplay shows the current phase once it has lasted for a while, and again at
// every interval. Phases that end sooner leave no trace.
type liveDisplay struct {
	mu       sync.Mutex
	out      io.Writer
	clock    clock
	line     line
	interval time.Duration
	phase    phase
	number   int         // of the phase; a timer of an earlier one may still fire
	stop     func() bool // ends the timer for the next look; nil: no phase is going on
}

// line is where a liveDisplay writes to.
type line interface {
	write(text string)
	clear()
}

func (l *liveDisplay) show(e plan.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.Level {
	case plan.LevelWarning:
		l.line.clear()
		warnings{l.out}.show(e)
		return
	case plan.LevelNote:
		l.line.clear()
		_, _ = fmt.Fprintln(l.out, indented(e.Text))
		return
	case plan.LevelStatus:
	}
	if e.Phase == l.phase.event.Phase && l.stop != nil {
		l.phase.update(e, l.clock.now())
		return
	}
	l.end()
	l.number++
	l.phase = phase{started: l.clock.now()}
	l.phase.update(e, l.phase.started)
	l.look(patience)
}

// look draws the phase after a while, and then at every interval until it ends.
func (l *liveDisplay) look(after time.Duration) {
	number := l.number
	l.stop = l.clock.after(after, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.stop == nil || l.number != number {
			return // it ended while we waited for the lock
		}
		l.line.write(l.phase.describe(l.clock.now()))
		l.look(l.interval)
	})
}

// end stops looking at the phase.
func (l *liveDisplay) end() {
	if l.stop == nil {
		return
	}
	l.stop()
	l.stop = nil
	l.line.clear()
}

func (l *liveDisplay) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// plainLine writes lines one below the other.
type plainLine struct{ out io.Writer }

func (p plainLine) write(text string) { _, _ = fmt.Fprintln(p.out, indented(text)) }
func (plainLine) clear()              {}

// ttyLine writes over the same line of a terminal again and again.
type ttyLine struct {
	out   terminal
	drawn bool
}

const eraseLine = "\r\x1b[K"

func (t *ttyLine) write(text string) {
	_, width := t.out.GetTtySize()
	t.out.writeControl(eraseLine)
	_, _ = fmt.Fprint(t.out, fit(oneLine(text), int(width)))
	t.drawn = true
}

// fit cuts text so that it does not wrap: a second line would not be erased.
func fit(text string, width int) string {
	if width <= 0 || len(text) < width {
		return text
	}
	return strings.ToValidUTF8(text[:width-1], "")
}

func (t *ttyLine) clear() {
	if t.drawn {
		t.out.writeControl(eraseLine)
	}
	t.drawn = false
}
