//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// usage ends a script that calls a command in a wrong way.
func usage(ts *testscript.TestScript, ok bool, text string) {
	if !ok {
		ts.Fatalf("usage: %s", text)
	}
}

// patience is how long tests wait for what should happen at once: long enough for a machine that is busy with other tests.
const patience = time.Minute

// eventually polls until done is true, and tells whether that was before patience ran out. Scripts have no context.
func eventually(done func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return done()
		case <-tick.C:
		}
	}
	return true
}

// docker runs a docker command with the harness's own configuration.
func docker(args ...string) (string, error) { return dockerIn(os.Environ(), args...) }

// scriptDocker runs one where the script stands: its engine may be another one than ours, behind an ssh of its own.
func scriptDocker(ts *testscript.TestScript) func(args ...string) (string, error) {
	env := append(os.Environ(), "DOCKER_HOST="+ts.Getenv("DOCKER_HOST"), "PATH="+ts.Getenv("PATH"))
	return func(args ...string) (string, error) { return dockerIn(env, args...) }
}

func dockerIn(env []string, args ...string) (string, error) {
	out, _, err := dockerStreams(env, args...)
	return strings.TrimSuffix(out, "\n"), err
}

// dockerStreams also returns what the command says on stderr.
func dockerStreams(env []string, args ...string) (stdout, stderr string, err error) {
	var out, told strings.Builder
	command := exec.Command("docker", args...)
	command.Env = env
	command.Stdout, command.Stderr = &out, &told
	if err := command.Run(); err != nil {
		return "", "", fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, told.String())
	}
	return out.String(), told.String(), nil
}

func cmdState(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 2, "state CONTAINER created|running|paused|exited|dead|gone")
	var state string
	ask := scriptDocker(ts)
	if !eventually(func() bool {
		var err error
		state, err = ask("inspect", "--type", "container", "--format", "{{.State.Status}}", args[0])
		if err != nil && strings.Contains(strings.ToLower(err.Error()), "no such") {
			state = "gone"
		} else if err != nil {
			state = err.Error()
		}
		return state == args[1]
	}) {
		ts.Fatalf("%s is %s, not %s", args[0], state, args[1])
	}
}

func cmdLabels(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, len(args) == 2 || len(args) == 3 && !neg, "labels IMAGE KEY [VALUE]")
	out, err := scriptDocker(ts)("image", "inspect", "--format", "{{json .Config.Labels}}", args[0])
	ts.Check(err)
	var labels map[string]string
	ts.Check(json.Unmarshal([]byte(out), &labels))
	value, found := labels[args[1]]
	switch {
	case found == neg:
		ts.Fatalf("label %s: present is %t; all: %v", args[1], found, labels)
	case !neg:
		printOrCompare(ts, value, args[1:])
	}
}

func cmdEventually(ts *testscript.TestScript, neg bool, args []string) {
	fails := len(args) > 0 && args[0] == "!"
	if fails {
		args = args[1:]
	}
	usage(ts, !neg && len(args) > 0, "eventually [!] PROGRAM ARG…")
	var err error
	if !eventually(func() bool {
		err = ts.Exec(args[0], args[1:]...)
		return (err != nil) == fails
	}) {
		ts.Fatalf("still after %s: %v", patience, err)
	}
}

func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) > 1, "status N PROGRAM ARG…")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, not %d", got, want)
	}
}

func cmdSame(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, len(args) == 2, "same FILE1 FILE2")
	a, b := []byte(ts.ReadFile(args[0])), []byte(ts.ReadFile(args[1]))
	if bytes.Equal(a, b) != neg {
		return
	}
	if neg {
		ts.Fatalf("%s and %s are the same", args[0], args[1])
	}
	linesA, linesB := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for n := 0; n < min(len(linesA), len(linesB)); n++ {
		if !bytes.Equal(linesA[n], linesB[n]) {
			ts.Fatalf("line %d differs (%d and %d bytes in all)\n- %.200q\n+ %.200q", n+1, len(a), len(b), linesA[n], linesB[n])
		}
	}
	ts.Fatalf("%s has %d bytes, %s has %d; one begins with the other", args[0], len(a), args[1], len(b))
}

func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, len(args) == 2 || len(args) == 3 && !neg, "json FILE POINTER [VALUE]")
	var document any
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	decoder.UseNumber()
	ts.Check(decoder.Decode(&document))
	value, found := lookup(document, args[1])
	if found == neg {
		ts.Fatalf("%s: present is %t", args[1], found)
	}
	if neg {
		return
	}
	text := fmt.Sprint(value)
	if kind := reflect.ValueOf(value).Kind(); value == nil || kind == reflect.Map || kind == reflect.Slice {
		encoded, err := json.Marshal(value)
		ts.Check(err)
		text = string(encoded)
	}
	printOrCompare(ts, text, args[1:])
}

// printOrCompare prints what KEY has, or compares it with VALUE: then the last command's output stays for more checks.
func printOrCompare(ts *testscript.TestScript, value string, args []string) {
	switch {
	case len(args) == 1:
		fmt.Fprintln(ts.Stdout(), value)
	case value != args[1]:
		ts.Fatalf("%s is %q, not %q", args[0], value, args[1])
	}
}

// lookup follows a JSON pointer.
func lookup(value any, pointer string) (any, bool) {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i, token := range strings.Split(pointer, "/") {
		if i == 0 {
			continue // what is before the first slash
		}
		token = unescape.Replace(token)
		switch parent := value.(type) {
		case map[string]any:
			child, ok := parent[token]
			if !ok {
				return nil, false
			}
			value = child
		case []any:
			n, err := strconv.Atoi(token)
			if err != nil || n < 0 || n >= len(parent) {
				return nil, false
			}
			value = parent[n]
		default:
			return nil, false
		}
	}
	return value, true
}

func cmdStdout2env(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "stdout2env NAME")
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}
