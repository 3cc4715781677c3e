package catalog

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// Filter selects snapshots. Terms with the same key are alternatives, and every key that occurs
// must match. The zero value selects all.
type Filter struct {
	terms map[string][]predicate
}

// predicate tells whether a snapshot matches one term. It gets the whole list for terms that refer
// to another snapshot.
type predicate func(s Snapshot, all []Snapshot) (bool, error)

// FilterKeys returns the keys that [ParseFilter] knows, for help and completion.
func FilterKeys() []string {
	return []string{
		"before", "container", "expired", "group", "kind", "label", "larger", "line", "meta.", "name", "pinned", "run", "since", "smaller", "step", "store",
		"tag", "trigger",
	}
}

// ParseFilter reads key=value terms. The value of before and since may be a snapshot's ID, name or
// reference, an RFC 3339 time, or a duration before now.
func ParseFilter(terms []string, now time.Time) (Filter, error) {
	f := Filter{terms: map[string][]predicate{}}
	for _, term := range terms {
		key, value, found := strings.Cut(term, "=")
		if !found || key == "" {
			return Filter{}, fmt.Errorf("invalid filter %q: use key=value", term)
		}
		match, err := parseTerm(key, value, now)
		if err != nil {
			return Filter{}, fmt.Errorf("invalid filter %q: %w", term, err)
		}
		f.terms[key] = append(f.terms[key], match)
	}
	return f, nil
}

// textFields are what the keys stand for whose value is compared as it is.
var textFields = map[string]func(Snapshot) string{
	"line":  func(s Snapshot) string { return s.Line },
	"run":   func(s Snapshot) string { return s.RunID },
	"step":  func(s Snapshot) string { return s.StepID },
	"group": func(s Snapshot) string { return s.Group },
	"store": func(s Snapshot) string { return s.Store },
}

func parseTerm(key, value string, now time.Time) (predicate, error) {
	field := func(get func(Snapshot) string) predicate {
		return func(s Snapshot, _ []Snapshot) (bool, error) { return get(s) == value, nil }
	}
	if get, ok := textFields[key]; ok {
		return field(get), nil
	}
	switch key {
	case "container":
		return func(s Snapshot, _ []Snapshot) (bool, error) {
			return s.Kind == labels.KindContainer && isContainer(s.Container, value), nil
		}, nil
	case "kind":
		return kindTerm(value)
	case "name":
		return nameTerm(value)
	case "larger":
		return sizeTerm(value, func(size, limit int64) bool { return size > limit })
	case "smaller":
		return sizeTerm(value, func(size, limit int64) bool { return size < limit })
	case "trigger":
		if !slices.Contains(labels.Triggers(), labels.Trigger(value)) {
			return nil, fmt.Errorf("unknown trigger, use one of %v", labels.Triggers())
		}
		return field(func(s Snapshot) string { return string(s.Trigger) }), nil
	case "tag":
		return func(s Snapshot, _ []Snapshot) (bool, error) { return slices.Contains(s.Tags, value), nil }, nil
	case "label":
		return labelTerm(value), nil
	case "pinned":
		return boolTerm(value, func(s Snapshot) bool { return s.Pinned })
	case "expired":
		return boolTerm(value, func(s Snapshot) bool { return s.Expired(now) })
	case "before":
		return ageTerm(value, now, time.Time.Before), nil
	case "since":
		return ageTerm(value, now, time.Time.After), nil
	}
	if meta, ok := strings.CutPrefix(key, "meta."); ok {
		return field(func(s Snapshot) string { return s.Meta[meta] }), nil
	}
	return nil, fmt.Errorf("unknown key, use one of %s", strings.Join(FilterKeys(), ", "))
}

// isContainer compares word with a container's name and ID. The first 12 digits of the ID, which
// docker ps shows, are enough.
func isContainer(c labels.Container, word string) bool {
	return c.Name == word || c.ID == word || len(word) >= dockerop.ShortID && strings.HasPrefix(c.ID, word)
}

// kindTerm matches states, or with an empty value all that is of a container.
func kindTerm(value string) (predicate, error) {
	kind := labels.Kind(value)
	if kind != labels.KindContainer && kind != labels.KindState {
		return nil, fmt.Errorf("unknown kind, use %s, or nothing for those of containers", labels.KindState)
	}
	return func(s Snapshot, _ []Snapshot) (bool, error) { return s.Kind == kind, nil }, nil
}

// labelTerm matches the captured container's own labels, by key or by key=value.
func labelTerm(term string) predicate {
	key, want, valued := strings.Cut(term, "=")
	return func(s Snapshot, _ []Snapshot) (bool, error) {
		got, ok := s.ContainerLabels()[key]
		return ok && (!valued || got == want), nil
	}
}

// nameTerm matches names as docker ps does: with a regular expression that may match a part.
func nameTerm(value string) (predicate, error) {
	pattern, err := regexp.Compile(value)
	if err != nil {
		return nil, fmt.Errorf("use a part of a name, or a regular expression: %w", err)
	}
	return func(s Snapshot, _ []Snapshot) (bool, error) { return pattern.MatchString(s.Name), nil }, nil
}

// sizeTerm compares what taking a snapshot added on the engine, as the column SIZE of ls.
func sizeTerm(value string, compare func(size, limit int64) bool) (predicate, error) {
	limit, err := units.FromHumanSize(value)
	if err != nil || limit < 0 {
		return nil, errors.New("use a size, such as 500MB or 1GB")
	}
	return func(s Snapshot, _ []Snapshot) (bool, error) { return compare(s.StoredBytes(), limit), nil }, nil
}

func boolTerm(value string, get func(Snapshot) bool) (predicate, error) {
	want, err := strconv.ParseBool(value)
	if err != nil {
		return nil, errors.New("use true or false")
	}
	return func(s Snapshot, _ []Snapshot) (bool, error) { return get(s) == want, nil }, nil
}

func ageTerm(value string, now time.Time, compare func(t, u time.Time) bool) predicate {
	if limit, ok := parseAge(value, now); ok {
		return func(s Snapshot, _ []Snapshot) (bool, error) { return compare(s.Created, limit), nil }
	}
	return func(s Snapshot, all []Snapshot) (bool, error) {
		other, err := pick(value, all)
		if err != nil {
			return false, err
		}
		return compare(s.Created, other.Created), nil
	}
}

// parseAge reads an RFC 3339 time, or a duration before now. It returns false for anything else.
func parseAge(value string, now time.Time) (time.Time, bool) {
	if t, err := time.Parse(time.RFC3339Nano, value); err == nil {
		return t, true
	}
	d, err := ParseDuration(value)
	return now.Add(-d), err == nil
}

// ParseDuration reads a duration as labels and options have it; see [labels.ParseDuration].
func ParseDuration(s string) (time.Duration, error) { return labels.ParseDuration(s) }

// Apply returns the snapshots of all that match, in the same order.
func (f Filter) Apply(all []Snapshot) ([]Snapshot, error) {
	var kept []Snapshot
	for _, s := range all {
		ok, err := f.match(s, all)
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, s)
		}
	}
	return kept, nil
}

func (f Filter) match(s Snapshot, all []Snapshot) (bool, error) {
	for _, key := range slices.Sorted(maps.Keys(f.terms)) { // in order, so that always the same term fails first
		matched := false
		for _, match := range f.terms[key] {
			ok, err := match(s, all)
			if err != nil {
				return false, err
			}
			matched = matched || ok
		}
		if !matched {
			return false, nil
		}
	}
	return true, nil
}
