package commands

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/watch"
)

// The ways to write the log of watch.
const (
	logText = "text"
	logJSON = "json"
)

// watchLine is one line of the log.
type watchLine struct {
	Timestamp   string `json:"timestamp"`
	Level       string `json:"level"`
	Event       string `json:"event"`
	Container   string `json:"container"`
	ContainerID string `json:"container_id"`
	ID          string `json:"id"`
	Trigger     string `json:"trigger"`
	Reason      string `json:"reason"`
	FrozenMS    int64  `json:"frozen_ms"`
	Incomplete  bool   `json:"incomplete"`
	Error       string `json:"error"`
}

// levels are those of reports that are not only for information.
var levels = map[watch.What]slog.Level{
	watch.Failed: slog.LevelError, watch.Away: slog.LevelError, watch.Warning: slog.LevelWarn,
}

// watchLog writes a line for everything that happens while containers are watched. Several goroutines
// may use it.
type watchLog struct {
	mu     sync.Mutex
	out    io.Writer
	format string
	now    func() time.Time
}

// tell writes a report. If it cannot, the watching goes on: that is more important.
func (l *watchLog) tell(r watch.Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	line := watchLine{
		Timestamp: rfc3339(now), Level: strings.ToLower(levels[r.What].String()), Event: string(r.What),
		Container: r.Container, ContainerID: r.ContainerID, ID: r.Snapshot, Trigger: r.Trigger, Reason: r.Reason,
		FrozenMS: r.FrozenMS, Incomplete: r.Incomplete, Error: plain(r.Error),
	}
	if l.format == logJSON {
		_ = writeJSON(l.out, line)
		return
	}
	_ = line.writeText(l.out, slog.NewRecord(now, levels[r.What], line.Event, 0))
}

// writeText writes the line as key=value pairs, without those that do not apply.
func (w watchLine) writeText(out io.Writer, record slog.Record) error {
	handler := slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey:
			return slog.String("timestamp", w.Timestamp)
		case slog.LevelKey:
			return slog.String("level", w.Level)
		case slog.MessageKey:
			a.Key = "event"
		}
		return a
	}})
	for _, part := range []struct{ key, text string }{
		{"container", w.Container},
		{"container_id", w.ContainerID},
		{"id", w.ID},
		{"trigger", w.Trigger},
		{"reason", w.Reason},
		{"error", w.Error},
	} {
		if part.text != "" {
			record.AddAttrs(slog.String(part.key, part.text))
		}
	}
	if w.Event == string(watch.Took) {
		record.AddAttrs(slog.Int64("frozen_ms", w.FrozenMS), slog.Bool("incomplete", w.Incomplete))
	}
	return handler.Handle(context.Background(), record) //nolint:forbidigo // slog asks for a context, which this handler does not use
}
