package manifest

import (
	"fmt"

	"github.com/minio/highwayhash"
)

// Fingerprint is the HighwayHash-64 of a block of a large file, under the key of its store. Zero stands for none.
type Fingerprint uint64

// KeyLength is the length of a fingerprint key in bytes.
const KeyLength = highwayhash.Size

// FingerprintKey takes fingerprints. When a file has changed, they tell which of its blocks are the same as before,
// ten times as fast as SHA-256 would. SHA-256 is still what every piece is checked against. The key never leaves
// its store, so nobody who can write to a volume can make two blocks look the same.
type FingerprintKey struct{ key []byte }

// NewFingerprintKey makes a fingerprint key of KeyLength bytes.
func NewFingerprintKey(key []byte) (*FingerprintKey, error) {
	if len(key) != KeyLength {
		return nil, fmt.Errorf("a fingerprint key of %d bytes", len(key))
	}
	return &FingerprintKey{key: key}, nil
}

// Fingerprint takes the fingerprint of a block. It is never zero.
func (k *FingerprintKey) Fingerprint(block []byte) Fingerprint {
	return Fingerprint(max(1, highwayhash.Sum64(block, k.key)))
}
