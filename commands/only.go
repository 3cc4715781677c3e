package commands

import (
	"errors"
	"fmt"
	"slices"

	"github.com/docker/cli/opts"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/paths"
)

// addOnlyFlags adds the flags that say what of a snapshot goes back in place.
func (o *restoreOptions) addOnlyFlags(flags *pflag.FlagSet) {
	flags.Var(opts.NewListOptsRef(&o.engine.Only, checkPart), "only", "With --replace: put back this volume (its name, or where it is mounted) or 'rootfs' only; volumes alone keep the container")
	flags.Var(opts.NewListOptsRef(&o.engine.Paths, nil), "path", "With --only and volumes: put back only paths in the container that match, as in a .dockerignore: '/data/conf', '**/*.conf', '!**/*.tmp'")
	flags.BoolVar(&o.engine.Live, "live", false, "With --only and volumes: freeze the container while they are written, instead of stopping it")
}

// ofTheStart are the flags about a container that is stopped and started, so they mean nothing if it is only frozen.
var ofTheStart = []string{"timeout", "wait", "settle", "health-timeout"}

// ofTheContainer are the flags about the container that is made, so they mean nothing if it is kept.
var ofTheContainer = []string{"publish", "publish-all", "env", "label", "network", "memory", "cpus", "skip-missing", "start", "no-start"}

// checkPart refuses what cannot be a part of a snapshot.
func checkPart(word string) (string, error) {
	if word == "" {
		return "", errors.New("it is empty: name a volume, where it is mounted, or rootfs")
	}
	return word, nil
}

// checkPaths refuses patterns that match nothing.
func checkPaths(patterns []string) error {
	if _, err := paths.New(patterns); err != nil {
		return fmt.Errorf("invalid --path: %w", err)
	}
	return nil
}

// checkOnly refuses what does not go with a part of a snapshot.
func (o *restoreOptions) checkOnly(flags *pflag.FlagSet) error {
	if err := checkPaths(o.engine.Paths); err != nil {
		return err
	}
	if !flags.Changed("only") && !o.engine.Lost {
		if o.engine.Live {
			return errors.New("--live goes with --only")
		}
		if len(o.engine.Paths) > 0 {
			return errors.New("--path goes with --only and volumes")
		}
		return nil
	}
	if flags.Changed("volume") && flags.Changed("only") {
		return errors.New("conflicting options: --only and --volume; --only restores a volume, too, that the container only reads")
	}
	if slices.Contains(o.engine.Only, replace.Rootfs) {
		if o.engine.Lost {
			return errors.New("conflicting options: --lost and --only rootfs: the root filesystem is gone with the image, only volumes are left")
		}
		if o.engine.Live {
			return errors.New("conflicting options: --live and --only rootfs: the container has to be made again")
		}
		if len(o.engine.Paths) > 0 {
			return errors.New("conflicting options: --path and --only rootfs: of the root filesystem, docker snapshot cp takes out single files")
		}
		return nil
	}
	return o.checkKept(flags)
}

// checkKept refuses what does not go with a container that is kept.
func (o *restoreOptions) checkKept(flags *pflag.FlagSet) error {
	if o.engine.NoSafety {
		return fmt.Errorf("conflicting options: --no-safety, and --replace of volumes alone: undo would not find this restore, and would take back the one before it; with --only %s, --no-safety is possible", replace.Rootfs)
	}
	if o.engine.Live {
		for _, name := range ofTheStart {
			if flags.Changed(name) {
				return fmt.Errorf("conflicting options: --live and --%s", name)
			}
		}
	}
	for _, name := range ofTheContainer {
		if flags.Changed(name) {
			if o.engine.Lost {
				return fmt.Errorf("conflicting options: --lost, --replace and --%s: the container is kept as it is", name)
			}
			return fmt.Errorf("conflicting options: --%s, and --only without %s: the container is kept as it is", name, replace.Rootfs)
		}
	}
	return nil
}
