//go:build linux

package archive

import "sync"

// buffers lends out memory for pieces. Small ones are not worth the trouble.
type buffers struct {
	blocks, files sync.Pool
}

const smallBuffer = 32 << 10

func (b *buffers) get(n int) []byte {
	pool, size := b.pool(n)
	if pool == nil {
		return make([]byte, n)
	}
	if held, ok := pool.Get().(*[]byte); ok {
		return (*held)[:n]
	}
	return make([]byte, n, size)
}

// put returns a buffer from get.
func (b *buffers) put(held []byte) {
	if pool, size := b.pool(cap(held)); pool != nil && cap(held) == size {
		pool.Put(&held)
	}
}

func (b *buffers) pool(n int) (*sync.Pool, int) {
	switch {
	case n <= smallBuffer:
		return nil, 0
	case n <= blockLength:
		return &b.blocks, blockLength
	case n <= wholeFile:
		return &b.files, wholeFile
	default:
		return nil, 0
	}
}
