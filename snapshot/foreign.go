package snapshot

import (
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// storeNames are the volumes in which archives are kept, if there can be any.
func (e *Engine) storeNames() []string {
	if e.volumes == nil {
		return nil
	}
	return []string{e.volumes.Store(), volumebackup.DefaultStore}
}
