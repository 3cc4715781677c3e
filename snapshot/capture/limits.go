package capture

import (
	"errors"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Limits stop a capture before anything is frozen or stored. The zero value limits bind mounts to [MaxBindEntries] and
// [MaxBindBytes], and volumes not at all.
type Limits struct {
	Entries *int64 // of each volume and bind mount; 0: no limit; nil: not said
	Bytes   *int64 // the same, of their content
	// None says that nothing is limited, whatever else is said.
	None bool
}

// What is captured of a bind mount if nobody says otherwise: a folder that somebody works in has less, a home directory
// or a disk has more.
const (
	MaxBindEntries = 300_000
	MaxBindBytes   = 2 << 30
)

func (l Limits) check() error {
	if l.Entries != nil && *l.Entries < 0 || l.Bytes != nil && *l.Bytes < 0 {
		return errors.New("a limit is negative")
	}
	return nil
}

// limit notes for each volume and bind mount how much of it is captured.
func (l Limits) limit(volumes []volumebackup.Volume) {
	if l.None {
		return
	}
	for i := range volumes {
		v := &volumes[i]
		if labels.IsPathKey(v.Key) {
			v.Limits = volumebackup.Limits{Entries: MaxBindEntries, Bytes: MaxBindBytes}
		}
		if l.Entries != nil {
			v.Limits.Entries = *l.Entries
		}
		if l.Bytes != nil {
			v.Limits.Bytes = *l.Bytes
		}
	}
}
