package manifest

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

const (
	manifestHeader = "cua-manifest 1\n"
	manifestMagic  = "cuaman1\n"
	footerLength   = 2*sha256.Size + 3*8 + 4 + len(manifestMagic)
)

// Summary says what a manifest describes.
type Summary struct {
	Root    Sum
	Entries int64
	Bytes   int64 // sizes of all files
}

// footer is the end of a manifest.
type footer struct {
	Summary
	checksum Sum
	body     uint64
	packs    uint32
}

func (f *footer) append(b []byte) []byte {
	b = append(b, f.Root[:]...)
	b = append(b, f.checksum[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(f.Entries))
	b = binary.BigEndian.AppendUint64(b, uint64(f.Bytes))
	b = binary.BigEndian.AppendUint64(b, f.body)
	b = binary.BigEndian.AppendUint32(b, f.packs)
	return append(b, manifestMagic...)
}

func parseFooter(b []byte) (footer, error) {
	var f footer
	if len(b) != footerLength || string(b[footerLength-len(manifestMagic):]) != manifestMagic {
		return f, errors.New("the footer is not one")
	}
	b = b[copy(f.Root[:], b):]
	b = b[copy(f.checksum[:], b):]
	f.Entries = int64(binary.BigEndian.Uint64(b))
	f.Bytes = int64(binary.BigEndian.Uint64(b[8:]))
	f.body = binary.BigEndian.Uint64(b[16:])
	f.packs = binary.BigEndian.Uint32(b[24:])
	return f, nil
}
