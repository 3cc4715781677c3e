package capture

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/docker/docker/api/types/mount"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/hooks"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// taking are the snapshots that are being taken, all of one moment.
type taking struct {
	Request
	engine *Capturer
	parts  []*part
	p      plan.Progress
	stood  standstill     // in all attempts together
	held   []func() error // ends the workers of an exclusive request, once the images are tagged
	ending errgroup.Group // the workers go while the images are tagged
}

// part is one of the snapshots that are being taken.
type part struct {
	*taking
	from     Source
	record   *labels.Record
	hooks    hooks.Hooks
	hook     *hookRun              // since the pre hook; nil: there are none
	volumes  []volumebackup.Volume // to be archived
	excluded labels.Exclusions     // of them
	backup   archives.Backup       // nil: there is nothing to store
	stored   bool                  // its archives may be in the store
	imageID  string                // once it is committed
	refs     []string              // that the image has from the start
	lost     bool                  // something that should be in it could not be kept
	sweepDue bool                  // as in [Created]

	contradicted bool // as in [Created]
}

// taking prepares a snapshot of each source.
func (cr *Capturer) taking(sources []Source, when Request, p plan.Progress) (*taking, error) {
	a := &taking{Request: when, engine: cr, p: p}
	for i, from := range sources {
		if err := from.options.Volumes.check(from.Mounts); err != nil {
			return nil, err
		}
		around, err := hooks.Of(from.Container.Config.Labels, from.options.Hooks)
		if err != nil {
			return nil, fmt.Errorf("container %s: %w", dockerop.ContainerName(from.Container), err)
		}
		excluded, err := from.options.Exclude.from(from.Container.Config.Labels)
		if err != nil {
			return nil, fmt.Errorf("container %s: %w", dockerop.ContainerName(from.Container), err)
		}
		if from.options.exclusive() && len(sources) > 1 {
			return nil, errors.New("an idempotency key and a usage are for the snapshot of one container")
		}
		record := from.record(when.IDs[i], from.options)
		record.Created = when.created
		if len(sources) > 1 { // only now the IDs are certain
			record.Group = cmp.Or(record.Group, string(when.IDs[0]))
		}
		from.options.As.describe(&record)
		a.parts = append(a.parts, &part{taking: a, from: from, record: &record, hooks: around, excluded: excluded})
	}
	return a, nil
}

// stores tells whether something of the snapshot comes into the store.
func (a *part) stores() bool { return len(a.volumes)+len(a.from.options.Attachments) > 0 }

// maxNamed is how many files warnings name.
const maxNamed = 5

// warnSkipped says which files and which volumes' data will not be in the snapshot, unless that
// was asked for. Bind mounts and tmpfs are recorded, but nobody expects them in it.
func (a *part) warnSkipped() {
	for i, file := range a.from.Whiteouts {
		a.lost = true
		if i == maxNamed {
			a.p.Warn("inspect", fmt.Sprintf("the same applies to %d more files", len(a.from.Whiteouts)-i))
			break
		}
		a.p.Warn("inspect", dockerop.DescribeWhiteout(file)+". Rename it, and take another snapshot")
	}
	for _, m := range a.record.Mounts {
		if m.Type == string(mount.TypeVolume) && m.Skipped != "" {
			a.lost = true
			a.p.Warn("volumes", fmt.Sprintf("the data of volume %s (%s) is not in the snapshot: %s", m.Name, m.Destination, m.Skipped))
		}
	}
}

// names are the keys of the volumes.
func (a *part) names() []string {
	names := make([]string, len(a.volumes))
	for i, v := range a.volumes {
		names[i] = v.Key
	}
	return names
}

// comment is that of the commit, by which its event is known.
func (a *part) comment() string { return catalog.CommitComment(a.record.ID) }

// seal completes the record, and returns the labels that say it.
func (a *part) seal() (own map[string]string, err error) {
	if as := a.from.options.As; as != nil {
		a.record.Mounts = as.Place(a.record.Mounts)
	}
	if a.record.Seal, err = labels.Seal(*a.record, a.from.key); err == nil {
		own, err = labels.Encode(*a.record)
	}
	if err != nil {
		return nil, fmt.Errorf("describe container %s: %w", a.record.Container.Name, err)
	}
	return own, nil
}

// tooDeep tells whether the image would have more layers than is good.
func (a *part) tooDeep() bool {
	if a.from.image == nil {
		return true // not known: flatten rather than hit the engine's limit
	}
	return len(a.from.image.RootFS.Layers)+1 > maxLayers
}

// commitFailed says which container could not be committed. Engine 29 refuses some whiteouts: ".wh." and ".wh..".
func (a *part) commitFailed(err error) error {
	if files := a.record.Whiteouts; len(files) > 0 && strings.Contains(err.Error(), "whiteout") {
		err = fmt.Errorf("%w: rename %s", err, strings.Join(files, ", "))
	}
	return fmt.Errorf("commit container %s: %w", a.record.Container.Name, err)
}
