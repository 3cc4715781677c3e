package commands

import (
	"errors"

	"github.com/docker/cli/opts"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// starting are the options that say whether a restored container is started.
type starting struct{ start, noStart bool }

// addCopyFlags adds the flags about what is different in a restored container. Restore and fork have
// them.
func addCopyFlags(flags *pflag.FlagSet, o *runconfig.RestoreOptions, how *starting) {
	flags.BoolVar(&how.start, "start", false, "Start it, also if the original was not running")
	flags.BoolVar(&how.noStart, "no-start", false, "Do not start it")
	flags.BoolVarP(&o.PublishAll, "publish-all", "P", false, "Publish every exposed port to a free host port")
	flags.VarP(opts.NewListOptsRef(&o.Env, opts.ValidateEnv), "env", "e", "Set an environment variable")
	flags.VarP(keyed(&o.Labels, parseLabel), "label", "l", "Set a label")
	flags.Var(opts.NewListOptsRef(&o.Networks, nil), "network", "Join this network, instead of those that were captured")
	flags.VarP(parsed(&o.Memory, "bytes", parseMemory), "memory", "m", "Memory limit; 0: none")
	flags.Var(parsed(&o.NanoCPUs, "decimal", parseCPUs), "cpus", "Number of CPUs; 0: all")
	flags.Var(checked(&o.Volumes, volumeChoices.check), "volumes", "Give it 'new' volumes with the captured content, the original's 'shared' ones, or empty ones: 'none' (default new)")
	flags.Var(checked(&o.Binds, bindChoices.check), "binds", "Give it the original's bind mounts read-only ('ro'), as they were ('shared'), or 'none' of them (default ro)")
	flags.Var(checked(&o.CopyLabels, labelChoices.check), "labels", "Give it 'all' labels, also those that proxies, job runners and the like act on (default harmless)")
	flags.Var(allowed{&o.Allow}, "allow", "Let a snapshot that is not from this engine have what it asks for, such as bind=/srv or privileged")
	flags.BoolVar(&o.AllowHostAccess, "allow-host-access", false, "Let a snapshot that is not from this engine have everything that it asks for")
	flags.BoolVar(&o.SkipMissing, "skip-missing", false, "Leave out networks, bind mounts, devices and runtimes that the engine does not have")
}

// apply checks what the options say together, and fills in whether to start.
func (how starting) apply(o *runconfig.RestoreOptions) error {
	switch {
	case how.start && how.noStart:
		return errors.New("conflicting options: --start and --no-start")
	case how.start:
		o.Start = runconfig.StartAlways
	case how.noStart:
		o.Start = runconfig.StartNever
	}
	return checkNetworks(o.Networks)
}
