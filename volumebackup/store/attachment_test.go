//go:build linux

package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"
)

// attach publishes a snapshot with attachments and nothing else.
func attach(t *testing.T, s *Store, id string, o Origin, attachments map[string]string) {
	t.Helper()
	d, err := s.Begin(t.Context(), id)
	assert.NilError(t, err)
	for name, content := range attachments {
		attached, err := d.Attach(name, strings.NewReader(content))
		assert.NilError(t, err)
		sum := sha256.Sum256([]byte(content))
		assert.DeepEqual(t, attached, Attached{Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:])})
	}
	d.Describe(o)
	_, err = d.Publish(nil)
	assert.NilError(t, err)
}

func readAttachment(t *testing.T, s *Store, id, name string) string {
	t.Helper()
	f, err := s.OpenAttachment(id, name)
	assert.NilError(t, err)
	defer f.Close()
	content, err := io.ReadAll(f)
	assert.NilError(t, err)
	return string(content)
}

func TestAttachmentsComeBackAsTheyWere(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	all := map[string]string{"empty": "", "not text": "\xff\x00\xfe", ".hidden": "x", "large": strings.Repeat("0123456789", 1<<20)}
	attach(t, s, "a", origin(), all)
	for name, content := range all {
		assert.Equal(t, readAttachment(t, s, "a", name), content)
	}
	_, err = s.OpenAttachment("a", "other")
	assert.Assert(t, errdefs.IsNotFound(err))
	before, err := s.packBytes()
	assert.NilError(t, err)

	removed, err := s.Remove(t.Context(), Removal{Snapshots: []Claim{{Snapshot: "a", Container: origin().Container, ContainerName: origin().ContainerName}}})
	assert.NilError(t, err)

	assert.DeepEqual(t, removed.Snapshots, []string{"a"})
	assert.Assert(t, removed.Freed > 10<<20 && removed.Freed <= before, "%d of %d", removed.Freed, before)
	left, err := os.ReadDir(s.path("snapshots"))
	assert.NilError(t, err)
	assert.Equal(t, len(left), 0)
}

func TestAttachmentsOfAVanishedImageGoAfterAWeek(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	o := origin()
	attach(t, s, "a", o, map[string]string{"x": "y"})
	seen := Seen{Engine: o.Engine, ImageStore: o.ImageStore}
	for _, age := range []time.Duration{time.Minute, 6 * 24 * time.Hour} {
		assert.DeepEqual(t, look(t, s, o.Published.Add(age), seen), []string(nil))
	}
	assert.DeepEqual(t, look(t, s, o.Published.Add(8*24*time.Hour), seen), []string{"a"})
}

func TestAnAttachmentThatFailsIsNotPublished(t *testing.T) {
	for _, fails := range []string{"mkdir", "create", "write", "sync"} {
		dir := t.TempDir()
		s, err := OpenFaulty(dir, func(op, path string) error {
			if op == fails && strings.Contains(path, "attachments") {
				return unix.ENOSPC
			}
			return nil
		})
		assert.NilError(t, err)
		d, err := s.Begin(t.Context(), "a")
		assert.NilError(t, err)
		_, err = d.Attach("x", strings.NewReader("content"))
		assert.Assert(t, errors.Is(err, unix.ENOSPC), "%s: %v", fails, err)
		assert.NilError(t, d.Discard())
		left, err := os.ReadDir(s.path("tmp"))
		assert.NilError(t, err)
		assert.Equal(t, len(left), 0)
	}
}

func TestAttachmentNamesLeadNowhereElse(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	d, err := s.Begin(t.Context(), "a")
	assert.NilError(t, err)
	defer func() { assert.NilError(t, d.Discard()) }()
	for _, name := range []string{"", ".", "..", "../x", "/x", "x/", "a/b", "../../format"} {
		_, err := d.Attach(name, strings.NewReader("x"))
		assert.Assert(t, errdefs.IsInvalidArgument(err), name)
		_, err = s.OpenAttachment("a", name)
		assert.Assert(t, errdefs.IsInvalidArgument(err), name)
	}
	_, err = d.Attach("twice", strings.NewReader("x"))
	assert.NilError(t, err)
	_, err = d.Attach("twice", strings.NewReader("y"))
	assert.Assert(t, errdefs.IsInvalidArgument(err))
}

func TestAnAttachmentThatIsNoFileIsDamage(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	attach(t, s, "a", origin(), map[string]string{"x": "y"})
	path := s.path("snapshots", "a", "attachments", "x")
	for name, replace := range map[string]func(string) error{"fifo": fifo, "link": linkTo(t.TempDir(), "x")} {
		assert.NilError(t, os.Remove(path))
		assert.NilError(t, replace(path))
		_, err := s.OpenAttachment("a", "x")
		assert.Assert(t, errdefs.IsDataLoss(err), "%s: %v", name, err)
	}
}

func TestAttachmentsAreVerified(t *testing.T) {
	s, err := Open(t.TempDir())
	assert.NilError(t, err)
	content := "the plan so far"
	attach(t, s, "a", origin(), map[string]string{"plan": content})
	sum := sha256.Sum256([]byte(content))
	want := Attached{Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
	read, err := s.VerifyAttachment("a", "plan", want, false)
	assert.NilError(t, err)
	assert.Equal(t, read, want.Bytes)

	file := s.path("snapshots", "a", attachmentsDir, "plan")
	assert.NilError(t, os.WriteFile(file, []byte("the plan so fat"), 0o600))
	_, err = s.VerifyAttachment("a", "plan", want, true)
	assert.NilError(t, err) // its size is right, and it was not read
	var damaged *DamagedError
	_, err = s.VerifyAttachment("a", "plan", want, false)
	assert.Assert(t, errors.As(err, &damaged), "%v", err)
	assert.NilError(t, os.WriteFile(file, []byte("the plan"), 0o600))
	_, err = s.VerifyAttachment("a", "plan", want, true)
	assert.Assert(t, errors.As(err, &damaged), "%v", err)
	assert.NilError(t, os.Remove(file))
	_, err = s.VerifyAttachment("a", "plan", want, true)
	assert.Assert(t, errdefs.IsNotFound(err), "%v", err)
}
