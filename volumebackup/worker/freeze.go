//go:build linux

package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// freezer is how one version of control groups freezes processes: a file of the group, what to write
// there, and what shows that the kernel has done it.
type freezer struct {
	file, shows  string
	thaw, freeze string
	thawed       []byte
	frozen       []byte
}

// The freezers. Where both versions are mounted, engines freeze with the first.
var freezers = []freezer{
	{file: "freezer.state", shows: "freezer.state", thaw: "THAWED", freeze: "FROZEN", thawed: []byte("THAWED"), frozen: []byte("FROZEN")},
	{file: "cgroup.freeze", shows: "cgroup.events", thaw: "0", freeze: "1", thawed: []byte("frozen 0"), frozen: []byte("frozen 1")},
}

// How long the kernel may take, and how often it is asked. With version 1 it may have to be told again.
const (
	freezeTimeout = 5 * time.Second
	freezePoll    = 10 * time.Millisecond
)

// freezeTurns is how often the kernel is asked to freeze processes before they may run for one turn: one that
// sleeps where it cannot be frozen may wait for another that is.
const freezeTurns = 100

// freeze freezes the processes of a container, or thaws them, by its control group.
func (s *session) freeze(ctx context.Context, r protocol.FreezeRequest, _ *exchange) (protocol.None, error) {
	groups, err := groupsOf(s.options.CgroupRoot, r.Container)
	if err != nil {
		return protocol.None{}, err
	}
	for _, f := range freezers {
		found := false
		for _, group := range groups {
			if _, err := os.Lstat(filepath.Join(group, f.file)); err != nil {
				continue
			}
			found = true
			if err := f.set(ctx, group, r.Frozen); err != nil {
				return protocol.None{}, err
			}
		}
		if found {
			return protocol.None{}, nil
		}
	}
	return protocol.None{}, fmt.Errorf("no control group of container %s can be frozen: %w", r.Container, errdefs.ErrNotFound)
}

// groupsOf finds the control groups of a container, wherever its engine keeps them: as docker/ID, as
// system.slice/docker-ID.scope, or below a parent that its user has named.
func groupsOf(root, container string) (groups []string, err error) {
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != root: // groups come and go
			return nil
		case err != nil:
			return fmt.Errorf("look for the control group of container %s: %w", container, err)
		case e.IsDir() && strings.Contains(e.Name(), container):
			groups = append(groups, path)
			return fs.SkipDir
		}
		return nil
	})
	return groups, err
}

// set has the kernel freeze or thaw a group, and waits until it has done so. Processes that cannot be frozen
// run again when it gives up: an engine 20.10 waits for ever for the end of a freeze that has begun.
func (f freezer) set(ctx context.Context, group string, frozen bool) error {
	order, want := f.thaw, f.thawed
	if frozen {
		order, want = f.freeze, f.frozen
	}
	ctx, stop := context.WithTimeoutCause(ctx, freezeTimeout, fmt.Errorf("the kernel does not make it %s", want))
	defer stop()
	for turn := 1; ; turn++ {
		if err := f.tell(group, order); err != nil {
			return err
		}
		now, err := os.ReadFile(filepath.Join(group, f.shows))
		if err != nil {
			return fmt.Errorf("control group of the container: %w", err)
		}
		if bytes.Contains(now, want) {
			return nil
		}
		if turn%freezeTurns == 0 {
			_ = f.tell(group, f.thaw) // the next turn fails as well
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("control group %s: %w", group, errors.Join(context.Cause(ctx), f.tell(group, f.thaw)))
		case <-time.After(freezePoll):
		}
	}
}

// tell tells the kernel what to do with a group.
func (f freezer) tell(group, what string) error {
	if err := os.WriteFile(filepath.Join(group, f.file), []byte(what), 0); err != nil {
		return fmt.Errorf("control group of the container: %w", err)
	}
	return nil
}
