package enginetest

import (
	"archive/tar"
	"context"
	"errors"
	"io"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Extract writes the content of an archive as if it were one file, which has the path "content".
func (v *FakeVolumes) Extract(ctx context.Context, o volumebackup.ExtractOptions, out io.Writer, _ volumebackup.Progress) error {
	w, err := v.launch(ctx, "", map[string]string{volumebackup.LabelPurpose: "read files", labels.Prefix + "worker.frozen": "null"}, nil, true)
	if err != nil {
		return err
	}
	content := ""
	err = w.request(ctx, "extract", func() error {
		if err := v.holds(o.Snapshot, o.Archive); err != nil {
			return err
		}
		if content = v.Archives[o.Snapshot][o.Archive]; o.Path != "content" {
			return volumebackup.ErrNoEntry
		}
		return nil
	})
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	written := tar.NewWriter(out)
	if err := written.WriteHeader(&tar.Header{Name: string(o.Name), Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(content))}); err != nil {
		return err
	}
	if _, err := io.WriteString(written, content); err != nil {
		return err
	}
	return written.Close()
}
