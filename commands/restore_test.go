package commands

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/docker/go-connections/nat"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

const containerID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func restoredCopy() build.Restored {
	return build.Restored{
		ContainerID: containerID, Name: "web-58979a", Snapshot: firstSnapshot(), Started: true,
		Plan: plan.Plan{
			{Op: plan.OpReplacePort, Target: "8080 for 80/tcp", Reason: "taken by web"},
			{Op: plan.OpCreateContainer, Target: "web-58979a"},
		},
		Timings: plan.Timings{{Phase: "check", Duration: 12 * time.Millisecond}, {Phase: "total", Duration: 90 * time.Millisecond}},
	}
}

func TestRestoreOptions(t *testing.T) {
	t.Setenv("FROM_HERE", "yes")
	for _, tc := range []struct {
		name string
		args []string
		want runconfig.RestoreOptions
	}{
		{"snapshot", []string{"web:before"}, runconfig.RestoreOptions{Snapshot: "web:before"}},
		{"start", []string{"--start", "x"}, runconfig.RestoreOptions{Snapshot: "x", Start: runconfig.StartAlways}},
		{"no start", []string{"--no-start", "x"}, runconfig.RestoreOptions{Snapshot: "x", Start: runconfig.StartNever}},
		{
			"ports",
			[]string{"-p", "8080:80", "-p", "127.0.0.1::53/udp", "-P", "x"},
			runconfig.RestoreOptions{Snapshot: "x", PublishAll: true, Publish: nat.PortMap{
				"80/tcp": {{HostPort: "8080"}}, "53/udp": {{HostIP: "127.0.0.1"}},
			}},
		},
		{
			"ports in the long form",
			[]string{"-p", "target=80,published=8080", "-p", "published=8053,target=53,protocol=udp", "-p", "target=81", "x"},
			runconfig.RestoreOptions{Snapshot: "x", Publish: nat.PortMap{
				"80/tcp": {{HostPort: "8080"}}, "53/udp": {{HostPort: "8053"}}, "81/tcp": {{}},
			}},
		},
		{
			"waiting",
			[]string{"--wait", "--settle", "5s", "--health-timeout", "1m", "x"},
			runconfig.RestoreOptions{Snapshot: "x", Waiting: runconfig.Waiting{Wait: true, Settle: 5 * time.Second, HealthTimeout: time.Minute}},
		},
		{"no limits", []string{"--memory", "0", "--cpus", "0", "x"}, runconfig.RestoreOptions{Snapshot: "x", Memory: new(int64), NanoCPUs: new(int64)}},
		{
			"environment and labels",
			[]string{"-e", "A=1", "-e", "FROM_HERE", "-e", "NOT_SET_ANYWHERE", "-l", "a=b", "-l", "c", "x"},
			runconfig.RestoreOptions{
				Snapshot: "x", Env: []string{"A=1", "FROM_HERE=yes", "NOT_SET_ANYWHERE"}, Labels: map[string]string{"a": "b", "c": ""},
			},
		},
		{
			"the rest",
			[]string{
				"--name", "copy", "--network", "n1", "--network", "n2", "-m", "64m", "--cpus", "1.5",
				"--allow-host-access", "--skip-missing", "--volumes", "shared", "--binds", "none", "x",
			},
			runconfig.RestoreOptions{
				Snapshot: "x", Name: "copy", Networks: []string{"n1", "n2"}, Memory: new(int64(64 << 20)), NanoCPUs: new(int64(1_500_000_000)),
				AllowHostAccess: true, SkipMissing: true, Volumes: runconfig.VolumesShared, Binds: runconfig.BindsNone,
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			f.engine.restored = restoredCopy()
			assert.Equal(t, f.run(t, append([]string{"restore"}, tc.args...)...), 0, f.stderr.String())
			got := f.engine.restore
			tc.want.Settle = max(tc.want.Settle, runconfig.DefaultSettle)
			if len(got.Publish) == 0 {
				got.Publish = nil
			}
			if len(got.Labels) == 0 {
				got.Labels = nil
			}
			if len(got.Env) == 0 {
				got.Env = nil
			}
			assert.DeepEqual(t, got, tc.want)
			assert.Equal(t, f.stdout.String(), containerID+"\n")
		})
	}
}

