package commands

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// errDeclined ends a command if the user does not answer its question with yes.
var errDeclined = errors.New("cancelled: nothing was changed")

// confirm says on stderr what is going to be done, and asks for a yes.
func (d deps) confirm(ctx context.Context, warning string) error {
	if _, err := fmt.Fprintf(d.err, "%s\nAre you sure you want to continue? [y/N] ", warning); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	answered := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(d.in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			line = ""
		}
		answered <- line
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case line := <-answered:
		if !strings.EqualFold(strings.TrimSpace(line), "y") {
			return errDeclined
		}
		return nil
	}
}
