//go:build linux && cgo

package worker

// narrow does nothing in a program with a C library. That has threads of its own, and a way to reach them that waits without end
// for what the worker may not do any more. Releases, and all that install.sh builds, are without one.
func narrow(Options) error { return nil }
