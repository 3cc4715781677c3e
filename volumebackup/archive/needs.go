//go:build linux

package archive

import (
	"strings"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Needs says what is in a volume that only a process with a particular right can
// make again.
type Needs struct {
	Devices bool // device nodes: CAP_MKNOD
	Trusted bool // trusted.* xattrs, and most of security.*: CAP_SYS_ADMIN
}

func (n *Needs) add(e *manifest.Entry) {
	n.Devices = n.Devices || e.Kind == manifest.BlockDevice || e.Kind == manifest.CharacterDevice
	for _, x := range e.Xattrs {
		security := strings.HasPrefix(x.Name, "security.") && x.Name != "security.capability" // for which CAP_SETFCAP is enough
		n.Trusted = n.Trusted || security || strings.HasPrefix(x.Name, "trusted.")
	}
}
