package protocol

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
)

// OpKnown tells which root filesystems the store knows.
const OpKnown Op = "known"

// KnownRequest asks which of these the store knows.
type KnownRequest struct {
	Images []string `json:"images"`
}

// Op implements Arguments.
func (KnownRequest) Op() Op { return OpKnown }

func (r KnownRequest) validate() error {
	for _, key := range r.Images {
		if err := checkImageKey(key); err != nil {
			return err
		}
	}
	return checkItems(len(r.Images))
}

// KnownResult lists those that are known.
type KnownResult struct {
	Images []KnownImage `json:"images,omitempty"`
}

// KnownImage is a root filesystem that the store knows.
type KnownImage struct {
	Image   string `json:"image"`
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"` // of its files
}

// Known tells which root filesystems the store knows.
func (c *Client) Known(ctx context.Context, images []string) ([]KnownImage, error) {
	result, err := call[KnownResult](ctx, c, KnownRequest{Images: images}, nil)
	return result.Images, err
}

// OpLearn tells the worker what a root filesystem holds.
const OpLearn Op = "learn"

// LearnRequest tells, in the bytes that go along, what a root filesystem holds: a manifest, without places of pieces.
type LearnRequest struct {
	Image string `json:"image"`
	Keep  bool   `json:"keep,omitempty"` // in the store; else for as long as the worker lives
	// Walked is the key under which the store keeps the list for the next walk. Empty: it does not.
	Walked string `json:"walked,omitempty"`
}

// Op implements Arguments.
func (LearnRequest) Op() Op { return OpLearn }

func (r LearnRequest) validate() error {
	if r.Walked != "" {
		if err := checkImageKey(r.Walked); err != nil {
			return err
		}
	}
	return checkImageKey(r.Image)
}

// Learn tells the worker what a root filesystem holds.
func (c *Client) Learn(ctx context.Context, r LearnRequest, content io.Reader, emit func(Event)) error {
	_, err := callWith[None](ctx, c, r, Streams{In: content}, emit)
	return err
}

// OpRecall reads the list that a walk has left in the store.
const OpRecall Op = "recall"

// MaxRecalled bounds such a list, in bytes.
const MaxRecalled = 64 << 20

// RecallRequest asks for the list that the store keeps for walks under a key; its bytes come along. There are none if it
// keeps none, or one that is longer than [MaxRecalled].
type RecallRequest struct {
	Walked string `json:"walked"`
}

// Op implements Arguments.
func (RecallRequest) Op() Op { return OpRecall }

func (r RecallRequest) validate() error { return checkImageKey(r.Walked) }

// Recall writes to out the list that the store keeps for walks.
func (c *Client) Recall(ctx context.Context, walked string, out io.Writer) error {
	_, err := callWith[None](ctx, c, RecallRequest{Walked: walked}, Streams{Out: out}, nil)
	return err
}

// checkImageKey refuses what is no SHA-256 in hex.
func checkImageKey(key string) error {
	if sum, err := hex.DecodeString(key); err != nil || len(sum) != 32 {
		return fmt.Errorf("key %.100q of an image: %w", key, errdefs.ErrInvalidArgument)
	}
	return nil
}
