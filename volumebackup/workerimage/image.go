// Package workerimage makes the image of a worker: one layer with one program.
//
// The image is a tar that both kinds of image store load, and it is the same
// wherever and whenever it is made: it has no times and no names of machines. So
// its ID is known before an engine has it, and an image with another ID is not
// ours, whatever its tags and labels say. An engine's own store calls an image
// by the digest of its configuration, containerd's by the digest of its manifest.
package workerimage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/moby/go-archive"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// Repository holds the images of workers, one tag for each build.
const Repository = "cua-snapshot/worker"

// program is where the program is in the image.
const program = "docker-snapshot"

// maxDocument bounds what is read of an image's description, in bytes.
const maxDocument = 64 << 10

// blobs is the folder of what is named by its digest.
const blobs = "blobs/sha256/"

// Entrypoint is what a worker's container runs.
func Entrypoint() []string { return []string{"/" + program, "worker"} }

// Labels are those of the image, and all it has.
func Labels() map[string]string { return map[string]string{labels.KeyVersion: labels.SchemaVersion} }

// Image is an image that an engine can load.
type Image struct {
	Config   string // digest of its configuration
	Manifest string // digest of its manifest
	// Open returns the tar to load, which may be compressed.
	Open func() io.ReadCloser
}

// Ref is the image's name.
func (i Image) Ref() string {
	const shown = 12
	return Repository + ":" + strings.TrimPrefix(i.Config, "sha256:")[:shown]
}

// HasID tells whether an engine's image is this one.
func (i Image) HasID(id string) bool { return id != "" && (id == i.Config || id == i.Manifest) }

// Make makes the image of a program for Linux on an architecture.
func Make(architecture string, content []byte) (Image, error) {
	d, err := describe(architecture, content)
	if err != nil {
		return Image{}, err
	}
	return Image{Config: digestOf(d.config), Manifest: digestOf(d.manifest), Open: func() io.ReadCloser {
		reader, writer := io.Pipe()
		go func() { _ = writer.CloseWithError(d.write(writer)) }()
		return reader
	}}, nil
}

// Pack compresses an image, for [Unpack].
func (i Image) Pack(out io.Writer) error {
	content := i.Open()
	defer content.Close()
	packed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := io.Copy(packed, content); err != nil {
		return fmt.Errorf("pack image: %w", err)
	}
	return packed.Close()
}

// Unpack knows a packed image by the first of its files, which describe it: the
// program behind them need not be unpacked for that.
func Unpack(packed []byte) (Image, error) {
	content, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return Image{}, fmt.Errorf("unpack image: %w", err)
	}
	files := tar.NewReader(content)
	i := Image{Open: func() io.ReadCloser { return io.NopCloser(bytes.NewReader(packed)) }}
	for _, digest := range []*string{&i.Manifest, &i.Config} {
		header, err := files.Next()
		if err != nil {
			return Image{}, fmt.Errorf("unpack image: %w", err)
		}
		document, err := io.ReadAll(io.LimitReader(files, maxDocument))
		if err != nil {
			return Image{}, fmt.Errorf("unpack image: %w", err)
		}
		if *digest = digestOf(document); header.Name != blobName(*digest) {
			return Image{}, errors.New("unpack image: its description does not come first")
		}
	}
	return i, nil
}

// description is everything about an image.
type description struct {
	program  []byte
	layer    descriptor
	config   []byte
	manifest []byte
}

// descriptor says what a blob is.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// describe writes the configuration and the manifest of an image.
func describe(architecture string, content []byte) (d description, err error) {
	type list = []any
	type object = map[string]any // encoded in the order of its keys
	d.program = content
	if d.layer, err = describeLayer(content); err != nil {
		return d, err
	}
	d.config, err = json.Marshal(object{
		"architecture": architecture, "os": "linux", "created": "1970-01-01T00:00:00Z",
		"config":  object{"Entrypoint": Entrypoint(), "Labels": Labels()},
		"rootfs":  object{"type": "layers", "diff_ids": list{d.layer.Digest}},
		"history": list{object{"created": "1970-01-01T00:00:00Z", "comment": "docker snapshot worker"}},
	})
	if err != nil {
		return d, fmt.Errorf("describe image: %w", err)
	}
	d.manifest, err = json.Marshal(object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": descriptor{MediaType: "application/vnd.oci.image.config.v1+json", Digest: digestOf(d.config), Size: len(d.config)},
		"layers": list{d.layer},
	})
	if err != nil {
		return d, fmt.Errorf("describe image: %w", err)
	}
	return d, nil
}

