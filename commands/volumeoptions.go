package commands

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// volumeOptions say how volumes are archived. All commands share them, for they
// have to be known when the engine is dialled.
type volumeOptions struct {
	store       string
	lockTimeout time.Duration
}

// defaultLockTimeout is how long to wait for another operation on the container.
const defaultLockTimeout = time.Minute

// addMakingFlags is for commands that put something into a store.
func (o *volumeOptions) addMakingFlags(flags *pflag.FlagSet) {
	o.addStoreFlag(flags, "Keep the content of volumes in this volume (default \""+volumebackup.DefaultStore+"\")")
	o.addLockFlag(flags)
}

// addFindingFlags is for commands that need what snapshots have put into a store.
func (o *volumeOptions) addFindingFlags(flags *pflag.FlagSet) {
	o.addStoreFlag(flags, "Look for the content of volumes in this volume (default: where each snapshot says that it is)")
	o.addLockFlag(flags)
}

func (o *volumeOptions) addStoreFlag(flags *pflag.FlagSet, usage string) {
	flags.Var(checked{&o.store, checkStore}, "store", usage)
}

// addLockFlag is for commands that find the store by themselves.
func (o *volumeOptions) addLockFlag(flags *pflag.FlagSet) {
	flags.DurationVar(&o.lockTimeout, "lock-timeout", defaultLockTimeout, "Wait so long for another operation on the container")
}

// checkStore refuses what is not a volume's name: a path would be a bind mount.
func checkStore(name string) error { return snapshot.CheckVolumeName(name) }

// config completes the options with the user's settings.
func (o *volumeOptions) config(s settings) (volumebackup.Config, error) {
	store, err := s.value(settingStore, o.store, volumebackup.DefaultStore)
	return volumebackup.Config{Store: store, LockTimeout: o.lockTimeout}, err
}
