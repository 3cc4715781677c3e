package commands

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// writeWhole gives a file its content in one step: if fill fails, it is as it was.
func writeWhole(name string, fill func(io.Writer) error) (err error) {
	const mode = 0o666 // the user's umask takes away from it
	temporary := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"-"+rand.Text())
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary)
		}
	}()
	err = fill(file)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}
