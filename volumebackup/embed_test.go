//go:build workers

package volumebackup

import (
	"bytes"
	"debug/elf"
	"testing"

	"gotest.tools/v3/assert"
)

// What a build for any system carries are static programs for Linux.
func TestWorkersAreBuiltIn(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		t.Run(arch, func(t *testing.T) {
			worker, err := workerFor("linux", arch)
			assert.NilError(t, err)
			content, err := worker.unpack()
			assert.NilError(t, err)
			program, err := elf.NewFile(bytes.NewReader(content))
			assert.NilError(t, err)
			assert.Equal(t, program.Machine, machine)
			assert.Equal(t, program.Type, elf.ET_EXEC)
			libraries, err := program.ImportedLibraries()
			assert.NilError(t, err)
			assert.Equal(t, len(libraries), 0)
		})
	}
}

func TestOtherArchitecturesHaveNoWorker(t *testing.T) {
	_, err := workerFor("linux", "riscv64")
	assert.ErrorContains(t, err, "carries no worker for linux/riscv64 engines")
}
