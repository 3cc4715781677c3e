package commands

import (
	"time"

	"github.com/spf13/pflag"

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
	return volumebackup.Config{Store: store, LockTimeout: o.lockTimeout}, err
}
