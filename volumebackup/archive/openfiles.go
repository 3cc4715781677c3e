//go:build linux

package archive

import "sync"

// openFiles are the large files that several goroutines work on. closeAll closes those that are still open when the
// goroutines stop because of an error.
type openFiles struct {
	mu  sync.Mutex
	fds map[int]struct{}
}

func (o *openFiles) add(fd int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fds == nil {
		o.fds = map[int]struct{}{}
	}
	o.fds[fd] = struct{}{}
}

func (o *openFiles) close(fd int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.fds, fd)
	closeFD(fd)
}

// closeAll closes them. Call it when all goroutines have stopped.
func (o *openFiles) closeAll() {
	for fd := range o.fds {
		o.close(fd)
	}
}
