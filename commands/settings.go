package commands

import (
	"errors"
	"fmt"
	"strings"

	"github.com/docker/cli/cli/command"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
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

	settingLostRetention = "lost-retention"
	settingCheckFraction = "check-fraction"
)

func allSettings() []setting {
	all := []setting{
		{settingFormat, "the --format of docker snapshot ls", checkListFormat},
		{settingProgress, "the --progress of every command", progressModes.check},
		{settingStore, "the --store of docker snapshot create", checkStore},
		{settingLostRetention, "how long to keep what volumes held when the snapshot's image is gone (7d)", checkLostRetention},
		{settingCheckFraction, "the part of unchanged files that every tenth automatic snapshot of a volume compares (0.1)", checkFraction},
	}
	for _, one := range policySettings {
		all = append(all, setting{one.name, one.usage, checkPolicy(one.name)})
	}
	return all
}

// policySettings are the settings about automatic snapshots. Labels of a container, and options,
// override them.
var policySettings = []struct{ name, usage string }{
	{retention.NameEnabled, "whether automatic snapshots are taken (true)"},
	{retention.NameInterval, "at which moments of a run snapshots are taken (run_boundaries)"},
	{retention.NameMaxSnapshots, "how many automatic ones to keep of a container (10)"},
	{retention.NameMaxAgent, "how many of those that agents take to keep of a container (20)"},
	{retention.NameMaxTotal, "how many automatic ones to keep in all (100)"},
	{retention.NameMaxSize, "how much all automatic ones may occupy (10GB)"},
	{retention.NameRetentionDays, "how many days to keep automatic ones (7)"},
	{retention.NameAutoCleanup, "whether to remove the others by itself (true)"},
}

// checkLostRetention refuses what does not say how long something is kept.
func checkLostRetention(text string) error {
	d, err := labels.ParseDuration(text)
	if err == nil && d == 0 {
		err = errors.New("it has to be longer than nothing")
	}
	return err
}

// checkPolicy returns the check of a setting about automatic snapshots.
func checkPolicy(name string) func(string) error {
	return func(text string) error { return new(retention.Policy).Set(name, text) }
}

func (s setting) variable() string {
	return "DOCKER_SNAPSHOT_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// settingsHelp is the table of settings as the help shows it.
func settingsHelp() string {
	var b strings.Builder
	for _, s := range allSettings() {
		fmt.Fprintf(&b, "  %-14s %-30s %s\n", s.name, s.variable(), s.usage)
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
			return "", wrongArgument{fmt.Errorf("invalid value %q of %s: %w", value, source, err)}
		}
		return value, nil
	}
	return fallback, nil
}

// policy returns the policy for automatic snapshots: the built-in one, changed by config.json, and
// that by the environment. It fails if one of these values is wrong.
func (s settings) policy() (retention.Policy, error) {
	p := retention.Default()
	for _, one := range policySettings {
		text, err := s.value(one.name, "", "")
		if err == nil && text != "" {
			err = p.Set(one.name, text)
		}
		if err != nil {
			return retention.Policy{}, err
		}
	}
	return p, nil
}

// policyOf returns the policy for the automatic snapshots of a container with these labels: what
// [settings.policy] returns, changed by the labels. Options come after that: the caller sets what
// they say in the result. Labels that cannot be read are warned of, and passed over.
func (s settings) policyOf(containerLabels map[string]string, warn func(string)) (retention.Policy, error) {
	p, err := s.policy()
	if err != nil {
		return p, err
	}
	p, wrong := p.ForContainer(containerLabels)
	for _, err := range wrong {
		warn(err.Error())
	}
	return p, nil
}

func (s settings) find(known setting) (value, source string) {
	if value, ok := s.environment(known.variable()); ok && value != "" {
		return value, known.variable()
	}
	value, _ = s.config(known.name)
	return value, fmt.Sprintf("plugins.%s.%s in %s", Name, known.name, s.configFile())
}
