package protocol

import "context"

// OpBegin opens a backup: it locks the store and reads the heads.
const OpBegin Op = "begin"

// BeginRequest opens a backup.
type BeginRequest struct {
	Snapshot string  `json:"snapshot"`
	Mounts   []Mount `json:"mounts"`
}

// Mount is one volume as the worker sees it.
type Mount struct {
	// Number says where the volume is mounted, /mnt/<number>, and names its archive within the snapshot.
	Number int `json:"number"`
	// Volume is the engine's name of the volume; its stat cache is kept under it.
	Volume string `json:"volume"`
}

// Op implements Arguments.
func (BeginRequest) Op() Op { return OpBegin }

func (r BeginRequest) validate() error { return checkItems(len(r.Mounts)) }

// Begin opens a backup.
func (c *Client) Begin(ctx context.Context, r BeginRequest, emit func(Event)) error {
	_, err := call[None](ctx, c, r, emit)
	return err
}
