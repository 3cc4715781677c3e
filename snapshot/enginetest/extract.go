package enginetest

import (
	"archive/tar"
	"context"
	"io"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// fakeExtractor is a worker that reads files of archives.
type fakeExtractor struct{ *fakeWorker }

// OpenExtractor starts a worker that reads files.
func (v *FakeVolumes) OpenExtractor(ctx context.Context, purpose string, _ volumebackup.Progress) (archives.Extractor, error) {
	w, err := v.launch(ctx, "", map[string]string{volumebackup.LabelPurpose: purpose, labels.Prefix + "worker.frozen": "null"}, nil, true)
	if err != nil {
		return nil, err
	}
	return fakeExtractor{w}, nil
}

// Extract finds directories and symlinks in the content of an archive, if that lists them: "dir/", "link -> target".
// It writes the content as if it were
// one file, which has the path "content", also for a directory.
func (x fakeExtractor) Extract(ctx context.Context, o volumebackup.ExtractOptions, _ string, out io.Writer) (link *volumebackup.Link, err error) {
	content := ""
	err = x.request(ctx, "extract", func() error {
		if err := x.service.holds(o.Snapshot, o.Archive); err != nil {
			return err
		}
		content = x.service.Archives[o.Snapshot][o.Archive]
		if link = linkOn(content, string(o.Path), o.Directory || o.Follow); link != nil {
			return nil
		}
		isDirectory := o.Path == "" || strings.Contains(content, string(o.Path)+"/\n")
		if o.Path != "content" && !isDirectory {
			return volumebackup.ErrNoEntry
		}
		return nil
	})
	if err != nil || link != nil || o.Look {
		return link, err
	}
	written := tar.NewWriter(out)
	if err := written.WriteHeader(&tar.Header{Name: string(o.Name), Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(content))}); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(written, content); err != nil {
		return nil, err
	}
	return nil, written.Close()
}

// linkOn is the symlink that a path leads through, in what a volume holds.
func linkOn(content, path string, follow bool) *volumebackup.Link {
	for line := range strings.Lines(content) {
		name, target, isLink := strings.Cut(strings.TrimSuffix(line, "\n"), " -> ")
		if isLink && (strings.HasPrefix(path, name+"/") || follow && path == name) {
			return &volumebackup.Link{Path: protocol.Path(name), Target: protocol.Path(target)}
		}
	}
	return nil
}
