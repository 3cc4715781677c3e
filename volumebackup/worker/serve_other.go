//go:build !linux

package worker

import (
	"context"
	"errors"
	"io"
)

// Serve exists on Linux only.
func Serve(context.Context, io.Reader, io.Writer, Options) error {
	return errors.New("the worker runs on Linux only")
}
