//go:build linux

package archive

import (
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// compressor compresses pieces, one at a time. At its fastest level, zstd spends most of its time on finding out
// whether Huffman codes would make the literals shorter. For random bytes that is in vain, so a sample decides
// whether zstd tries.
type compressor struct {
	coded, plain *zstd.Encoder // made when they are needed
	scratch      []byte
}

const (
	// probeLength is how much of a piece is compressed to see what that leaves, and probeFrom the
	// length of a piece from which that is cheap.
	probeLength = 16 << 10
	probeFrom   = 4 * probeLength
)

// encode compresses a piece in place if that pays.
func (c *compressor) encode(content []byte) (manifest.Codec, []byte, error) {
	if len(content) <= tarBlock {
		return manifest.Raw, content, nil
	}
	compressed, err := c.compress(content)
	if err != nil {
		return manifest.Raw, nil, err
	}
	saved := len(content) - len(compressed)
	if saved < len(content)/worthwhile || roundUp(len(compressed)) >= roundUp(len(content)) {
		return manifest.Raw, content, nil
	}
	return manifest.Zstd, append(content[:0], compressed...), nil
}

// compress returns a piece as a zstd frame. It is valid until the next call.
func (c *compressor) compress(piece []byte) ([]byte, error) {
	coded, err := encoder(&c.coded, false)
	if err != nil {
		return nil, err
	}
	plain, err := encoder(&c.plain, true)
	if err != nil {
		return nil, err
	}
	sample := piece[:min(len(piece), 1<<10)]
	if len(piece) >= probeFrom {
		c.scratch = plain.EncodeAll(piece[:probeLength], c.scratch[:0])
		sample = c.scratch[:min(len(c.scratch), 4<<10)]
	}
	chosen := plain
	if wantsCodes(sample) {
		chosen = coded
	}
	c.scratch = chosen.EncodeAll(piece, c.scratch[:0])
	return c.scratch, nil
}

// wantsCodes says whether codes would make a sample much shorter: whether two of its bytes are equal
// more often than by chance. Of random bytes one pair in 256 is; of text it is twenty.
func wantsCodes(sample []byte) bool {
	var counts [256]int
	for _, b := range sample {
		counts[b]++
	}
	equal := 0
	for _, n := range counts {
		equal += n * (n - 1)
	}
	return equal*256*2 > len(sample)*(len(sample)-1)*3
}

// encoder makes an encoder when it is first needed.
func encoder(held **zstd.Encoder, plain bool) (*zstd.Encoder, error) {
	if *held != nil {
		return *held, nil
	}
	made, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(wholeFile), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false), zstd.WithNoEntropyCompression(plain))
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	*held = made
	return made, nil
}
