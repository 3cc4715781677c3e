package commands

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/cli/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// choices are the words that an option takes.
type choices []string

// choicesOf makes choices of typed constants.
func choicesOf[T ~string](values ...T) choices {
	words := make(choices, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return words
}

func (c choices) check(word string) error {
	if slices.Contains(c, word) {
		return nil
	}
	return errors.New("use one of " + strings.Join(c, ", "))
}

func (c choices) complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// checked is a pflag.Value for a text that has to pass a check.
type checked struct {
	value *string
	check func(string) error
}

func (c checked) String() string { return *c.value }

func (c checked) Set(word string) error {
	if err := c.check(word); err != nil {
		return err
	}
	*c.value = word
	return nil
}

func (checked) Type() string { return "string" }

// flagError reports a wrong option as docker does, and names the values of one that
// was given none.
func flagError(cmd *cobra.Command, err error) error {
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		if option, ok := missing.GetFlag().Value.(checked); ok {
			if unfit := option.check(""); unfit != nil {
				err = fmt.Errorf("%w: %w", err, unfit)
			}
		}
	}
	return cli.FlagErrorFunc(cmd, errors.New(safeText(err.Error())))
}
