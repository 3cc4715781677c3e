package protocol

import (
	"context"
	"errors"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/paths"
)

// OpRestore makes one volume what it was, or says what that would take.
const OpRestore Op = "restore"

// RestoreRequest makes the volume that is mounted as Mount what the archive Snapshot/Archive says.
type RestoreRequest struct {
	Snapshot string `json:"snapshot"`
	// Archive is the number of the archive within the snapshot.
	Archive int `json:"archive"`
	// Root is what the snapshot's label says of the archive; anything else in the store is damage. Empty skips the
	// comparison.
	Root  string `json:"root,omitempty"`
	Mount Mount  `json:"mount"`
	// Chosen says which entries are meant; without it, all are. The others stay as they are.
	Chosen *Choice `json:"chosen,omitempty"`
	// DryRun only says what would be done.
	DryRun bool `json:"dry_run,omitempty"`
}

// Op implements Arguments.
func (RestoreRequest) Op() Op { return OpRestore }

func (r RestoreRequest) validate() error {
	return errors.Join(r.Mount.Excluded.Check(), r.Chosen.validate())
}

// Choice names entries of a volume by where a container sees them.
type Choice struct {
	Patterns []string `json:"patterns"` // as for paths.New
	At       []string `json:"at"`       // where the container has the volume
}

func (c *Choice) validate() error {
	if c == nil {
		return nil
	}
	_, err := paths.New(c.Patterns)
	return errors.Join(err, checkItems(len(c.At)))
}

// RestoreResult says what a restore did, or would do.
type RestoreResult struct {
	Created Totals `json:"created"`
	Changed Totals `json:"changed"`
	Deleted Totals `json:"deleted"`
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"`
	// Skipped is how many attributes or entries the kernel did not allow here.
	Skipped int64 `json:"skipped,omitempty"`
}

// Totals counts entries and the bytes that are written or, for deletions, freed.
type Totals struct {
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`
}

// Restore makes a volume what it was.
func (c *Client) Restore(ctx context.Context, r RestoreRequest, emit func(Event)) (RestoreResult, error) {
	return call[RestoreResult](ctx, c, r, emit)
}
