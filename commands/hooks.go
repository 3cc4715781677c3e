package commands

import (
	"errors"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/hooks"
)

// hookErrors are the values of --hook-on-error.
var hookErrors = choicesOf(hooks.Choices()...)

// parseHook reads the command of a hook. No text means no hook, whatever the container's label says.
func parseHook(text string) (*hooks.Command, error) {
	command := hooks.ParseCommand(text)
	return &command, nil
}

// parseHookTimeout reads how long a hook may take.
func parseHookTimeout(text string) (time.Duration, error) {
	if text == "" {
		return 0, errors.New("it is empty")
	}
	return hooks.ParseTimeout(text)
}
