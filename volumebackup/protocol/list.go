package protocol

import (
	"context"
	"time"
)

// OpList lists the entries of one archive.
const OpList Op = "list"

// ListRequest asks for the entries of one archive; they come as events.
type ListRequest struct {
	Snapshot string `json:"snapshot"`
	Archive  int    `json:"archive"`
	Root     string `json:"root,omitempty"`
	// Sums asks for the SHA-256 of each file. Those of larger files take reading them.
	Sums bool `json:"sums,omitempty"`
}

// Op implements Arguments.
func (ListRequest) Op() Op { return OpList }

func (ListRequest) validate() error { return nil }

// Entry is one entry of an archive, for people.
type Entry struct {
	Path     Path      `json:"path"`
	Kind     string    `json:"kind"` // d f l p s b c, and h for a further name of a file
	Mode     uint32    `json:"mode"`
	UID      uint32    `json:"uid"`
	GID      uint32    `json:"gid"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Target   Path      `json:"target,omitempty"`
	Xattrs   []string  `json:"xattrs,omitempty"`
	SHA256   string    `json:"sha256,omitempty"` // in hex; of a file, if it was asked for
}

// ListResult says what was listed.
type ListResult struct {
	Root    string `json:"root"`
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"`
}

// List hands each entry of an archive to visit.
func (c *Client) List(ctx context.Context, r ListRequest, visit func(Entry)) (ListResult, error) {
	return call[ListResult](ctx, c, r, func(e Event) {
		for _, entry := range e.Entries {
			visit(entry)
		}
	})
}
