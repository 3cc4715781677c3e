package workerimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// files are what an image's tar has in it.
func files(t *testing.T, in io.Reader) map[string]string {
	t.Helper()
	found := map[string]string{}
	for reader := tar.NewReader(in); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		assert.NilError(t, err)
		content, err := io.ReadAll(reader)
		assert.NilError(t, err)
		found[header.Name] = string(content)
	}
}

func TestImageHoldsOneProgramAndIsNamedByItsContent(t *testing.T) {
	program := strings.Repeat("binary", 100_000)
	image, err := Make("amd64", []byte(program))
	assert.NilError(t, err)
	content := image.Open()
	defer content.Close()
	all := files(t, content)
	for name, file := range all {
		if digest, isBlob := strings.CutPrefix(name, blobs); isBlob {
			assert.Equal(t, digestOf([]byte(file)), "sha256:"+digest)
		}
	}
	assert.Assert(t, strings.Contains(all[blobName(image.Manifest)], image.Config))
	var layers int
	for name, file := range all {
		if strings.HasPrefix(name, blobs) && !strings.HasPrefix(file, "{") {
			layers++
			assert.DeepEqual(t, files(t, strings.NewReader(file)), map[string]string{"docker-snapshot": program})
			assert.Assert(t, strings.Contains(all[blobName(image.Config)], name[len(blobs):]))
		}
	}
	assert.Equal(t, layers, 1)
}

// What somebody makes of the same program, at another time and place, is the same image.
func TestImageDependsOnNothingButItsProgram(t *testing.T) {
	var made []Image
	for _, tc := range []struct{ architecture, program string }{{"amd64", "a"}, {"amd64", "a"}, {"amd64", "b"}, {"arm64", "a"}} {
		image, err := Make(tc.architecture, []byte(tc.program))
		assert.NilError(t, err)
		assert.Assert(t, strings.HasPrefix(image.Ref(), Repository+":"))
		assert.Assert(t, image.HasID(image.Config) && image.HasID(image.Manifest))
		made = append(made, image)
	}
	assert.Equal(t, made[0].Config, made[1].Config)
	assert.Equal(t, made[0].Manifest, made[1].Manifest)
	for _, other := range made[2:] {
		assert.Assert(t, !made[0].HasID(other.Config) && !made[0].HasID(other.Manifest))
		assert.Assert(t, made[0].Ref() != other.Ref())
	}
	assert.Assert(t, !made[0].HasID(""))
}

func TestPackedImageIsTheSame(t *testing.T) {
	image, err := Make("arm64", []byte("program"))
	assert.NilError(t, err)
	var packed bytes.Buffer
	assert.NilError(t, image.Pack(&packed))
	unpacked, err := Unpack(packed.Bytes())
	assert.NilError(t, err)
	assert.Equal(t, unpacked.Config, image.Config)
	assert.Equal(t, unpacked.Manifest, image.Manifest)
	loaded, err := io.ReadAll(unpacked.Open())
	assert.NilError(t, err)
	assert.DeepEqual(t, loaded, packed.Bytes())
	for name, damaged := range map[string][]byte{"nothing": nil, "no gzip": []byte("program"), "cut off": packed.Bytes()[:20]} {
		_, err := Unpack(damaged)
		assert.ErrorContains(t, err, "unpack image", name)
	}
}
