package capture

import (
	"errors"
)

// errSelf means that freezing a container would freeze this program, and whoever
// watches over it: nobody would be left to thaw it.
var errSelf = errors.New("this program runs in it: use --pause=none, or run it elsewhere")
