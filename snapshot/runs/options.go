package runs

import (
	"context"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// Options says how to run a command with snapshots of a container around it.
type Options struct {
	Container        string   // name, ID or unique ID prefix
	RunID            string   // empty: a new one; that of an earlier run continues it
	Command          []string // what is run, for the session
	HideArguments    bool     // keep only the first word of Command
	RestoreOnFailure bool     // if the command fails, restore the container in place to the run's start
	Timeout          time.Duration
	Policy           retention.Policy        // the user's
	Override         func(*retention.Policy) // changes the policy after the container's labels have; nil: nothing does
}

// DefaultTimeout is how long one automatic snapshot may take, waiting for locks included.
const DefaultTimeout = time.Minute

// Command runs the command, and returns its exit status when it has ended. An error means that it could
// not be started.
type Command func(ctx context.Context, s session.Session) (status int, err error)

// Result is how a run ended.
type Result struct {
	Session session.Session
	Status  int // exit status of the command
}
