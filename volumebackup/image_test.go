package volumebackup

import (
	"archive/tar"
	"errors"
	"io"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

func TestWorkerImageHoldsOneExecutable(t *testing.T) {
	content := strings.Repeat("binary", 100_000)
	stream := workerTar([]byte(content))
	defer stream.Close()
	files := tar.NewReader(stream)
	header, err := files.Next()
	assert.NilError(t, err)
	assert.Equal(t, header.Name, workerPath)
	assert.Equal(t, header.Mode, int64(0o755))
	got, err := io.ReadAll(files)
	assert.NilError(t, err)
	assert.Assert(t, string(got) == content)
	_, err = files.Next()
	assert.ErrorIs(t, err, io.EOF)
}

func TestImportErrorIsFoundInTheStream(t *testing.T) {
	for _, tc := range []struct{ name, stream, want string }{
		{"done", `{"status":"sha256:1"}`, ""},
		{"nothing", "", ""},
		{"failed", `{"status":"Importing"}` + "\n" + `{"error":"no space left"}`, "no space left"},
		{"cut off", `{"status":"Impo`, "unexpected EOF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := importError(strings.NewReader(tc.stream))
			if tc.want == "" {
				assert.NilError(t, err)
				return
			}
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

func TestWorkersOfOneBuildShareAnImage(t *testing.T) {
	a, b, c := newBinary([]byte("a"), asIs), newBinary([]byte("a"), asIs), newBinary([]byte("c"), asIs)
	assert.Equal(t, a.ref, b.ref)
	assert.Assert(t, a.ref != c.ref)
	assert.Assert(t, strings.HasPrefix(a.ref, workerRepository+":"))
}

func TestWorkerForEnginesThatCannotHaveOne(t *testing.T) {
	_, err := workerFor("windows", "amd64")
	assert.ErrorContains(t, err, "volumes of windows engines")
}

func TestTailKeepsTheLastWords(t *testing.T) {
	var words tail
	for range 1000 {
		_, err := io.WriteString(&words, "0123456789")
		assert.NilError(t, err)
	}
	_, err := io.WriteString(&words, "the end\n")
	assert.NilError(t, err)
	assert.Assert(t, strings.HasSuffix(words.String(), "the end"))
	assert.Assert(t, len(words.String()) <= 4<<10)
	w := workerConn{}
	_, err = io.WriteString(&w.stderr, "out of memory")
	assert.NilError(t, err)
	assert.Error(t, w.Explain(errors.New("it ended")), "it ended (worker: out of memory)")
}
