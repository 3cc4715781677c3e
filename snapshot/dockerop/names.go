package dockerop

import (
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
)

// Distinct returns every string of the lists once, sorted.
func Distinct(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// SummaryName returns the name of a listed container, or its ID if it has none.
func SummaryName(c container.Summary) string {
	if len(c.Names) == 0 {
		return c.ID
	}
	return strings.TrimPrefix(c.Names[0], "/")
}

// ShortID is how many digits of an ID docker shows, FullID how many there are.
const (
	ShortID = 12
	FullID  = 64
)

// Shorten returns the part of an ID that docker shows.
func Shorten(id string) string { return id[:min(len(id), ShortID)] }

// ContainerName returns the name of an inspected container, without the slash that the API puts
// before it.
func ContainerName(c container.InspectResponse) string { return strings.TrimPrefix(c.Name, "/") }
