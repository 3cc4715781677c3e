//go:build !linux

package worker

import (
	"context"
	"errors"
	"io"
)

// ServeConfined exists on Linux only.
func ServeConfined(context.Context, io.Reader, io.Writer, Options) error {
	return errors.New("the worker runs on Linux only")
}
