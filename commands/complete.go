package commands

import (
	"slices"
	"strings"

	"github.com/docker/cli/cli/command/formatter"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot"
)

// completeContainers completes the name of a container, as the first argument.
func completeContainers(d deps) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		eng, err := d.engine()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names, err := eng.Containers(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeSnapshots completes up to limit snapshots, or any number for 0, none twice.
func completeSnapshots(d deps, limit int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if limit > 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		eng, err := d.engine()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		refs, err := eng.References(cmd.Context(), prefix)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		refs = slices.DeleteFunc(refs, func(ref string) bool { return slices.Contains(args, ref) })
		return refs, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFilter completes the key of a filter, and the values of some.
func completeFilter(d deps) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		key, value, complete := strings.Cut(word, "=")
		if !complete {
			var keys []string
			for _, key := range snapshot.FilterKeys() {
				if !strings.HasSuffix(key, ".") { // meta. goes on
					key += "="
				}
				keys = append(keys, key)
			}
			return keys, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		}
		var values []string
		directive := cobra.ShellCompDirectiveNoFileComp
		switch key {
		case "trigger":
			values = choicesOf(labels.Triggers()...)
		case "pinned", "expired":
			values = []string{"true", "false"}
		case "container":
			values, directive = completeContainers(d)(cmd, nil, value)
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

// completeFlags gives every option that takes a value a completion, so that no
// shell offers file names for one: no option of ours takes any.
func completeFlags(root *cobra.Command, d deps) {
	known := map[string]cobra.CompletionFunc{
		"filter":   completeFilter(d),
		"trigger":  choicesOf(labels.Triggers()...).complete,
		"sort":     sortOrders.complete,
		"progress": progressModes.complete,
		"pause":    pauseChoices.complete,
		"volumes":  volumeChoices.complete,
		"binds":    bindChoices.complete,
		"allow":    completeAllow,
	}
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Value.Type() == "bool" {
				return
			}
			complete, found := known[flag.Name]
			switch {
			case flag.Name == "format" && cmd.Name() == "ls":
				complete = choices{formatter.TableFormatKey, formatter.JSONFormatKey}.complete
			case flag.Name == "format":
				complete = choices{formatter.JSONFormatKey}.complete
			case !found:
				complete = cobra.NoFileCompletions
			}
			// It fails for flags that do not exist, or that are given two.
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, complete)
		})
	}
}
