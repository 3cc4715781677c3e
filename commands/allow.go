package commands

import (
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// allowed is a pflag.Value for --allow: KIND or KIND=VALUE, or several of them separated
// by commas. One that has a comma in it is quoted as in CSV.
type allowed struct{ list *[]runconfig.Access }

func (a allowed) String() string {
	words := make([]string, len(*a.list))
	for i, access := range *a.list {
		words[i] = access.String()
	}
	return strings.Join(words, ",")
}

func (a allowed) Set(text string) error {
	words, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return fmt.Errorf("read list: %w", err)
	}
	for _, word := range words {
		access, err := runconfig.ParseAccess(word)
		if err != nil {
			return fmt.Errorf("%w: use %s", err, strings.Join(accessKinds(), ", "))
		}
		*a.list = append(*a.list, access)
	}
	return nil
}

func (allowed) Type() string { return "KIND[=VALUE]" }

func accessKinds() []string {
	var kinds []string
	for _, info := range runconfig.AccessKinds() {
		kinds = append(kinds, string(info.Kind))
	}
	return kinds
}

// completeAllow completes the kinds, each with what it means.
func completeAllow(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var words []string
	for _, info := range runconfig.AccessKinds() {
		words = append(words, cobra.CompletionWithDesc(string(info.Kind), info.Means))
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveKeepOrder
}

// allowWord is the word after --allow that allows what a snapshot asks for.
func allowWord(access string) string {
	if strings.ContainsAny(access, ",\"\r\n") || strings.HasPrefix(access, " ") {
		var b strings.Builder
		w := csv.NewWriter(&b)
		_ = w.Write([]string{access}) // it writes to memory
		w.Flush()
		access = strings.TrimSuffix(b.String(), "\n")
	}
	return shellWord(access)
}
