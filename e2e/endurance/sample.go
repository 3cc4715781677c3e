//go:build linux

package main

import (
	"errors"
	"fmt"
	"slices"
)

// A measure is one of the things that are measured of a step.
type measure int

const (
	duration measure = iota
	clientMemory
	workerMemory
	engineMemory
	engineDescriptors
	engineGoroutines
	processes
	storeGrowth
	measures
)

// described says what a measure is, and by which factor it may grow from the first tenth to the last; 0: by any.
var described = [measures]struct {
	name  string
	limit float64
}{
	duration:          {"time (ms)", 1.5},
	clientMemory:      {"memory of the client, peak (KiB)", 1.25},
	workerMemory:      {"memory of a worker, peak (KiB)", 1.25},
	engineMemory:      {"memory of the engine (KiB)", 0}, // it keeps all images in memory
	engineDescriptors: {"descriptors of the engine", 1.25},
	engineGoroutines:  {"goroutines of the engine", 1.25},
	processes:         {"processes of ours that are left, and 1", 1},
	storeGrowth:       {"growth of the store (bytes)", 1.5},
}

// sample is what one step has cost. What was not measured is 0.
type sample [measures]float64

func (s *sample) set(m measure, value float64) { s[m] = value }
func (s *sample) add(m measure, value float64) { s[m] += value }
func (s *sample) of(m measure) float64         { return s[m] }

// compare prints the medians of the first and of the last tenth of all steps, and fails if one has grown beyond its limit.
func compare(what string, all []sample) error {
	tenth := max(len(all)/10, 1) //nolint:mnd // as it says
	var grown error
	fmt.Printf("%-42s %12s %12s %7s\n", fmt.Sprintf("%s, %d times", what, len(all)), "first tenth", "last tenth", "ratio")
	for m := range measures {
		first, last := median(all[:tenth], m), median(all[len(all)-tenth:], m)
		if first == 0 {
			continue
		}
		text := fmt.Sprintf("  %-40s %12.0f %12.0f %7.2f", described[m].name, first, last, last/first)
		if limit := described[m].limit; limit > 0 {
			text += fmt.Sprintf("  (limit %g)", limit)
			if last/first > limit {
				text += "  MISSED"
				grown = errors.New("some of it grows with the number of snapshots")
			}
		}
		fmt.Println(text)
	}
	return grown
}

// median is 0 if nothing was measured.
func median(all []sample, m measure) float64 {
	var values []float64
	for _, one := range all {
		if value := one.of(m); value != 0 {
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
