package commands

import (
	"fmt"
	"strings"

	"github.com/docker/cli/cli/command"
)

// setting is a default that users can change for good.
type setting struct {
	name  string // in config.json; upper-cased after DOCKER_SNAPSHOT_ in the environment
	usage string
	check func(string) error
}

const (
	settingFormat   = "format"
	settingProgress = "progress"
	settingStore    = "store"
)

func allSettings() []setting {
	return []setting{
		{settingFormat, "the --format of docker snapshot ls", checkListFormat},
		{settingProgress, "the --progress of every command", progressModes.check},
		{settingStore, "the --store of docker snapshot create", checkStore},
	}
}

func (s setting) variable() string { return "DOCKER_SNAPSHOT_" + strings.ToUpper(s.name) }

// settingsHelp is the table of settings as the help shows it.
func settingsHelp() string {
	var b strings.Builder
	for _, s := range allSettings() {
		fmt.Fprintf(&b, "  %-10s %-26s %s\n", s.name, s.variable(), s.usage)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// settings finds the values that users have set.
type settings struct {
	environment func(variable string) (string, bool)
	config      func(name string) (string, bool)
	configFile  func() string
}

func newSettings(dockerCLI command.Cli, environment func(string) (string, bool)) settings {
	return settings{
		environment: environment,
		config:      func(name string) (string, bool) { return dockerCLI.ConfigFile().PluginConfig(Name, name) },
		configFile:  func() string { return dockerCLI.ConfigFile().Filename },
	}
}

// value returns what to use for a setting: the flag's value unless that is
// empty, else the environment's, else the one in config.json, else fallback.
// Flags are checked when they are parsed.
func (s settings) value(name, flag, fallback string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	for _, known := range allSettings() {
		if known.name != name {
			continue
		}
		value, source := s.find(known)
		if value == "" {
			return fallback, nil
		}
		if err := known.check(value); err != nil {
			return "", fmt.Errorf("invalid value %q of %s: %w", value, source, err)
		}
		return value, nil
	}
	return fallback, nil
}

func (s settings) find(known setting) (value, source string) {
	if value, ok := s.environment(known.variable()); ok && value != "" {
		return value, known.variable()
	}
	value, _ = s.config(known.name)
	return value, fmt.Sprintf("plugins.%s.%s in %s", Name, known.name, s.configFile())
}
