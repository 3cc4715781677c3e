package volumebackup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
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

// binary is a worker for the engine.
type binary struct {
	content []byte
	ref     string // of its image
}

func newBinary(content []byte) binary {
	sum := sha256.Sum256(content)
	return binary{content: content, ref: fmt.Sprintf("%s:%x", workerRepository, sum[:6])}
}

// ensureImage returns the reference of the worker's image, which it imports if
// the engine does not have it yet.
func (l containerLauncher) ensureImage(ctx context.Context) (string, error) {
	prepare()
	engine, err := l.docker.ServerVersion(ctx)
	if err != nil {
		return "", fmt.Errorf("ask for the engine's architecture: %w", err)
	}
	b, err := workerFor(engine.Os, engine.Arch)
	if err != nil {
		return "", err
	}
	_, err = l.docker.ImageInspect(ctx, b.ref)
	if err == nil {
		return b.ref, nil
	}
	if !cerrdefs.IsNotFound(err) {
		return "", fmt.Errorf("inspect image %s: %w", b.ref, err)
	}
	if err := l.importImage(ctx, b); err != nil {
		return "", fmt.Errorf("import image %s: %w", b.ref, err)
	}
	return b.ref, nil
}

func (l containerLauncher) importImage(ctx context.Context, b binary) error {
	files := workerTar(b.content)
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
