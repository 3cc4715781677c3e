//go:build linux

package store

import (
	"errors"
	"fmt"
	"io"
)

// memberLength is what appendMember appends for a name.
func memberLength(name int) int64 {
	if name <= tarName {
		return tarBlock
	}
	return 2*tarBlock + int64(name) + 1 + padding(int64(name)+1)
}

// walkMembers visits each member of a pack in turn. Freed parts read as zeros and are skipped.
func walkMembers(in io.ReaderAt, size int64, visit func(member) error) error {
	w := memberWalker{in: in, size: size, at: packHeader}
	for {
		m, err := w.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("offset %d: %w", w.at, err)
		}
		if err := visit(m); err != nil {
			return err
		}
	}
}
