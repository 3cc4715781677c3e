package commands

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
)

// defaultThreshold is where a snapshot is taken if no threshold is given.
const defaultThreshold = 0.85

// usageOptions are the options of create for a snapshot that is taken when something is almost used up.
type usageOptions struct {
	now        *float64
	thresholds []float64
	force      bool
}

func (o *createOptions) addUsageFlags(flags *pflag.FlagSet) {
	flags.Var(parsed(&o.usage.now, "number", parseUsage), "if-usage", "Take it only if this part, as in 0.91, has reached a threshold that the last had not")
	flags.Var(repeated(func(text string) error {
		threshold, err := parseUsage(text)
		if err == nil {
			o.usage.thresholds = append(o.usage.thresholds, *threshold)
		}
		return err
	}), "threshold", "Take one when usage has reached this (default 0.85; may be repeated)")
	flags.BoolVar(&o.usage.force, "force", false, "Take one whatever the usage is")
}

func parseUsage(text string) (*float64, error) {
	usage, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, errors.New("use a part of the whole, as in 0.85")
	}
	return &usage, labels.CheckUsage(usage)
}

// into checks what the options say together, and hands them to the engine.
func (o *usageOptions) into(flags *pflag.FlagSet, engine *capture.Options) error {
	if o.now == nil {
		for _, name := range []string{"threshold", "force"} {
			if flags.Changed(name) {
				return fmt.Errorf("--%s needs --if-usage", name)
			}
		}
		return nil
	}
	if engine.Trigger != "" && engine.Trigger != labels.TriggerThreshold {
		return fmt.Errorf("conflicting options: --if-usage and --trigger=%s", engine.Trigger)
	}
	engine.Trigger = labels.TriggerThreshold
	engine.Usage = &capture.Usage{Now: *o.now, Thresholds: o.thresholds, Force: o.force}
	if len(o.thresholds) == 0 {
		engine.Usage.Thresholds = []float64{defaultThreshold}
	}
	return engine.Usage.Check()
}

// skippedResult is what create prints if no snapshot is due.
type skippedResult struct {
	Status string `json:"status"`
	Reason string `json:"reason"`
}

// printSkipped prints why no snapshot was taken, to who asks for JSON.
func (o *createOptions) printSkipped(d deps, reason string) error {
	if !o.printer.formats() || o.printer.template != nil {
		return nil // a note has said it
	}
	return o.printer.print(d.out, "", skippedResult{Status: statusSkipped, Reason: reason})
}
