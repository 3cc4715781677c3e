package commands

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// addWaitingFlags adds the flags that say how long a restored container is waited for.
func addWaitingFlags(flags *pflag.FlagSet, o *runconfig.Waiting) {
	flags.DurationVar(&o.Settle, "settle", runconfig.DefaultSettle, "How long a container without healthcheck has to run")
	flags.DurationVar(&o.HealthTimeout, "health-timeout", 0, "How long it may take to become healthy, or to stay up by its restart policy (default: as long as its healthcheck needs, at least "+runconfig.DefaultHealthTimeout.String()+")")
}

// checkWaiting refuses options about waiting for copies that nobody waits for.
func checkWaiting(flags *pflag.FlagSet, wait, noStart bool) error {
	if wait && noStart {
		return errors.New("conflicting options: --wait and --no-start")
	}
	return checkWaitingFlags(flags, wait, "wait")
}

// checkWaitingFlags refuses the flags that say how long to wait without the one with which somebody waits.
func checkWaitingFlags(flags *pflag.FlagSet, waits bool, with string) error {
	for _, name := range []string{"settle", "health-timeout"} {
		if flags.Changed(name) && !waits {
			return fmt.Errorf("--%s goes with --%s", name, with)
		}
	}
	return nil
}
