//go:build linux

package archive

import "sync"

// openFiles are the large files that several goroutines work on. What is still
// open when they stop because of an error is closed at the end.
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

// closeAll must come after everyone has stopped.
func (o *openFiles) closeAll() {
	for fd := range o.fds {
		o.close(fd)
	}
}
