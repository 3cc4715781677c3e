package commands

import (
	"context"
	"slices"
	"strings"

	"github.com/docker/cli/cli/command/formatter"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// completion lists what there is to choose from; args are the arguments before the word.
type completion func(ctx context.Context, eng engine, args []string, prefix string) ([]catalog.Candidate, error)

// complete makes a completion into one of cobra's. It offers no word that is an argument
// already, and says what each stands for. Without an engine it offers nothing.
func (c completion) complete(d deps) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		eng, err := d.engine(defaultVolumes())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		candidates, err := c(cmd.Context(), eng, args, prefix)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var words []string
		for _, candidate := range candidates {
			if !slices.Contains(args, candidate.Word) {
				words = append(words, described(candidate.Word, candidate.About))
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// described is a candidate with its description, as cobra takes it.
func described(word, about string) string {
	if about == "" {
		return oneLine(word)
	}
	return cobra.CompletionWithDesc(oneLine(word), strings.ReplaceAll(oneLine(about), "\t", " "))
}

// upTo limits a completion to so many arguments.
func upTo(limit int, complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, prefix)
	}
}

// completeContainers completes the name of a container, or of a service of the
// project in this directory, as the first argument.
func completeContainers(d deps) cobra.CompletionFunc {
	return upTo(1, completion(func(ctx context.Context, eng engine, _ []string, _ string) ([]catalog.Candidate, error) {
		candidates, err := eng.Containers(ctx)
		if err != nil {
			return nil, err
		}
		services, err := eng.Services(ctx, "")
		if err != nil {
			return nil, err
		}
		for _, s := range d.ofThisProject(services) {
			candidates = append(candidates, catalog.Candidate{Word: s.Name, About: "service: container " + s.Container})
		}
		return candidates, nil
	}).complete(d))
}

// completeSnapshots completes up to limit snapshots, or any number for 0.
func completeSnapshots(d deps, limit int) cobra.CompletionFunc {
	complete := completion(func(ctx context.Context, eng engine, _ []string, prefix string) ([]catalog.Candidate, error) {
		return eng.References(ctx, prefix)
	}).complete(d)
	if limit == 0 {
		return complete
	}
	return upTo(limit, complete)
}

// completeNames completes the names of containers, without those of services.
func completeNames(d deps) cobra.CompletionFunc {
	return completion(func(ctx context.Context, eng engine, _ []string, _ string) ([]catalog.Candidate, error) {
		return eng.Containers(ctx)
	}).complete(d)
}

// completeRun completes the container of a run, and leaves the command to the shell.
func completeRun(d deps) cobra.CompletionFunc {
	containers := completeContainers(d)
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return containers(cmd, args, prefix)
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
}

// completeRuns completes up to limit runs, or any number for 0.
func completeRuns(d deps, limit int) cobra.CompletionFunc {
	complete := completion(func(ctx context.Context, eng engine, _ []string, _ string) ([]catalog.Candidate, error) {
		all, err := eng.Sessions(ctx)
		return convert(all, func(s session.Session) catalog.Candidate {
			return catalog.Candidate{Word: s.RunID, About: string(s.Status) + " run of " + s.Container}
		}), err
	}).complete(d)
	if limit == 0 {
		return complete
	}
	return upTo(limit, complete)
}

// completeVolumes completes a volume of the container that was named already.
func completeVolumes(d deps) cobra.CompletionFunc {
	return completion(func(ctx context.Context, eng engine, args []string, _ string) ([]catalog.Candidate, error) {
		return eng.VolumeNames(ctx, strings.Join(args[:min(len(args), 1)], ""))
	}).complete(d)
}

// completeParts completes what can go back alone of the snapshot that was named already: volumes that its container
// mounts, and its root filesystem.
func completeParts(d deps) cobra.CompletionFunc {
	return completion(func(ctx context.Context, eng engine, args []string, _ string) ([]catalog.Candidate, error) {
		parts := []catalog.Candidate{{Word: replace.Rootfs, About: "the root filesystem, and the configuration"}}
		if len(args) == 0 {
			return parts, nil
		}
		container, _, _ := strings.Cut(args[0], ":")
		container, _, _ = strings.Cut(container, "@")
		volumes, err := eng.VolumeNames(ctx, container)
		return append(parts, volumes...), err
	}).complete(d)
}

// completeStores completes a volume that was made to be a store.
func completeStores(d deps) cobra.CompletionFunc {
	return completion(func(ctx context.Context, eng engine, _ []string, _ string) ([]catalog.Candidate, error) {
		return eng.Stores(ctx)
	}).complete(d)
}

// about says what the keys of filters, and the triggers, stand for.
var about = map[string]string{
	"before": "older than a snapshot, a time or an age", "since": "newer than a snapshot, a time or an age",
	"container": "of this container", "expired": "whether their time is over", "group": "of this --group", "label": "of a container with this label",
	"kind": "states only", "line": "of this line of states",
	"meta.": "with this --meta", "name": "whose name matches this", "pinned": "whether they are protected", "run": "of this --run-id", "step": "of this --step-id",
	"tag": "with this --tag", "trigger": "taken for this reason",
	"larger": "that added more than this, as in 1GB", "smaller": "that added less than this, as in 1GB", "store": "with volumes in this store",

	string(labels.TriggerManual): "by hand", string(labels.TriggerRunStart): "when a run began", string(labels.TriggerRunEnd): "when a run ended",
	string(labels.TriggerBeforeAction): "before an action", string(labels.TriggerAfterAction): "after an action",
	string(labels.TriggerInterval): "because time had passed", string(labels.TriggerEvent): "because something happened",
	string(labels.TriggerThreshold): "because a limit was reached", string(labels.TriggerPreRestore): "before a restore in place",
	string(labels.TriggerAgent): "by an agent",
}

// completeTriggers completes why a snapshot is taken.
func completeTriggers(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var words []string
	for _, trigger := range labels.Triggers() {
		words = append(words, described(string(trigger), about[string(trigger)]))
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeFilter completes the key of a filter, and the values of some.
func completeFilter(d deps) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		key, value, complete := strings.Cut(word, "=")
		if !complete {
			var keys []string
			for _, key := range catalog.FilterKeys() {
				word := key
				if !strings.HasSuffix(key, ".") { // meta. goes on
					word += "="
				}
				keys = append(keys, described(word, about[key]))
			}
			return keys, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		}
		var values []string
		directive := cobra.ShellCompDirectiveNoFileComp
		switch key {
		case "trigger":
			values, directive = completeTriggers(cmd, nil, value)
		case "pinned", "expired":
			values = []string{"true", "false"}
		case "kind":
			values = []string{string(labels.KindState)}
		case "container":
			values, directive = completeContainers(d)(cmd, nil, value)
		case "store":
			values, directive = completeStores(d)(cmd, nil, value)
		case "before", "since":
			values, directive = completeSnapshots(d, 1)(cmd, nil, value)
		}
		terms := make([]string, len(values))
		for i, v := range values {
			terms[i] = key + "=" + v
		}
		return terms, directive
	}
}

// completeFlags gives a completion to every option that takes a value. Otherwise shells
// would offer file names, which few options of ours take.
func completeFlags(root *cobra.Command, d deps) {
	known := map[string]cobra.CompletionFunc{
		"filter":  completeFilter(d),
		"trigger": completeTriggers,
		"store":   completeStores(d),
		"network": completion(func(ctx context.Context, eng engine, _ []string, _ string) ([]catalog.Candidate, error) {
			return eng.NetworkNames(ctx)
		}).complete(d),
		"container":     completeNames(d),
		"sort":          sortOrders.complete,
		"by":            groupings.complete,
		"progress":      progressModes.complete,
		"pause":         pauseChoices.complete,
		"hook-on-error": hookErrors.complete,
		"volumes":       volumeChoices.complete,
		"binds":         bindChoices.complete,
		"labels":        labelChoices.complete,
		"allow":         completeAllow,
		"attach": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault // files
		},
		"attachments": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		"run-id":       completeRuns(d, 1),
		"with":         completeNames(d),
		"interval":     intervalChoices.complete,
		"auto-cleanup": choices{"true", "false"}.complete,
		"when":         whenChoices.complete,
		"on":           completeEvents,
	}
	for _, cmd := range commandsOf(root) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Value.Type() == "bool" {
				return
			}
			complete, found := known[flag.Name]
			switch {
			case flag.Name == "format" && cmd.Name() == "ls": // also of runs
				complete = choices{formatter.TableFormatKey, formatter.JSONFormatKey}.complete
			case flag.Name == "format" && cmd.Name() == "watch":
				complete = logFormats.complete
			case flag.Name == "format":
				complete = choices{formatter.JSONFormatKey}.complete
			case cmd.Name() == "create" && (flag.Name == "volume" || flag.Name == "exclude-volume"):
				complete = completeVolumes(d)
			case flag.Name == "only":
				complete = completeParts(d)
			case !found:
				complete = cobra.NoFileCompletions
			}
			// It fails for flags that do not exist, or that are given two.
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, complete)
		})
	}
}
