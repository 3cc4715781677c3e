package commands

import (
	"fmt"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// describeConfig says what a restore in place changes in the configuration: a line for each
// change, and one for all environment variables.
func describeConfig(changes []runconfig.ConfigChange) []string {
	var lines, variables []string
	for _, c := range changes {
		switch c.What {
		case runconfig.ConfigEnvironment:
			variables = append(variables, c.Verb+" "+c.Name)
		case runconfig.ConfigPort:
			lines = append(lines, fmt.Sprintf("port %s: %s", c.Name, becomes(c, "published on ", "no longer published")))
		case runconfig.ConfigMount:
			lines = append(lines, fmt.Sprintf("mount %s: %s", c.Name, becomes(c, "", "nothing is mounted")))
		default:
			lines = append(lines, fmt.Sprintf("%s: %s", c.What, becomes(c, "", "none")))
		}
	}
	if len(variables) > 0 {
		lines = append(lines, "environment: "+strings.Join(variables, ", "))
	}
	return lines
}

// becomes describes the new value, and the one that it replaces.
func becomes(c runconfig.ConfigChange, prefix, none string) string {
	switch c.Verb {
	case "add":
		return prefix + c.Then
	case "remove":
		return none + " (now " + c.Now + ")"
	}
	return prefix + c.Then + " instead of " + c.Now
}
