package commands

import "os"

// notifyResize does nothing: Windows has no signal for that.
func notifyResize(chan<- os.Signal) {}
