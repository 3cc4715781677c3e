package session

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// blobs is the folder of what is named by its digest.
const blobs = "blobs/sha256/"

// descriptor says what a blob is.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Archive returns a tar that every engine loads: the image that keeps a session, whose label
// [labels.KeySession] is text. It is named ref, with its tag; architecture is the engine's.
func Archive(ref, architecture, text string) ([]byte, error) {
	return BareImage{
		Ref: ref, Architecture: architecture, Created: time.Unix(0, 0), Comment: "session of a run",
		Labels: map[string]string{labels.KeyVersion: labels.SchemaVersion, labels.KeySession: text},
	}.Archive()
}

// BareImage is an image without layers: nothing but labels.
type BareImage struct {
	Ref          string // its name, with its tag
	Architecture string // the engine's
	Created      time.Time
	Comment      string
	Labels       map[string]string
}

// Archive returns a tar that every engine loads as this image. It has two tables of contents: the one
// of OCI, which containerd reads, and the one that docker save makes, which engines with an image store
// of their own read.
func (i BareImage) Archive() ([]byte, error) {
	type object = map[string]any // encoded in the order of its keys
	ref, created := i.Ref, i.Created.UTC().Format(time.RFC3339)
	config, err := json.Marshal(object{
		"architecture": i.Architecture, "os": "linux", "created": created,
		"config":  object{"Labels": i.Labels},
		"rootfs":  object{"type": "layers", "diff_ids": []any{}},
		"history": []any{object{"created": created, "comment": i.Comment, "empty_layer": true}},
	})
	if err != nil {
		return nil, fmt.Errorf("describe image: %w", err)
	}
	manifest, err := json.Marshal(object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": []any{},
		"config": descriptor{MediaType: "application/vnd.oci.image.config.v1+json", Digest: digestOf(config), Size: len(config)},
	})
	if err != nil {
		return nil, fmt.Errorf("describe image: %w", err)
	}
	_, tag, _ := strings.Cut(ref, ":")
	index, err := json.Marshal(object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
		"manifests": []descriptor{{
			MediaType: "application/vnd.oci.image.manifest.v1+json", Digest: digestOf(manifest), Size: len(manifest),
			Annotations: map[string]string{"io.containerd.image.name": "docker.io/" + ref, "org.opencontainers.image.ref.name": tag},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("describe image: %w", err)
	}
	saved, err := json.Marshal([]object{{"Config": blobName(config), "RepoTags": []string{ref}, "Layers": []string{}}})
	if err != nil {
		return nil, fmt.Errorf("describe image: %w", err)
	}
	return pack([]member{
		{blobName(manifest), manifest},
		{blobName(config), config},
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", index},
		{"manifest.json", saved},
	})
}

// member is one file of an archive.
type member struct {
	name    string
	content []byte
}

func pack(members []member) ([]byte, error) {
	var out bytes.Buffer
	files := tar.NewWriter(&out)
	for _, m := range members {
		header := tar.Header{Typeflag: tar.TypeReg, Name: m.name, Mode: 0o644, Size: int64(len(m.content)), Format: tar.FormatUSTAR}
		if err := files.WriteHeader(&header); err != nil {
			return nil, fmt.Errorf("write %s: %w", m.name, err)
		}
		if _, err := files.Write(m.content); err != nil {
			return nil, fmt.Errorf("write %s: %w", m.name, err)
		}
	}
	if err := files.Close(); err != nil {
		return nil, fmt.Errorf("write image: %w", err)
	}
	return out.Bytes(), nil
}

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

func blobName(content []byte) string { return blobs + strings.TrimPrefix(digestOf(content), "sha256:") }
