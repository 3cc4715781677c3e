//go:build !linux

package worker

import (
	"context"
	"errors"
	"io"
	"os"
)

// ServeConfined exists on Linux only.
func ServeConfined(context.Context, *os.File, io.Writer, Options) error {
	return errors.New("the worker runs on Linux only")
}
