package commands

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
)

// standardInput stands for stdin where a file is named.
const standardInput = "-"

// attachOptions are the files that are to be stored with a snapshot.
type attachOptions struct {
	all   []attachOption
	stdin bool // one of them is stdin
}

type attachOption struct{ name, file string }

// add reads NAME=FILE.
func (o *attachOptions) add(spec string) error {
	name, file, _ := strings.Cut(spec, "=")
	if file == "" {
		return errors.New("use NAME=FILE")
	}
	if file == standardInput && o.stdin {
		return errors.New("stdin can be read only once")
	}
	o.stdin = o.stdin || file == standardInput
	o.all = append(o.all, attachOption{name, file})
	return labels.CheckAttachmentName(name)
}

// open opens the files. What can be read only once, such as stdin, is copied to a temporary file,
// because the engine may have to read it again.
func (o *attachOptions) open(stdin io.Reader) (all []capture.Attachment, discard func(), err error) {
	var opened []*os.File
	var temporary []string
	discard = func() {
		for _, f := range opened {
			_ = f.Close()
		}
		for _, path := range temporary {
			_ = os.Remove(path)
		}
	}
	for _, a := range o.all {
		f, copied, err := a.open(stdin)
		if f != nil {
			opened = append(opened, f)
		}
		if copied {
			temporary = append(temporary, f.Name())
		}
		if err != nil {
			discard()
			return nil, nil, fmt.Errorf("attach %s: %w", a.name, err)
		}
		all = append(all, capture.Attachment{Name: a.name, Content: f})
	}
	return all, discard, nil
}

func (a attachOption) open(stdin io.Reader) (f *os.File, copied bool, err error) {
	if a.file == standardInput {
		f, err = copyOf(stdin)
		return f, f != nil, err
	}
	f, err = os.Open(a.file)
	if err != nil {
		return nil, false, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return f, false, err
	case info.IsDir():
		return f, false, fmt.Errorf("%s is a directory", a.file)
	case info.Mode().IsRegular():
		return f, false, nil
	}
	whole, err := copyOf(f) // a pipe, such as <(command)
	_ = f.Close()
	return whole, whole != nil, err
}

// copyOf copies what can be read only once to a temporary file.
func copyOf(from io.Reader) (*os.File, error) {
	f, err := os.CreateTemp("", "docker-snapshot-*")
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(f, from)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	return f, err
}
