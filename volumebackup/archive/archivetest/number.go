package archivetest

import (
	"os"
	"strconv"
	"testing"

	"gotest.tools/v3/assert"
)

// strideVariable says that of what a test makes go wrong one after the other, only every n-th is to go wrong.
const strideVariable = "DOCKER_SNAPSHOT_TEST_STRIDE"

// Stride is how many steps there are from one that goes wrong to the next: 1, or what the environment says.
func Stride(t testing.TB) int {
	t.Helper()
	n := Number(t, strideVariable, 1)
	assert.Assert(t, n > 0, "%s=%d", strideVariable, n)
	return n
}

// Number is what a variable of the environment says, or otherwise if it is not set.
func Number(t testing.TB, variable string, otherwise int) int {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	assert.NilError(t, err, variable)
	return n
}
