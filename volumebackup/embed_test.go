//go:build workers

package volumebackup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"io"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// What a build for any system carries are static programs for Linux.
func TestWorkersAreBuiltIn(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		t.Run(arch, func(t *testing.T) {
			image, err := imageFor("linux", arch)
			assert.NilError(t, err)
			assert.Assert(t, isOfThisBuild(image.Config) && isOfThisBuild(image.Manifest))
			program, err := elf.NewFile(bytes.NewReader(programOf(t, image.Open())))
			assert.NilError(t, err)
			assert.Equal(t, program.Machine, machine)
			assert.Equal(t, program.Type, elf.ET_EXEC)
			libraries, err := program.ImportedLibraries()
			assert.NilError(t, err)
			assert.Equal(t, len(libraries), 0)
		})
	}
}

// programOf is the one file in the layer of an image, which comes last.
func programOf(t *testing.T, packed io.Reader) []byte {
	t.Helper()
	content, err := gzip.NewReader(packed)
	assert.NilError(t, err)
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		assert.NilError(t, err)
		if !strings.HasPrefix(header.Name, "blobs/") || header.Size < 1<<20 {
			continue
		}
		layer := tar.NewReader(files)
		_, err = layer.Next()
		assert.NilError(t, err)
		program, err := io.ReadAll(layer)
		assert.NilError(t, err)
		return program
	}
}

func TestOtherArchitecturesHaveNoWorker(t *testing.T) {
	_, err := imageFor("linux", "riscv64")
	assert.ErrorContains(t, err, "carries no worker for linux/riscv64 engines")
}
