package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// NotReadyError means that a restored container did not come up.
type NotReadyError struct {
	Container string
	Copy      bool     // it was a copy, and has been removed
	Promoted  bool     // it was to take the place of its original
	Reason    string   // what it did, or did not do
	Late      bool     // its time was over, so more of it may help
	Log       []string // the last lines of it
}

func (e *NotReadyError) Error() string {
	text := "container " + e.Container + " " + e.Reason
	if len(e.Log) > 0 {
		text += "\nthe last lines of its log:\n  " + strings.Join(e.Log, "\n  ")
	}
	return text
}

// What of a log is shown.
const (
	shownLines      = 20
	shownLineLength = 500
	maxLogRead      = 1 << 20
)

// notReady explains why a container did not come up, with the end of its log.
func (b *Builder) notReady(ctx context.Context, c container.InspectResponse, name, reason string, late bool) error {
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	return &NotReadyError{Container: name, Reason: reason, Late: late, Log: b.lastLines(ctx, c)}
}

// lastLines returns the last lines of a container's log; none if its log driver cannot be read.
func (b *Builder) lastLines(ctx context.Context, c container.InspectResponse) []string {
	logs, err := b.docker.ContainerLogs(ctx, c.ID, container.LogsOptions{ShowStdout: true, ShowStderr: true, Tail: fmt.Sprint(shownLines)})
	if err != nil {
		return nil
	}
	defer logs.Close()
	var text bytes.Buffer
	in := io.LimitReader(logs, maxLogRead)
	if c.Config.Tty {
		_, err = io.Copy(&text, in)
	} else {
		_, err = stdcopy.StdCopy(&text, &text, in)
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && text.Len() == 0 {
		return nil
	}
	var lines []string
	for line := range strings.Lines(text.String()) {
		lines = append(lines, cut(strings.TrimRight(line, "\r\n")))
	}
	return lines[max(0, len(lines)-shownLines):]
}

// cut shortens a long line.
func cut(line string) string {
	if len(line) > shownLineLength {
		line = strings.ToValidUTF8(line[:shownLineLength], "") + " …"
	}
	return line
}

// lastCheck returns the last output of the healthcheck, or how it ended.
func lastCheck(h *container.Health) string {
	if h == nil || len(h.Log) == 0 {
		return ""
	}
	last := h.Log[len(h.Log)-1]
	output := cut(strings.Join(strings.Fields(last.Output), " "))
	if output == "" {
		return fmt.Sprintf("; its last check ended with status %d", last.ExitCode)
	}
	return fmt.Sprintf("; last check: %q", output)
}
