//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// sshdConfig lets the holder of one key in, and leads to the engine under test.
const sshdConfig = `ListenAddress %[2]s
HostKey %[1]s/host
AuthorizedKeysFile %[1]s/user.pub
StrictModes no
UsePAM no
PidFile none
SetEnv DOCKER_HOST=%[3]s PATH=%[4]s
`

const sshConfig = `IdentityFile %[1]s/user
UserKnownHostsFile %[1]s/known
StrictHostKeyChecking accept-new
LogLevel ERROR
`

// cmdSSHD starts an SSH server for the script, and puts an ssh that has its key first in PATH.
func cmdSSHD(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "sshd NAME")
	dir := ts.MkAbs("ssh")
	ts.Check(os.MkdirAll(filepath.Join(dir, "bin"), 0o700))
	for _, key := range []string{"host", "user"} {
		ts.Check(exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).Run())
	}
	address := freeAddress(ts)
	write := func(name, format string, values ...any) {
		ts.Check(os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, format, values...), 0o700))
	}
	write("sshd_config", sshdConfig, dir, address, ts.Getenv("DOCKER_HOST"), ts.Getenv("PATH"))
	write("ssh_config", sshConfig, dir)
	write("bin/ssh", "#!/bin/sh\nexec /usr/bin/ssh -F %s/ssh_config \"$@\"\n", dir)

	ts.Check(os.MkdirAll("/run/sshd", 0o755)) // Debian's service makes it
	server := exec.Command("/usr/sbin/sshd", "-D", "-f", filepath.Join(dir, "sshd_config"))
	ts.Check(server.Start())
	ts.Defer(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	if !eventually(func() bool {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		connection.Close()
		return true
	}) {
		ts.Fatalf("sshd does not listen on %s", address)
	}
	ts.Setenv("PATH", filepath.Join(dir, "bin")+":"+ts.Getenv("PATH"))
	ts.Setenv(args[0], "ssh://root@"+address)
}

func freeAddress(ts *testscript.TestScript) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	defer listener.Close()
	return listener.Addr().String()
}