// write writes the tar: as OCI lays an image out, which containerd reads, and
// with the list that docker save makes, which engines with a store of their own read.
func (d description) write(out io.Writer) error {
	image := Image{Config: digestOf(d.config), Manifest: digestOf(d.manifest)}
	_, tag, _ := strings.Cut(image.Ref(), ":")
	index, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
		"manifests": []descriptor{{
			MediaType: "application/vnd.oci.image.manifest.v1+json", Digest: image.Manifest, Size: len(d.manifest),
			Annotations: map[string]string{
				"io.containerd.image.name": "docker.io/" + image.Ref(), "org.opencontainers.image.ref.name": tag,
			},
		}},
	})
	if err != nil {
		return fmt.Errorf("describe image: %w", err)
	}
	saved, err := json.Marshal([]map[string]any{{
		"Config": blobName(image.Config), "RepoTags": []string{image.Ref()}, "Layers": []string{blobName(d.layer.Digest)},
	}})
	if err != nil {
		return fmt.Errorf("describe image: %w", err)
	}
	files := tar.NewWriter(out)
	for _, f := range []struct {
		name    string
		content []byte
	}{
		{blobName(image.Manifest), d.manifest},
		{blobName(image.Config), d.config},
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", index},
		{"manifest.json", saved},
	} {
		if err := writeFile(files, f.name, 0o644, f.content); err != nil {
			return err
		}
	}
	if err := writeHeader(files, blobName(d.layer.Digest), 0o644, d.layer.Size); err != nil {
		return err
	}
	if err := writeLayer(files, d.program); err != nil {
		return err
	}
	return files.Close()
}

// describeLayer finds out the layer's digest, without keeping the layer.
func describeLayer(content []byte) (descriptor, error) {
	layer := digester{Hash: sha256.New()}
	if err := writeLayer(&layer, content); err != nil {
		return descriptor{}, err
	}
	return descriptor{
		MediaType: "application/vnd.oci.image.layer.v1.tar", Digest: fmt.Sprintf("sha256:%x", layer.Sum(nil)), Size: layer.size,
	}, nil
}

// digester hashes and counts what is written to it.
type digester struct {
	hash.Hash
	size int
}

func (d *digester) Write(b []byte) (int, error) {
	d.size += len(b)
	return d.Hash.Write(b)
}

// writeLayer writes the image's filesystem: one executable file.
func writeLayer(out io.Writer, content []byte) error {
	var empty bytes.Buffer
	_ = tar.NewWriter(&empty).Close() // writes to memory
	executable := func(string, *tar.Header, io.Reader) (*tar.Header, []byte, error) {
		return &tar.Header{Typeflag: tar.TypeReg, Mode: 0o755}, content, nil
	}
	layer := archive.ReplaceFileTarWrapper(io.NopCloser(&empty), map[string]archive.TarModifierFunc{program: executable})
	defer layer.Close()
	if _, err := io.Copy(out, layer); err != nil {
		return fmt.Errorf("write layer: %w", err)
	}
	return nil
}

func writeFile(files *tar.Writer, name string, mode int64, content []byte) error {
	if err := writeHeader(files, name, mode, len(content)); err != nil {
		return err
	}
	if _, err := files.Write(content); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func writeHeader(files *tar.Writer, name string, mode int64, size int) error {
	header := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(size), Format: tar.FormatUSTAR}
	if err := files.WriteHeader(&header); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

func blobName(digest string) string { return blobs + strings.TrimPrefix(digest, "sha256:") }
