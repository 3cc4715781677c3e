//go:build linux

package archive

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"gotest.tools/v3/assert"
)

// noise is random throughout.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

// letters are random among 16, so each takes four bits, but for a word now and then that comes again:
// where nothing does, zstd at its fastest level does not look for codes at all.
func letters(n int) []byte {
	b := noise(n)
	for i := range b {
		b[i] = 'a' + b[i]%16
		if i%64 < 16 {
			b[i] = "one and the same"[i%64]
		}
	}
	return b
}

// halfRandom has every other page random, and the rest of one text.
func halfRandom(n int) []byte {
	b := noise(n)
	for at := 4096; at < n; at += 8192 {
		end := min(at+4096, n)
		copy(b[at:end], bytes.Repeat([]byte("snapshot"), 512))
	}
	return b
}

func TestPiecesAreCompressedAsFarAsItPays(t *testing.T) {
	decoder, err := zstd.NewReader(nil)
	assert.NilError(t, err)
	defer decoder.Close()
	var c compressor
	for _, tc := range []struct {
		name  string
		piece []byte
		most  float64 // of the length
	}{
		{"one byte", []byte("x"), 20},
		{"small random", noise(6000), 1.01},
		{"small letters", letters(6000), 0.56},
		{"small text", bytes.Repeat([]byte("text "), 1000), 0.05},
		{"random", noise(blockLength), 1.01},
		{"letters", letters(blockLength), 0.52},
		{"half random", halfRandom(blockLength), 0.52},
		{"a whole file", letters(wholeFile), 0.52},
	} {
		t.Run(tc.name, func(t *testing.T) {
			compressed, err := c.compress(tc.piece)
			assert.NilError(t, err)
			assert.Check(t, float64(len(compressed)) <= tc.most*float64(len(tc.piece)), "%d of %d bytes", len(compressed), len(tc.piece))
			back, err := decoder.DecodeAll(compressed, nil)
			assert.NilError(t, err)
			assert.Check(t, bytes.Equal(back, tc.piece))
		})
	}
}

// What is random is not worth a look, which takes longer than all the rest.
func TestCodesAreOnlyTriedWhereTheyPay(t *testing.T) {
	assert.Check(t, wantsCodes(letters(1<<10)))
	assert.Check(t, wantsCodes([]byte("a short text")))
	assert.Check(t, !wantsCodes(noise(1<<10)))
	assert.Check(t, !wantsCodes(noise(4<<10)))
}
