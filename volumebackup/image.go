package volumebackup

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/moby/go-archive"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// workerRepository holds the worker images, one tag for each build of this program.
const workerRepository = "cua-snapshot/worker"

// workerPath is where the binary is in the image.
const workerPath = "docker-snapshot"

// ensureImage returns the reference of the worker's image, which it imports if
// the engine does not have it yet.
func (l *containerLauncher) ensureImage(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.image != "" {
		return l.image, nil
	}
	b, there, err := l.findImage(ctx)
	if err != nil {
		return "", err
	}
	if !there {
		if err := l.importImage(ctx, b); err != nil {
			return "", fmt.Errorf("import image %s: %w", b.ref, err)
		}
	}
	l.image = b.ref
	return l.image, nil
}

// prepare looks for the image before a worker needs it. What fails is tried again
// then.
func (l *containerLauncher) prepare(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.image != "" {
		return
	}
	if b, there, err := l.findImage(ctx); err == nil && there {
		l.image = b.ref
	}
}

func (l *containerLauncher) forgetImage() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.image = ""
}

// findImage finds out which worker the engine needs, and whether it has it.
func (l *containerLauncher) findImage(ctx context.Context) (b binary, there bool, err error) {
	hashAhead()
	engine, err := l.docker.ServerVersion(ctx)
	if err != nil {
		return binary{}, false, fmt.Errorf("ask for the engine's architecture: %w", err)
	}
	if b, err = workerFor(engine.Os, engine.Arch); err != nil {
		return binary{}, false, err
	}
	_, err = l.docker.ImageInspect(ctx, b.ref)
	if cerrdefs.IsNotFound(err) {
		return b, false, nil
	}
	if err != nil {
		return binary{}, false, fmt.Errorf("inspect image %s: %w", b.ref, err)
	}
	return b, true, nil
}

func (l *containerLauncher) importImage(ctx context.Context, b binary) error {
	content, err := b.unpack()
	if err != nil {
		return err
	}
	files := workerTar(content)
	defer files.Close()
	answer, err := l.docker.ImageImport(ctx, image.ImportSource{Source: files, SourceName: "-"}, b.ref, image.ImportOptions{
		Changes: []string{
			`ENTRYPOINT ["/` + workerPath + `", "worker"]`,
			"LABEL " + labels.KeyVersion + "=" + labels.SchemaVersion,
		},
	})
	if err != nil {
		return err
	}
	defer answer.Close()
	return importError(answer)
}

// workerTar is the image's filesystem: one executable file.
func workerTar(content []byte) io.ReadCloser {
	var empty bytes.Buffer
	_ = tar.NewWriter(&empty).Close() // writes to memory
	executable := func(string, *tar.Header, io.Reader) (*tar.Header, []byte, error) {
		return &tar.Header{Typeflag: tar.TypeReg, Mode: 0o755}, content, nil
	}
	return archive.ReplaceFileTarWrapper(io.NopCloser(&empty), map[string]archive.TarModifierFunc{workerPath: executable})
}

// importError finds an error in the stream of an import's messages.
func importError(messages io.Reader) error {
	for decoder := json.NewDecoder(messages); ; {
		var message struct {
			Error string `json:"error"`
		}
		switch err := decoder.Decode(&message); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case message.Error != "":
			return errors.New(message.Error)
		}
	}
}
