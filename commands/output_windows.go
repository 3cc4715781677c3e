package commands

// outputGone tells whether nobody reads our output any more: there is no such signal.
func outputGone() bool { return false }
