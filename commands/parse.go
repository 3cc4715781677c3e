package commands

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot"
)

// parseMeta reads key=value pairs.
func parseMeta(pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	meta := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		if value == "" {
			return nil, fmt.Errorf("invalid --meta %q: use key=value", pair)
		}
		if err := labels.CheckMetaKey(key); err != nil {
			return nil, fmt.Errorf("invalid --meta %q: %w", pair, err)
		}
		meta[key] = value
	}
	return meta, nil
}

// parseExpiry reads a moment in the future: a duration from now, an RFC 3339
// time, or a date, which begins at midnight where the user is. Nothing is never.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		when, err = time.ParseInLocation(time.DateOnly, text, now.Location())
	}
	if err != nil {
		duration, notDuration := snapshot.ParseDuration(text)
		if notDuration != nil {
			return time.Time{}, fmt.Errorf("%q is neither a duration (36h, 2w) nor a time (RFC 3339, or a date)", text)
		}
		when = now.Add(duration)
	}
	if !when.After(now) {
		return time.Time{}, fmt.Errorf("%q is not in the future", text)
	}
	return when.UTC(), nil
}

// checkContainer refuses what cannot be a container before the engine is asked.
func checkContainer(word string) error {
	if word == "" {
		return errors.New("container name cannot be empty")
	}
	return nil
}

// checkSnapshot does the same for the word that means a snapshot.
func checkSnapshot(word string) error {
	if word == "" {
		return errors.New("snapshot name cannot be empty")
	}
	return nil
}
