//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// program makes a main function that exits as the command that it ran did.
func program(run func(ctx context.Context, args []string) error) func() {
	return func() {
		err := run(context.Background(), os.Args[1:])
		exit, ok := errors.AsType[*exec.ExitError](err)
		switch {
		case err == nil:
			os.Exit(0)
		case !ok:
			fmt.Fprintln(os.Stderr, os.Args[0]+":", err)
			os.Exit(1)
		case exit.ExitCode() >= 0:
			os.Exit(exit.ExitCode())
		}
		os.Exit(128 + int(exit.Sys().(syscall.WaitStatus).Signal()))
	}
}

// watch copies what is written to it, and calls seen once, when that matches.
type watch struct {
	to   io.Writer
	when *regexp.Regexp // nil: never
	seen func()

	mu   sync.Mutex
	text []byte
	once sync.Once
}

// Write copies p. It may be called for stdout and stderr at the same time.
func (w *watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	if w.when != nil && w.when.Match(w.text) {
		w.once.Do(w.seen)
	}
	return w.to.Write(p)
}

// pattern is a flag that holds a regular expression.
func pattern(flags *flag.FlagSet, name string) **regexp.Regexp {
	var expression *regexp.Regexp
	flags.Func(name, "", func(s string) (err error) {
		expression, err = regexp.Compile(s)
		return err
	})
	return &expression
}

// runTTY runs a program on a pseudo terminal, with nothing but the terminal for its streams.
func runTTY(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("tty", flag.ExitOnError)
	after, event := pattern(flags, "after"), pattern(flags, "event")
	send := flags.String("send", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := strconv.Unquote(`"` + *send + `"`)
	if err != nil {
		return fmt.Errorf("unquote %s: %w", *send, err)
	}
	control, terminal, err := openTerminal()
	if err != nil {
		return err
	}
	defer control.Close()
	command := exec.Command(flags.Arg(0), flags.Args()[1:]...)
	command.Stdin, command.Stdout, command.Stderr = terminal, terminal, terminal
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	keyboard := func() { _, _ = io.WriteString(control, text) }
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if *event != nil {
		if err := watchEvents(ctx, *event, keyboard); err != nil {
			return err
		}
	}
	if err := start(command, os.Interrupt); err != nil {
		return err
	}
	terminal.Close()
	if *after == nil && *event == nil {
		keyboard()
	}
	// The end of the last process on the terminal ends the copy, with EIO.
	_, _ = io.Copy(&watch{to: os.Stdout, when: *after, seen: keyboard}, control)
	return command.Wait()
}

// start starts a program that does not ignore a signal, even if this process was told to, as nohup(1) does.
func start(command *exec.Cmd, heeded os.Signal) error {
	signal.Notify(make(chan os.Signal, 1), heeded)
	defer signal.Reset(heeded)
	return command.Start()
}

// openTerminal returns both ends of a pseudo terminal.
func openTerminal() (control, terminal *os.File, err error) {
	control, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			control.Close()
		}
	}()
	number, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetWinsize(int(control.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 25, Col: 100}); err != nil {
		return nil, nil, err
	}
	terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	return control, terminal, err
}

