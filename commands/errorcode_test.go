package commands

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/cli/cli"
	"github.com/docker/docker/client"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runs"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/untar"
)

// exportedErrors are all error types that the engine exports, with the code of each. Types that only the worker knows
// reach the client as a protocol.Error.
var exportedErrors = map[string]struct {
	err  error
	code errorCode
}{
	"labels.FieldError":                {&labels.FieldError{Err: errors.New("wrong")}, codeDamaged},
	"archives.NoBaseError":             {&archives.NoBaseError{}, codeNotFound},
	"archives.NoAttachmentError":       {&archives.NoAttachmentError{}, codeNotFound},
	"capture.HookError":                {&capture.HookError{Err: errors.New("it failed")}, codeInternal},
	"capture.LeftFrozenError":          {&capture.LeftFrozenError{}, codeIncomplete},
	"capture.UnknownBindError":         {&capture.UnknownBindError{}, codeUsage},
	"capture.MadeError":                {&capture.MadeError{}, codeInternal},   // nobody sees it: it is no failure
	"capture.NotDueError":              {&capture.NotDueError{}, codeInternal}, // nor this
	"diff.UnknownPathError":            {&diff.UnknownPathError{}, codeNotFound},
	"replace.UnknownPathError":         {&replace.UnknownPathError{}, codeNotFound},
	"catalog.ContainerError":           {&catalog.ContainerError{}, codeUsage},
	"catalog.AmbiguousError":           {&catalog.AmbiguousError{}, codeAmbiguous},
	"catalog.LineError":                {&catalog.LineError{}, codeNameTaken},
	"catalog.StateError":               {&catalog.StateError{}, codeUsage},
	"catalog.NameTakenError":           {&catalog.NameTakenError{}, codeNameTaken},
	"diff.GoneError":                   {&diff.GoneError{}, codeNotFound},
	"extract.NoPathError":              {&extract.NoPathError{}, codeNotFound},
	"extract.NoFileError":              {&extract.NoFileError{}, codeUsage},
	"extract.LinksError":               {&extract.LinksError{}, codeUsage},
	"extract.NotHeldError":             {&extract.NotHeldError{}, codeNotFound},
	"extract.TooLargeError":            {&extract.TooLargeError{}, codeUsage},
	"untar.DestinationError":           {&untar.DestinationError{}, codeUsage},
	"diff.OtherStoreError":             {&diff.OtherStoreError{}, codeUsage},
	"diff.UnknownVolumeError":          {&diff.UnknownVolumeError{}, codeNotFound},
	"replace.UnknownPartError":         {&replace.UnknownPartError{}, codeUsage},
	"catalog.NotFoundError":            {&catalog.NotFoundError{}, codeNotFound},
	"catalog.PinnedError":              {&catalog.PinnedError{}, codePinned},
	"catalog.UntaggedError":            {&catalog.UntaggedError{}, codeNotFound},
	"catalog.RunNotFoundError":         {&catalog.RunNotFoundError{}, codeNotFound},
	"runs.OtherContainerError":         {&runs.OtherContainerError{}, codeInUse},
	"catalog.UnreadableError":          {&catalog.UnreadableError{Err: errors.New("x")}, codeDamaged},
	"replace.RefusedError":             {&replace.RefusedError{Container: "web", Err: cerrdefs.ErrInvalidArgument}, codeUsage},
	"replace.NoUndoError":              {&replace.NoUndoError{}, codeNotFound},
	"replace.NotCopyError":             {&replace.NotCopyError{}, codeUsage},
	"copies.InUseError":                {&copies.InUseError{}, codeInUse},
	"dockerop.ExecError":               {&dockerop.ExecError{}, codeInternal},
	"dockerop.FreezeError":             {&dockerop.FreezeError{Err: errors.New("unable to freeze")}, codeInternal},
	"dockerop.FullError":               {dockerop.AsFull(errors.New("write /var: no space left on device")), codeNoSpace},
	"dockerop.NoContainerError":        {dockerop.AsNoContainer(cerrdefs.ErrNotFound), codeNotFound},
	"dockerop.PausedError":             {&dockerop.PausedError{}, codeInUse},
	"dockerop.SelfError":               {&dockerop.SelfError{}, codeInUse},
	"dockerop.StaleTaskError":          {&dockerop.StaleTaskError{Err: errors.New("task 9e8f: already exists")}, codeInternal},
	"plan.ProblemsError":               {&plan.ProblemsError{}, codeProblems},
	"removal.InterruptedError":         {&removal.InterruptedError{}, codeLocked},
	"replace.InUseError":               {&replace.InUseError{}, codeInUse},
	"build.NotReadyError":              {&build.NotReadyError{}, codeInternal},
	"replace.NotStartedError":          {&replace.NotStartedError{Err: errors.New("start")}, codeIncomplete},
	"replace.PendingError":             {&replace.PendingError{}, codeLocked},
	"replace.UndoError":                {&replace.UndoError{Err: &replace.InUseError{}}, codeIncomplete},
	"replace.UnknownJournalError":      {&replace.UnknownJournalError{}, codeLocked},
	"volumebackup.LimitError":          {&volumebackup.LimitError{}, codeTooLarge},
	"volumebackup.FullError":           {&volumebackup.FullError{Err: cerrdefs.ErrResourceExhausted}, codeNoSpace},
	"volumebackup.JournalVersionError": {&volumebackup.JournalVersionError{}, codeInternal},
	"volumebackup.LockedError":         {&volumebackup.LockedError{}, codeLocked},
	"volumebackup.MissingError":        {&volumebackup.MissingError{Err: cerrdefs.ErrNotFound}, codeDamaged},
	"volumebackup.NoStoreError":        {&volumebackup.NoStoreError{}, codeDamaged},
	"volumebackup.PausedError":         {&volumebackup.PausedError{}, codeLocked},
	"protocol.Error":                   {&protocol.Error{Class: protocol.Damaged}, codeDamaged},
	"protocol.VersionError":            {&protocol.VersionError{}, codeInternal},
	"archive.TooLargeError":            {&volumebackup.LimitError{}, codeTooLarge},
	"store.DamagedError":               {&protocol.Error{Class: protocol.Damaged}, codeDamaged},
	"store.VersionError":               {&protocol.Error{Class: protocol.NewerVersion}, codeInternal},
}

