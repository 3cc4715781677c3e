package commands

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// volumeOptions say which store to use, and how long to wait for a lock. A command
// has its own, and hands them over when it dials the engine.
type volumeOptions struct {
	store       string // empty: the setting's, or what each snapshot says
	lockTimeout time.Duration
}

// defaultLockTimeout is how long to wait for another operation on the container.
const defaultLockTimeout = time.Minute

// defaultVolumes are the options of a command that has no flags for them.
func defaultVolumes() volumeOptions { return volumeOptions{lockTimeout: defaultLockTimeout} }

// addMakingFlags adds the flags of a command that stores archives.
func (o *volumeOptions) addMakingFlags(flags *pflag.FlagSet) {
	o.addStoreFlag(flags, "Keep the content of volumes in this volume (default \""+volumebackup.DefaultStore+"\")")
	o.addLockFlag(flags)
}

// addFindingFlags adds the flags of a command that looks for archives.
func (o *volumeOptions) addFindingFlags(flags *pflag.FlagSet) {
	o.addStoreFlag(flags, "Look for the content of volumes in this volume (default: where each snapshot says that it is)")
	o.addLockFlag(flags)
}

func (o *volumeOptions) addStoreFlag(flags *pflag.FlagSet, usage string) {
	flags.Var(checked(&o.store, checkStore), "store", usage)
}

// addLockFlag adds the only flag of a command that finds the store by itself.
func (o *volumeOptions) addLockFlag(flags *pflag.FlagSet) {
	flags.DurationVar(&o.lockTimeout, "lock-timeout", defaultLockTimeout, "Wait so long for another operation on the container")
}

// checkStore refuses what is no name of a volume: a path would become a bind mount.
func checkStore(name string) error { return runconfig.CheckVolumeName(name) }

// config completes the options with the user's settings.
func (o volumeOptions) config(s settings) (volumebackup.Config, error) {
	store, err := s.value(settingStore, o.store, volumebackup.DefaultStore)
	if err != nil {
		return volumebackup.Config{}, err
	}
	text, err := s.value(settingCheckFraction, "", usualCheckFraction)
	if err != nil {
		return volumebackup.Config{}, err
	}
	fraction, err := parseFraction(text)
	if err != nil {
		return volumebackup.Config{}, err
	}
	c := volumebackup.Config{Store: store, LockTimeout: o.lockTimeout, CheckFraction: *fraction}
	kept, err := s.value(settingLostRetention, "", "")
	if err == nil && kept != "" {
		c.LostRetention, err = labels.ParseDuration(kept)
	}
	return c, err
}

// usualCheckFraction is how much of the files that seem to be unchanged every tenth automatic snapshot compares.
const usualCheckFraction = "0.1"

// parseFraction reads a part of a whole.
func parseFraction(text string) (*float64, error) {
	fraction, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(fraction) || fraction < 0 || fraction > 1 {
		return nil, errors.New("use a number from 0 to 1, such as 0.1")
	}
	return &fraction, nil
}

func checkFraction(text string) error {
	_, err := parseFraction(text)
	return err
}
