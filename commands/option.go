package commands

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/opts"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// option is a pflag.Value that puts what a word means straight into the field that
// it fills.
type option struct {
	kind string // of its words, as the help shows it
	set  func(word string) error
	last string // the word that was given last
}

// parsed is an option that fills a field with what parse makes of a word.
func parsed[T any](field *T, kind string, parse func(word string) (T, error)) *option {
	return &option{kind: kind, set: func(word string) error {
		value, err := parse(word)
		if err == nil {
			*field = value
		}
		return err
	}}
}

// checked is an option that fills a field with a word that passes a check.
func checked[T ~string](field *T, check func(word string) error) *option {
	return parsed(field, "string", func(word string) (T, error) { return T(word), check(word) })
}

// repeated is an option that may be given again and again, with add for each of its words.
func repeated(add func(word string) error) *opts.ListOpts {
	return opts.NewListOptsRef(new([]string), func(word string) (string, error) { return word, add(word) })
}

// keyed is an option that adds a key with its value to a map, again and again.
func keyed(field *map[string]string, parse func(word string) (key, value string, err error)) *opts.ListOpts {
	return repeated(func(word string) error {
		key, value, err := parse(word)
		if err != nil {
			return err
		}
		if *field == nil {
			*field = map[string]string{}
		}
		(*field)[key] = value
		return nil
	})
}

func (o *option) String() string { return o.last }

func (o *option) Set(word string) error {
	if err := o.set(word); err != nil {
		return err
	}
	o.last = word
	return nil
}

func (o *option) Type() string { return o.kind }

// flagError reports a wrong option as docker does. For an option without its value it
// adds what is wrong with an empty one, which names the values that it takes.
func flagError(cmd *cobra.Command, err error) error {
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		if option, ok := missing.GetFlag().Value.(*option); ok {
			if wrong := option.set(""); wrong != nil {
				err = fmt.Errorf("%w: %w", err, wrong)
			}
		}
	}
	return cli.FlagErrorFunc(cmd, errors.New(safeText(err.Error())))
}

// choices are the words that an option takes.
type choices []string

// choicesOf makes choices of typed constants.
func choicesOf[T ~string](values ...T) choices {
	return convert(values, func(value T) string { return string(value) })
}

func (c choices) check(word string) error {
	if slices.Contains(c, word) {
		return nil
	}
	return errors.New("use one of " + strings.Join(c, ", "))
}

// words lists the choices for a help text.
func (c choices) words() string { return "'" + strings.Join(c, "', '") + "'" }

func (c choices) complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
