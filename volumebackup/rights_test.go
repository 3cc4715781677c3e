package volumebackup

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

func TestWorkersMayOnlyWhatTheirJobNeeds(t *testing.T) {
	for _, tc := range []struct {
		name     string
		rights   rights
		readOnly bool // the store
		want     string
	}{
		{"look", toLook, true, "DAC_OVERRIDE"},
		{"look at archives only", WorkerOptions{Task: Compare{}}.rights(), true, "DAC_OVERRIDE"},
		{"lock", LockOptions{}.job("c").rights, false, "DAC_OVERRIDE"},
		{"tidy", toTidy, false, "DAC_OVERRIDE"},
		{"compare", WorkerOptions{Volumes: []string{"v"}, Task: Compare{}}.rights(), true, "DAC_OVERRIDE DAC_READ_SEARCH FOWNER SYS_ADMIN"},
		{"capture", toCapture, false, "DAC_OVERRIDE DAC_READ_SEARCH FOWNER LEASE SYS_ADMIN"},
		{"fill", WorkerOptions{Volumes: []string{"v"}, Task: Fill{}}.rights(), false, "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID LEASE SETFCAP"},
		{"fill with devices", WorkerOptions{Volumes: []string{"v"}, Task: Fill{Devices: true}}.rights(), false, "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID LEASE MKNOD SETFCAP"},
		{"fill with trusted xattrs", WorkerOptions{Volumes: []string{"v"}, Task: Fill{Trusted: true}}.rights(), false, "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID LEASE SETFCAP SYS_ADMIN"},
		{"replace", WorkerOptions{Volumes: []string{"v"}, Task: Replace{}}.rights(), false, "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID LEASE MKNOD SETFCAP SYS_ADMIN"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, host, err := (&containerLauncher{}).configure("image", job{store: testStore, rights: tc.rights})
			assert.NilError(t, err)
			assert.DeepEqual(t, []string(host.CapAdd), strings.Fields(tc.want))
			assert.DeepEqual(t, []string(host.CapDrop), []string{"ALL"})
			assert.Equal(t, host.Mounts[0].ReadOnly, tc.readOnly)
			assert.Equal(t, host.Memory, int64(memoryLimit))
		})
	}
	_, host, err := (&containerLauncher{}).configure("image", job{rights: WorkerOptions{Task: Hold{}, Volumes: []string{"v"}}.rights()})
	assert.NilError(t, err)
	assert.Equal(t, len(host.Mounts), 0) // but the volumes that the job mounts: who only holds them needs no store
	_, host, err = (&containerLauncher{}).configure("image", job{rights: toFreeze})
	assert.NilError(t, err)
	assert.Equal(t, len(host.Mounts), 1)
	assert.Equal(t, host.Mounts[0].Source, "/sys/fs/cgroup")
	assert.DeepEqual(t, []string(host.CapAdd), []string{"DAC_OVERRIDE"})
	assert.Assert(t, !host.Privileged)
	_, host, err = (&containerLauncher{}).configure("image", job{rights: toWalk, beside: "id"})
	assert.NilError(t, err)
	assert.Equal(t, len(host.Mounts), 0, "a process of the container could reach the store")
	assert.Equal(t, string(host.PidMode), "container:id")
	assert.DeepEqual(t, []string(host.CapAdd), []string{"DAC_READ_SEARCH", "SYS_PTRACE"})
}

func TestWhoMayMakeAStore(t *testing.T) {
	volumes := []string{"v"}
	for name, tc := range map[string]struct {
		rights rights
		makes  bool
	}{
		"replace":                  {WorkerOptions{Task: Replace{}, Volumes: volumes}.rights(), false},
		"replace, without a store": {WorkerOptions{Task: Replace{MakeStore: true}, Volumes: volumes}.rights(), true},
		"replace nothing":          {WorkerOptions{Task: Replace{MakeStore: true}}.rights(), false},
		"lock":                     {LockOptions{}.job("c").rights, false},
		"lock, without a store":    {LockOptions{MakeStore: true}.job("c").rights, true},
		"fill":                     {WorkerOptions{Task: Fill{}, Volumes: volumes}.rights(), false},
	} {
		assert.Equal(t, tc.rights.makesStore, tc.makes, name)
	}
}
