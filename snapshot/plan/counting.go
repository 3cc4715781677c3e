package plan

import "io"

// Counting returns a reader of in that reports in a phase how many bytes were read.
func (p Progress) Counting(phase, text string, in io.Reader) io.Reader {
	return &counting{Reader: in, progress: p, event: Event{Phase: phase, Text: text}}
}

type counting struct {
	io.Reader
	progress Progress
	event    Event
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.event.Current += int64(n)
	c.progress.Send(c.event)
	return n, err
}