// runInterrupt runs a program and sends it a signal at a certain moment.
func runInterrupt(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("interrupt", flag.ExitOnError)
	after, event := pattern(flags, "after"), pattern(flags, "event")
	delay := flags.Duration("delay", 0, "")
	to := flags.String("to", "process", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 2 || *after == nil && *event == nil && *delay == 0 {
		return errors.New("a moment, a signal and a program are needed")
	}
	sig := unix.SignalNum("SIG" + strings.TrimPrefix(flags.Arg(0), "SIG"))
	if sig == 0 {
		return fmt.Errorf("no such signal: %s", flags.Arg(0))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	moment := make(chan error, 4) // the first one counts
	now := func() { moment <- nil }

	command := exec.Command(flags.Arg(1), flags.Args()[2:]...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = 10 * time.Second // what it leaves behind may hold its streams
	command.Stdout = &watch{to: os.Stdout, when: *after, seen: now}
	command.Stderr = &watch{to: os.Stderr, when: *after, seen: now}
	if *event != nil {
		if err := watchEvents(ctx, *event, now); err != nil {
			return err
		}
	}
	if err := start(command, sig); err != nil {
		return err
	}
	if *delay != 0 {
		time.AfterFunc(*delay, now)
	}
	end := make(chan error, 1)
	go func() { end <- command.Wait() }()
	select {
	case err := <-end:
		return errors.Join(errors.New("it ended before its moment came"), err)
	case err := <-moment:
		err = errors.Join(err, deliver(sig, command.Process.Pid, *to))
		return errors.Join(err, <-end)
	}
}

// runWhen waits for an event of the engine, and runs a program then.
func runWhen(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("an event and a program are needed")
	}
	event, err := regexp.Compile(args[0])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := make(chan struct{})
	started, err := startOfProcess()
	if err != nil {
		return err
	}
	if err := watchEventsSince(ctx, started, event, func() { close(seen) }); err != nil {
		return err
	}
	<-seen
	command := exec.CommandContext(ctx, args[1], args[2:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return command.Run()
}

// storeVariable names the store of a script.
const storeVariable = "DOCKER_SNAPSHOT_STORE"

// processes finds those with a variable in their environment: those of a program, or all for "".
func processes(variable, program string) (found []int) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		runs, _ := os.Readlink(filepath.Join(folder, "exe"))
		if program != "" && filepath.Base(runs) != program {
			continue
		}
		variables, _ := os.ReadFile(filepath.Join(folder, "environ")) // else it has ended
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err == nil && slices.Contains(strings.Split(string(variables), "\x00"), variable) {
			found = append(found, pid)
		}
	}
	return found
}

func signalAll(processes []int, sig syscall.Signal) {
	for _, pid := range processes {
		_ = unix.Kill(pid, sig) // it may have ended this moment
	}
}

// startOfProcess returns when this process was started, up to 10 ms earlier. A script goes on at once after a program with &, so
// on a busy machine the event may come before the program has got this far.
func startOfProcess() (time.Time, error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return time.Time{}, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	ticks, err := strconv.ParseInt(fields[19], 10, 64) // of 10 ms since the boot
	if err != nil {
		return time.Time{}, err
	}
	var uptime unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &uptime); err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(time.Duration(ticks*int64(10*time.Millisecond) - uptime.Nano())), nil
}

// watchEvents calls seen when a line "TYPE ACTION NAME" of the engine's events matches.
func watchEvents(ctx context.Context, when *regexp.Regexp, seen func()) error {
	return watchEventsSince(ctx, time.Now(), when, seen)
}

// watchEventsSince is watchEvents for a moment that has passed.
func watchEventsSince(ctx context.Context, since time.Time, when *regexp.Regexp, seen func()) error {
	events := exec.CommandContext(ctx, "docker", "events", "--since", since.Format(time.RFC3339Nano),
		"--format", "{{.Type}} {{.Action}} {{.Actor.Attributes.name}}")
	lines, err := events.StdoutPipe()
	if err != nil {
		return err
	}
	if err := events.Start(); err != nil {
		return err
	}
	go func() {
		defer events.Wait()
		for scanner := bufio.NewScanner(lines); scanner.Scan(); {
			if when.MatchString(scanner.Text()) {
				seen()
				return
			}
		}
	}()
	return nil
}

// deliver signals a process, its group, its children, or first its children and then the process.
func deliver(sig syscall.Signal, pid int, to string) error {
	switch to {
	case "process":
		return unix.Kill(pid, sig)
	case "group":
		return unix.Kill(-pid, sig)
	case "family":
		return errors.Join(deliver(sig, pid, "children"), deliver(sig, pid, "process"))
	case "children":
		out, err := exec.Command("sh", "-c", fmt.Sprintf("cat /proc/%d/task/*/children", pid)).Output()
		if err != nil {
			return err
		}
		children := strings.Fields(string(out))
		if len(children) == 0 {
			return fmt.Errorf("process %d has no children", pid)
		}
		for _, child := range children {
			number, err := strconv.Atoi(child)
			if err != nil {
				return err
			}
			if err := unix.Kill(number, sig); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("a signal goes to process, group, children or family, not to %q", to)
}
