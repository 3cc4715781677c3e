package commands

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/docker/cli/cli"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

// tidyName is the hidden command that prunes after a create, in a process of its own.
const tidyName = "tidy"

// A tidy waits so long before it begins, so that it does not get in the way of the command that
// follows, and does the work for several creates in a row.
const tidyDelay = 2 * time.Second

// How often a tidy tries to get its turn, and for how long.
const (
	tidyPause    = 200 * time.Millisecond
	tidyPatience = 10 * time.Minute
)

// A tidy lists all snapshots, which takes an engine with the containerd image store 7 ms for each. So that creates in a row do
// not share the engine with one tidy after the other, the next one does not begin before tidyRest times as long as the last
// one took, but tidyRestMost at most.
const (
	tidyRest     = 9
	tidyRestMost = 5 * time.Minute
)

// tidier starts a tidy, unless one that has not begun yet does the same. It waits for nothing.
type tidier func(ctx context.Context, onlyExpired bool)

// newTidier returns a tidier for the engine that docker's own options, global, lead to. The tidy is
// a process in a session of its own, so it survives this one. A failure to start it is not worth a
// word: the next create starts another.
func newTidier(global []string) tidier {
	return func(ctx context.Context, onlyExpired bool) {
		for _, kind := range tidyKinds(onlyExpired) {
			release, isFree := takeTurn(turnName(global, kind))
			if !isFree {
				return
			}
			release()
		}
		args := slices.Concat(global, []string{Name, tidyName})
		if onlyExpired {
			args = append(args, "--only-expired")
		}
		tidy, err := detached(ctx, args)
		if err == nil && tidy.Start() == nil {
			go func() { _ = tidy.Wait() }() // not worth waiting for
		}
	}
}

// The turns that tidies take: one for each kind that has not begun, and one for the one at work.
const (
	turnAll     = "all"
	turnExpired = "expired"
	turnWork    = "work"
)

// tidyKinds are the kinds of tidies that do what is asked for.
func tidyKinds(onlyExpired bool) []string {
	if onlyExpired {
		return []string{turnExpired, turnAll}
	}
	return []string{turnAll}
}

// turnName is the name of a turn. The options and the environment tell the engine; two names of the
// same engine do no harm.
func turnName(global []string, kind string) string {
	words := slices.Clone(global)
	for _, variable := range []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "HOME"} {
		words = append(words, os.Getenv(variable))
	}
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return fmt.Sprintf("cua-snapshot-tidy-%d-%x-%s", os.Getuid(), sum[:8], kind)
}

type tidyOptions struct {
	onlyExpired bool
	volumes     volumeOptions
}

func newTidyCommand(d deps) *cobra.Command {
	var o tidyOptions
	cmd := &cobra.Command{
		Use:                   tidyName + " [OPTIONS]",
		Short:                 "Remove what is beyond the limits, after a moment and without a word",
		Long:                  "Remove what is beyond the limits, after a moment and without a word. For the plugin's own use, after a create.",
		Example:               "  docker snapshot tidy --only-expired",
		Hidden:                true,
		Args:                  cli.NoArgs,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runTidy(context.WithoutCancel(cmd.Context()), d, o)
		},
	}
	cmd.Flags().BoolVar(&o.onlyExpired, "only-expired", false, "Remove only what has expired")
	o.volumes.addLockFlag(cmd.Flags())
	return cmd
}

// runTidy prunes once no other tidy is at work. While it waits, other creates need no tidy.
func runTidy(ctx context.Context, d deps, o tidyOptions) error {
	mine, isFree := takeTurn(turnName(d.global, tidyKinds(o.onlyExpired)[0]))
	if !isFree {
		return nil
	}
	d.wait(tidyDelay)
	done, isFree := takeTurn(turnName(d.global, turnWork))
	for deadline := d.clock.now().Add(tidyPatience); !isFree && d.clock.now().Before(deadline); {
		d.wait(tidyPause)
		done, isFree = takeTurn(turnName(d.global, turnWork))
	}
	mine()
	if !isFree {
		return nil
	}
	defer done()
	policy, err := d.settings.policy()
	if err != nil {
		return err
	}
	eng, err := d.engine(o.volumes)
	if err != nil {
		return err
	}
	began := d.clock.now()
	_, err = eng.Prune(ctx, removal.PruneOptions{Options: retention.Options{
		Policy: policy, Automatic: true, ExpiredOnly: o.onlyExpired,
	}}, nil)
	if rest := min(tidyRest*d.clock.now().Sub(began), tidyRestMost); rest > 0 {
		d.wait(rest) // with the turn: the next one waits meanwhile, and does what all creates until then need
	}
	return err
}

// wait returns after d.
func (d deps) wait(pause time.Duration) {
	over := make(chan struct{})
	d.clock.after(pause, func() { close(over) })
	<-over
}

// tidyAfter starts what has to be done after a snapshot was taken.
func (d deps) tidyAfter(ctx context.Context, trigger labels.Trigger) {
	d.tidy(ctx, trigger == labels.TriggerManual)
}

// limitWait is how long create waits for the number of snapshots there are, once the new one is
// taken. It asks when it begins, so usually the answer is there.
const limitWait = 10 * time.Millisecond

// countMost is how long the engine may count: it lists the snapshots for that, and what it does for the snapshot itself is slower
// meanwhile.
const countMost = 200 * time.Millisecond

// limitWarning says once a day that a container has more automatic snapshots than its limit.
type limitWarning func(catalog.Snapshot, plan.Progress)

// countAside counts the automatic snapshots of a container while one is taken of it by hand, which removes none of them. The function
// that it returns says it if there are more than the limit, at the first snapshot of a day.
func (d deps) countAside(ctx context.Context, eng engine, o capture.Options) limitWarning {
	byHand := o.Trigger == "" || o.Trigger == labels.TriggerManual
	if !byHand || o.Reuse || catalog.IsContainerID(o.Container) { // all snapshots would be looked at to find those of an ID
		return func(catalog.Snapshot, plan.Progress) {}
	}
	counting, stop := context.WithCancel(ctx)
	d.clock.after(countMost, stop)
	counted := make(chan snapshot.Count, 1)
	go func() {
		defer close(counted)
		if count, ok, err := eng.CountAtTimes(counting, o.Container); ok && err == nil {
			counted <- count
		}
	}()
	return func(s catalog.Snapshot, p plan.Progress) {
		defer stop()
		over := make(chan struct{})
		defer d.clock.after(limitWait, func() { close(over) })()
		select {
		case count, isKnown := <-counted:
			if !isKnown || isSameDay(count.Newest, s.Created) {
				return
			}
			policy, err := d.settings.policyOf(s.ContainerLabels(), func(string) {})
			if err == nil && policy.MaxSnapshots > 0 && count.Automatic > policy.MaxSnapshots {
				p.Note("limits", fmt.Sprintf("container %s has %d automatic snapshots, and the limit is %d. Use docker snapshot prune to remove the oldest.", s.Container.Name, count.Automatic, policy.MaxSnapshots))
			}
		case <-over:
		}
	}
}

func isSameDay(a, b time.Time) bool {
	return a.UTC().Truncate(24 * time.Hour).Equal(b.UTC().Truncate(24 * time.Hour))
}