func TestRestoreRefusesWithoutAskingTheEngine(t *testing.T) {
	for _, tc := range []struct {
		name, message string
		args          []string
		status        int
	}{
		{"nothing", "requires at least 1 argument", nil, 125},
		{"two snapshots", "go back together only with --replace", []string{"a", "b"}, 125},
		{"two snapshots and a name", "--name is for one snapshot, and 2 are named", []string{"--replace", "--name", "x", "a", "b"}, 125},
		{"two snapshots, of which one is empty", "snapshot name cannot be empty", []string{"--replace", "--force", "a", ""}, 1},
		{"two snapshots, and nobody to ask", "add --force", []string{"--replace", "a", "b"}, 1},
		{"empty", "snapshot name cannot be empty", []string{""}, 1},
		{"contradiction", "--start and --no-start", []string{"--start", "--no-start", "a"}, 125},
		{"port", `for "-p, --publish" flag: `, []string{"-p", "no:port:at:all", "a"}, 125},
		{"port in a long form with no target", "no port", []string{"-p", "published=8080", "a"}, 125},
		{"port in a long form that is none", "name=value", []string{"-p", "target=80,8080", "a"}, 125},
		{"port in a long form with another word", "ip=", []string{"-p", "target=80,ip=127.0.0.1", "a"}, 125},
		{"the host's network and another", "--network host", []string{"--network", "host", "--network", "x", "a"}, 125},
		{"another network and none", "--network none", []string{"--network", "x", "--network", "none", "a"}, 125},
		{"another network and that of a container", "--network container:y", []string{"--network", "x", "--network", "container:y", "a"}, 125},
		{"the default network and another", "--network default", []string{"--network", "default", "--network", "x", "--replace", "a"}, 125},
		{"negative memory", `for "-m, --memory" flag: `, []string{"--memory", "-1", "a"}, 125},
		{"negative CPUs", "it is negative; 0 means no limit", []string{"--cpus", "-1", "a"}, 125},
		{"negative CPUs in place", "--cpus", []string{"--cpus", "-0.5", "--replace", "--force", "a"}, 125},
		{"volumes", "use one of new, shared, none", []string{"--volumes", "all", "a"}, 125},
		{"bind mounts", "use one of ro, shared, none", []string{"--binds", "rw", "a"}, 125},
		{"bind mounts in place", "--replace and --binds", []string{"--replace", "--binds", "ro", "a"}, 125},
		{"waiting for what does not run", "--wait and --no-start", []string{"--wait", "--no-start", "a"}, 125},
		{"how long, without waiting", "--settle goes with --wait", []string{"--settle", "1s", "a"}, 125},
		{"for health, without waiting", "--health-timeout goes with --wait", []string{"--health-timeout", "1s", "a"}, 125},
		{"memory", "--memory", []string{"-m", "much", "a"}, 125},
		{"cpus", "--cpus", []string{"--cpus", "many", "a"}, 125},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			assert.Equal(t, f.run(t, append([]string{"restore"}, tc.args...)...), tc.status)
			assert.Assert(t, is.Contains(f.stderr.String(), tc.message))
			assert.Equal(t, f.engine.calls, 0)
		})
	}
}

func TestAnIncompleteRestoreIsPrintedAndTold(t *testing.T) {
	f := newFixture()
	f.engine.restored = restoredCopy()
	f.engine.restored.Incomplete = true
	assert.Equal(t, f.run(t, "restore", "x"), 3)
	assert.Equal(t, f.stdout.String(), containerID+"\n")
	assert.Equal(t, withoutState(f.stderr.String()), "container web-58979a is incomplete: see the warnings\n")
}

func TestDryRunPrintsThePlan(t *testing.T) {
	f := newFixture()
	f.engine.restored = restoredCopy()
	assert.Equal(t, f.run(t, "restore", "--dry-run", "x"), 0)
	assert.Assert(t, f.engine.restore.DryRun)
	assert.Equal(t, f.stdout.String(), "port 8080 is taken by web: 80/tcp gets a free one\ncreate container web-58979a\n")
}

func TestRestorePrintsJSON(t *testing.T) {
	for _, tc := range []struct{ option, status string }{{"--start", "restored"}, {"--dry-run", "planned"}} {
		t.Run(tc.status, func(t *testing.T) {
			f := newFixture()
			f.engine.restored = restoredCopy()
			f.engine.events = []plan.Event{{Level: plan.LevelWarning, Text: "port 8080 is taken"}}
			assert.Equal(t, f.run(t, "restore", tc.option, "--format", "json", "x"), 0)
			assert.Equal(t, strings.Count(f.stdout.String(), "\n"), 1)
			var got map[string]any
			assert.NilError(t, json.Unmarshal(f.stdout.Bytes(), &got))
			assert.Equal(t, got["id"], string(firstID))
			assert.Equal(t, got["status"], tc.status)
			assert.Equal(t, got["timestamp"], "2026-03-14T12:00:00Z")
			assert.Equal(t, got["size"], 4_234_574.0)
			assert.Equal(t, got["container"], "web")
			assert.Equal(t, got["restored_container"], "web-58979a")
			assert.Equal(t, got["restored_container_id"], containerID)
			assert.Equal(t, got["started"], true)
			assert.DeepEqual(t, got["warnings"], []any{"port 8080 is taken"})
			assert.DeepEqual(t, got["timings_ms"], map[string]any{"check": 12.0, "total": 90.0})
			assert.DeepEqual(t, got["plan"].([]any)[0], map[string]any{
				"op": "replace port", "target": "8080 for 80/tcp", "reason": "taken by web",
			})
		})
	}
}
