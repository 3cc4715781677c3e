package commands

import (
	"errors"
	"io"

	"github.com/docker/cli/cli/command/formatter"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// failure is what is printed for an error.
type failure struct {
	Status   string    `json:"status"`
	Code     string    `json:"code"`
	Error    string    `json:"error"`
	Problems []problem `json:"problems"`
}

// problem is one reason why a restore cannot be done as asked.
type problem struct {
	Kind     string `json:"kind"`
	Subject  string `json:"subject"`
	Text     string `json:"text"`
	Solution string `json:"solution"`
}

// newFailure describes an error for programs. text is what people read.
func newFailure(err error, text string) failure {
	f := failure{Status: statusFailed, Code: string(codeOf(err)), Error: text, Problems: []problem{}}
	if found, ok := errors.AsType[*plan.ProblemsError](err); ok {
		f.Problems = convert(found.Problems, func(p plan.Problem) problem { return newProblem(p, found.Promote) })
	}
	return f
}

func newProblem(p plan.Problem, promote bool) problem {
	return problem{Kind: string(p.Kind), Subject: p.Subject, Text: oneLine(plain(p.Text)), Solution: solution(p, promote)}
}

// reported is an error that readers of JSON have been told already.
type reported struct{ error }

func (r reported) Unwrap() error { return r.error }

// failed writes the error of one item for readers of JSON, and returns it. Commands that go on after an error call
// it; the error that ends a command is written by reportFailures.
func (p printer) failed(out io.Writer, err error) error {
	if err == nil || errors.Is(err, errIncomplete) || typed[reported](err) || p.format != formatter.JSONFormatKey {
		return err
	}
	return errors.Join(reported{err}, writeJSON(out, newFailure(err, describe(err))))
}

// reportFailures makes a command, and those below it, write the error that ends it for readers of JSON.
func (d deps) reportFailures(cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		d.reportFailures(below)
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return d.report(check(cmd, args), printsJSON(cmd)) }
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return d.report(run(cmd, args), printsJSON(cmd)) }
	}
}

// report writes the error that ends a command, unless that is said already: by a result that is incomplete, or for
// each item by itself.
func (d deps) report(err error, asJSON bool) error {
	if err == nil || !asJSON || errors.Is(err, ErrOutputGone) || errors.Is(err, errIncomplete) || typed[reported](err) {
		return err
	}
	if writeErr := writeJSON(d.out, newFailure(err, err.Error())); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	return err
}

// reportFlagError reports a wrong option. The options are not parsed, so the arguments say whether JSON is wanted.
func (d deps) reportFlagError(cmd *cobra.Command, err error) error {
	return d.report(flagError(cmd, err), asksForJSON(cmd.Flags(), d.arguments))
}

// formatFlag is the option that asks for JSON.
const formatFlag = "format"

// printsJSON tells whether a command whose options are parsed prints JSON.
func printsJSON(cmd *cobra.Command) bool {
	flag := cmd.Flags().Lookup(formatFlag)
	return flag != nil && flag.Value.String() == formatter.JSONFormatKey
}

// asksForJSON tells whether --format json is among arguments that a command cannot parse. It parses them again, with
// options of the same names that take everything.
func asksForJSON(flags *pflag.FlagSet, arguments []string) bool {
	lenient := pflag.NewFlagSet("", pflag.ContinueOnError)
	lenient.ParseErrorsAllowlist.UnknownFlags = true
	lenient.Usage = func() {}
	format := ""
	add := func(flag *pflag.Flag) {
		ignore := func(string) error { return nil }
		if flag.Name == formatFlag {
			ignore = func(word string) error { format = word; return nil }
		}
		lenient.AddFlag(&pflag.Flag{Name: flag.Name, Shorthand: flag.Shorthand, NoOptDefVal: flag.NoOptDefVal, Value: &option{set: ignore}})
	}
	flags.VisitAll(add)
	if lenient.Lookup(formatFlag) == nil {
		add(&pflag.Flag{Name: formatFlag})
	}
	_ = lenient.Parse(arguments) // what it has read before an error counts
	return format == formatter.JSONFormatKey
}
