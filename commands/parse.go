package commands

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/docker/cli/opts"
	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// parseMeta reads key=value.
func parseMeta(pair string) (key, value string, err error) {
	key, value, _ = strings.Cut(pair, "=")
	if value == "" {
		return "", "", errors.New("use key=value")
	}
	return key, value, labels.CheckMetaKey(key)
}

// parseLabel reads KEY or KEY=VALUE.
func parseLabel(label string) (key, value string, err error) {
	label, err = opts.ValidateLabel(label)
	key, value, _ = strings.Cut(label, "=")
	return key, value, err
}

// checkTag refuses the empty tag, by which nobody could filter.
func checkTag(tag string) (string, error) {
	if tag == "" {
		return "", errors.New("it is empty")
	}
	return tag, nil
}

// parseExpiry reads a moment in the future: a duration from now, an RFC 3339
// time, or a date, which begins at midnight where the user is. No text means never.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		when, err = time.ParseInLocation(time.DateOnly, text, now.Location())
	}
	if err != nil {
		duration, notDuration := catalog.ParseDuration(text)
		if notDuration != nil {
			return time.Time{}, errors.New("it is neither a duration (36h, 2w) nor a time (RFC 3339, or a date)")
		}
		when = now.Add(duration)
	}
	if !when.After(now) {
		return time.Time{}, errors.New("it is not in the future")
	}
	return when.UTC(), nil
}

// pauses are the values of --pause. For years docker commit has had it as a switch,
// of which --pause=true and --pause=false are left. There is no bare --pause: it would
// not know whether the next word is its value.
var pauses = map[string]capture.Pause{
	"all": capture.PauseAll, "target": capture.PauseTarget, "none": capture.PauseNone,
	"true": capture.PauseAll, "false": capture.PauseNone,
}

var pauseChoices = choicesOf(capture.PauseAll, capture.PauseTarget, capture.PauseNone)

func parsePause(word string) (capture.Pause, error) {
	if pause, known := pauses[word]; known {
		return pause, nil
	}
	return "", pauseChoices.check(word)
}

// errNegative refuses a limit below 0.
var errNegative = errors.New("it is negative; 0 means no limit")

// parseMemory reads a number of bytes, such as 64m.
func parseMemory(text string) (*int64, error) {
	bytes, err := units.RAMInBytes(text)
	if err == nil && bytes < 0 {
		err = errNegative
	}
	return &bytes, err
}

// parseCPUs reads a number of CPUs, such as 1.5, into billionths of one.
func parseCPUs(text string) (*int64, error) {
	nano, err := opts.ParseCPUs(text)
	if err == nil && nano < 0 {
		err = errNegative
	}
	return &nano, err
}

// stopTimeoutUnset leaves the time to stop to the container's own setting.
const stopTimeoutUnset = -1

// parseStopTimeout reads a number of seconds.
func parseStopTimeout(text string) (*int, error) {
	seconds, err := strconv.Atoi(text)
	if err != nil {
		return nil, errors.New("use a number of seconds")
	}
	if seconds == stopTimeoutUnset {
		return nil, nil
	}
	return &seconds, nil
}

// checkContainer refuses a word that cannot be a container, before the engine is asked.
func checkContainer(word string) error {
	if word == "" {
		return wrongArgument{errors.New("container name cannot be empty")}
	}
	return nil
}

// checkSnapshot refuses a word that cannot be a snapshot.
func checkSnapshot(word string) error {
	if word == "" {
		return wrongArgument{errors.New("snapshot name cannot be empty")}
	}
	return nil
}
