package protocol

import "context"

// OpPublish makes a backup durable and visible.
const OpPublish Op = "publish"

// PublishRequest makes the backup durable and visible, with where it is from.
type PublishRequest struct {
	// Engine is the engine's ID, and ImageStore which of its image stores has the snapshot's image.
	Engine     string `json:"engine"`
	ImageStore string `json:"image_store"`
	// Container is the ID of the container, and ContainerName its name.
	Container     string `json:"container"`
	ContainerName string `json:"container_name"`
	// First says that no other snapshot of the container has an image.
	First bool `json:"first,omitempty"`
	// Labels are those of the image: the snapshot's record.
	Labels map[string]string `json:"labels,omitempty"`
}

// Op implements Arguments.
func (PublishRequest) Op() Op { return OpPublish }

func (r PublishRequest) validate() error { return checkItems(len(r.Labels)) }

// PublishResult describes the archives of the new snapshot.
type PublishResult struct {
	Archives []Archive `json:"archives"`
	// LookDue says that somebody should tell the store which images there are: for a day no removal has, or the
	// store has snapshots of the container of which none has an image.
	LookDue bool `json:"look_due,omitempty"`
}

// Archive describes one archive.
type Archive struct {
	Number  int    `json:"number"`
	Key     string `json:"key"`  // of the mount
	Root    string `json:"root"` // Merkle root over the entries, in hex
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"`
	Stored  int64  `json:"stored"` // what the store grew by
	// A pass says whether the volume has entries that only a worker with more rights can make again.
	Devices bool `json:"devices,omitempty"` // device nodes
	Trusted bool `json:"trusted,omitempty"` // trusted.* xattrs, and most of security.*
	// Excluded is, after a pass, how many entries were left out; a directory counts once.
	Excluded int64 `json:"excluded,omitempty"`
	// Skipped is how many entries could not be captured exactly; a warning told of each of the first ones.
	Skipped int64 `json:"skipped,omitempty"`
	// Contradicted is how many files were found not to hold what the store said of them, although they seemed to be
	// unchanged; a warning told of each of the first ones.
	Contradicted int64 `json:"contradicted,omitempty"`
}

// Publish makes the backup durable and visible.
func (c *Client) Publish(ctx context.Context, r PublishRequest, emit func(Event)) (PublishResult, error) {
	return call[PublishResult](ctx, c, r, emit)
}