// A new error type needs a decision: a row in errorCodes, or codeInternal here.
func TestEveryErrorTypeHasACode(t *testing.T) {
	found := map[string]bool{}
	for _, root := range []string{"../labels", "../snapshot", "../volumebackup"} {
		assert.NilError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, name := range errorTypesIn(t, path) {
				found[name] = true
				_, known := exportedErrors[name]
				assert.Check(t, known, "%s in %s has no code: add it to exportedErrors", name, path)
			}
			return nil
		}))
	}
	for _, name := range slices.Sorted(maps.Keys(exportedErrors)) {
		assert.Check(t, found[name], "%s is gone", name)
		row := exportedErrors[name]
		assert.Check(t, codeOf(row.err) == row.code, "%s: %s", name, codeOf(row.err))
		wrapped := fmt.Errorf("create: %w", errors.Join(errors.New("first"), row.err))
		assert.Check(t, codeOf(wrapped) == row.code, "%s, wrapped: %s", name, codeOf(wrapped))
	}
}

// errorTypesIn are the exported types of a file whose name says that they are errors, with their package.
func errorTypesIn(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	assert.NilError(t, err)
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.TypeSpec); ok && spec.Name.IsExported() && strings.HasSuffix(spec.Name.Name, "Error") {
			if _, isStruct := spec.Type.(*ast.StructType); isStruct {
				names = append(names, file.Name.Name+"."+spec.Name.Name)
			}
		}
		return true
	})
	return names
}

func TestCodesOfOtherErrors(t *testing.T) {
	docker, err := client.NewClientWithOpts(client.WithHost("tcp://127.0.0.1:1"))
	assert.NilError(t, err)
	_, refused := docker.Ping(t.Context())
	for name, tc := range map[string]struct {
		err  error
		want errorCode
	}{
		"anything":                     {errors.New("it broke"), codeInternal},
		"the engine's not found":       {fmt.Errorf("inspect image: %w", cerrdefs.ErrNotFound), codeNotFound},
		"the engine's conflict":        {fmt.Errorf("start: %w", cerrdefs.ErrConflict), codeInUse},
		"the engine's bad request":     {cerrdefs.ErrInvalidArgument, codeUsage},
		"nobody listens":               {fmt.Errorf("list: %w", refused), codeUnreachable},
		"no answer in time":            {fmt.Errorf("list: %w", context.DeadlineExceeded), codeUnreachable},
		"no context":                   {unreachable{cerrdefs.ErrNotFound}, codeUnreachable},
		"cancelled":                    {fmt.Errorf("list: %w", context.Canceled), codeInterrupted},
		"answered with no":             {errDeclined, codeInterrupted},
		"a signal, with what followed": {cli.StatusError{StatusCode: 130, Cause: &catalog.NotFoundError{}}, codeInterrupted},
		"wrong options":                {cli.StatusError{StatusCode: 125, Cause: errors.New("unknown flag")}, codeUsage},
		"an empty argument":            {checkContainer(""), codeUsage},
		"incomplete":                   {fmt.Errorf("container is %w", errIncomplete), codeIncomplete},
		"not all could be rolled back": {errors.Join(cerrdefs.ErrConflict, &replace.UndoError{Err: cerrdefs.ErrNotFound}), codeIncomplete},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, codeOf(tc.err), tc.want) })
	}
}

// docs/json.md has a row for each code.
func TestEveryCodeIsDocumented(t *testing.T) {
	source, err := os.ReadFile("errorcode.go")
	assert.NilError(t, err)
	var codes, documented []string
	for _, found := range regexp.MustCompile(`code\w+ +errorCode = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		codes = append(codes, found[1])
	}
	for _, found := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| [^|]+ \\|$").FindAllStringSubmatch(sections(t)["An error"], -1) {
		documented = append(documented, found[1])
	}
	assert.Assert(t, len(codes) > 10)
	assert.DeepEqual(t, documented, codes)
}
