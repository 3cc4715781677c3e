package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// Command is a program with its arguments, which runs in the container. It is empty if there is
// nothing to run.
type Command []string

// argv0 is what the shell of a hook is called: it tells hooks from other commands in the engine's
// events.
const argv0 = "cua-snapshot-hook"

// ParseCommand reads a command: a JSON list of strings is run as it is, and anything else by sh -c.
func ParseCommand(text string) Command {
	var list []string
	switch {
	case strings.TrimSpace(text) == "":
		return nil
	case json.Unmarshal([]byte(text), &list) == nil && len(list) > 0:
		return list
	}
	return Command{"sh", "-c", text, argv0}
}

// IsShell tells whether a command, as the engine's events have it, is a hook that a shell runs.
func IsShell(command string) bool {
	return strings.HasPrefix(command, "sh -c ") && strings.HasSuffix(command, " "+argv0)
}

// OnError says what becomes of a snapshot whose pre hook fails.
type OnError string

// The choices.
const (
	Fail     OnError = "fail"     // no snapshot is taken
	Continue OnError = "continue" // it is taken, with a warning
)

// Choices lists what an [OnError] may be.
func Choices() []OnError { return []OnError{Continue, Fail} }

// How long a hook may take: by default, and at most.
const (
	DefaultTimeout = 30 * time.Second
	MaxTimeout     = time.Hour
)

// Options is what the user asks for. The zero value leaves everything to the labels.
type Options struct {
	Pre, Post *Command // an empty command: none, whatever the label says
	Timeout   time.Duration
	OnError   OnError
}

// Hooks are the commands around a freeze.
type Hooks struct {
	Pre, Post Command
	Timeout   time.Duration // of each
	OnError   OnError
}

// None tells whether there is nothing to run.
func (h Hooks) None() bool { return len(h.Pre) == 0 && len(h.Post) == 0 }

// Of returns the hooks of a container with these labels. What the user asks for goes first.
func Of(containerLabels map[string]string, o Options) (Hooks, error) {
	h := Hooks{
		Pre:     ParseCommand(containerLabels[labels.KeyPolicyPre]),
		Post:    ParseCommand(containerLabels[labels.KeyPolicyPost]),
		Timeout: o.Timeout,
		OnError: o.OnError,
	}
	if o.Pre != nil {
		h.Pre = *o.Pre
	}
	if o.Post != nil {
		h.Post = *o.Post
	}
	if h.None() {
		return Hooks{}, nil // then it does not matter what else the labels say
	}
	var err error
	if h.Timeout == 0 {
		if h.Timeout, err = ParseTimeout(containerLabels[labels.KeyPolicyHookTimeout]); err != nil {
			return Hooks{}, fmt.Errorf("label %s: %w", labels.KeyPolicyHookTimeout, err)
		}
	}
	if h.OnError == "" {
		if h.OnError, err = ParseOnError(containerLabels[labels.KeyPolicyOnError]); err != nil {
			return Hooks{}, fmt.Errorf("label %s: %w", labels.KeyPolicyOnError, err)
		}
	}
	return h, nil
}

// ParseTimeout reads how long a hook may take. No text means the default.
func ParseTimeout(text string) (time.Duration, error) {
	if text == "" {
		return DefaultTimeout, nil
	}
	timeout, err := catalog.ParseDuration(text)
	if err != nil {
		return 0, err
	}
	if timeout <= 0 || timeout > MaxTimeout {
		return 0, fmt.Errorf("%s is not between 0 and %s", text, MaxTimeout)
	}
	return timeout, nil
}

// ParseOnError reads what becomes of a snapshot whose pre hook fails. No text means the default.
func ParseOnError(text string) (OnError, error) {
	switch o := OnError(text); o {
	case "":
		return Fail, nil
	case Fail, Continue:
		return o, nil
	}
	return "", errors.New("use one of continue, fail")
}
