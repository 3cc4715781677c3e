package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/docker/cli/cli/streams"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// directions are the characters that change the direction of the text around them, besides U+061C.
var directions = []rune{0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069}

func TestWhatTerminalsActOnIsShown(t *testing.T) {
	unsafe := append([]rune{0x061c, 0x2028, 0x2029}, directions...)
	for r := rune(0); r <= 0x9f; r++ {
		if unicode.IsControl(r) {
			unsafe = append(unsafe, r)
		}
	}
	assert.Equal(t, len(unsafe), 32+1+32+3+len(directions))
	for _, r := range unsafe {
		shown := fmt.Sprintf(`a\u%04xb`, r)
		assert.Equal(t, oneLine("a"+string(r)+"b"), shown)
		if r != '\n' && r != '\t' {
			assert.Equal(t, safeText("a"+string(r)+"b"), shown)
		}
	}
	for text, want := range map[string]string{
		"":                          "",
		"one\ttwo\nthree":           "one\ttwo\nthree",
		"größe 日本 e\u0301 👩\u200d🚀": "größe 日本 e\u0301 👩\u200d🚀",
		"\xff\xc3(\xe2\x82":         `\xff\xc3(\xe2\x82`,
		"\xc2\x9b31m":               `\u009b31m`, // C1 as UTF-8
		"\x9b31m":                   `\x9b31m`,
		"\xed\xa0\x80\ufffd":        `\xed\xa0\x80` + "\ufffd",
		`\u001b`:                    `\u001b`,
	} {
		assert.Equal(t, safeText(text), want)
	}
	assert.Equal(t, indented("one\nWARNING: two\n"), "one\n  WARNING: two")
}

// What is written is still the same JSON.
func TestTerminalsKeepJSON(t *testing.T) {
	var out bytes.Buffer
	want := map[string]string{"a": evil, `b\n"`: "\t\n\\u001b"}
	assert.NilError(t, writeJSON(terminal{streams.NewOut(&out)}, want))
	var got map[string]string
	assert.NilError(t, json.Unmarshal(out.Bytes(), &got))
	assert.DeepEqual(t, got, map[string]string{"a": strings.ToValidUTF8(evil, "\ufffd"), `b\n"`: "\t\n\\u001b"})
	checkHarmless(t, out.String())
}

// evil is what others may call their things.
const evil = "x\x1b]0;title\a\x1b[2K\rWARNING: all is well\u009b31m\u202ecod.exe\u2066\x7f\xffy"

// forged begins a line of its own.
const forged = evil + "\nforged"

// poison makes every text in a value evil.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(forged)
		if v.Type() != reflect.TypeFor[string]() && v.Type() != reflect.TypeFor[protocol.Path]() {
			v.SetString(evil) // IDs and the like are checked when they are read
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		poison(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				poison(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			raw, err := json.Marshal(map[string]any{"Labels": map[string]string{forged: forged}, "Env": []string{forged}})
			if err != nil {
				panic(err)
			}
			v.SetBytes(raw)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		poison(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		poison(key)
		poison(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	}
}

func poisoned[T any]() (v T) {
	poison(reflect.ValueOf(&v).Elem())
	return v
}

// evilEngine answers everything, and every text in it is evil.
type evilEngine struct {
	fakeEngine
	fails error
}

func (e *evilEngine) tell(p plan.Progress) {
	for _, level := range []plan.Level{plan.LevelStatus, plan.LevelNote, plan.LevelWarning} {
		p(plan.Event{Level: level, Phase: evil, Text: forged})
	}
}

func (e *evilEngine) Create(_ context.Context, _ capture.Options, p plan.Progress) (capture.Created, error) {
	e.tell(p)
	return poisoned[capture.Created](), e.fails
}

func (e *evilEngine) Restore(_ context.Context, _ runconfig.RestoreOptions, p plan.Progress) (build.Restored, error) {
	e.tell(p)
	return poisoned[build.Restored](), e.fails
}

func (e *evilEngine) Replace(_ context.Context, _ replace.Options, p plan.Progress) (replace.Result, error) {
	e.tell(p)
	return poisoned[replace.Result](), e.fails
}

func (e *evilEngine) List(_ context.Context, _ catalog.ListOptions, p plan.Progress) ([]catalog.Snapshot, error) {
	e.tell(p)
	return poisoned[[]catalog.Snapshot](), e.fails
}

func (e *evilEngine) Resolve(context.Context, string) (catalog.Snapshot, error) {
	return poisoned[catalog.Snapshot](), e.fails
}

func (e *evilEngine) Remove(_ context.Context, words []string, _ removal.Options, p plan.Progress) []removal.Removal {
	e.tell(p)
	return []removal.Removal{{Word: words[0], Snapshot: poisoned[catalog.Snapshot](), Err: e.fails}}
}

func (e *evilEngine) Recover(_ context.Context, _ string, p plan.Progress) ([]replace.Recovery, error) {
	e.tell(p)
	return poisoned[[]replace.Recovery](), e.fails
}

func (e *evilEngine) Entries(_ context.Context, _ catalog.Snapshot, _ labels.Mount, _ archives.Detail, visit func(volumebackup.Entry)) error {
	visit(poisoned[volumebackup.Entry]())
	return e.fails
}

// checkHarmless fails for everything that a terminal would act on.
func checkHarmless(t *testing.T, text string) {
	t.Helper()
	assert.Assert(t, utf8.ValidString(text), "%q", text)
	bad := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && acts(r) })
	assert.Equal(t, bad, -1, "%q", text)
}

// Whatever others have put into names, paths and errors, no command passes it on to the terminal, and only errors and
// templates show the ends of lines in it as such.
func TestNoCommandPassesOnWhatTerminalsActOn(t *testing.T) {
	template := []string{"--format", "{{.}}"}
	for _, args := range [][]string{
		{"create", "web"},
		{"create", "--progress", "json", "web"},
		{"create", "-q", "web"},
		append([]string{"create", "web"}, template...),
		{"create", "--format", "json", "web"},
		{"restore", "x"},
		{"restore", "--dry-run", "x"},
		append([]string{"restore", "--dry-run", "x"}, template...),
		{"restore", "--dry-run", "--format", "json", "x"},
		{"restore", "--replace", "--force", "x"},
		{"restore", "--replace", "--dry-run", "x"},
		{"ls"},
		{"ls", "--no-trunc"},
		{"ls", "-q"},
		{"ls", "--format", "table {{.Name}} {{.Tags}} {{.Meta}} {{.Labels}} {{.Group}} {{.Description}}"},
		{"ls", "--format", "{{.Name}} {{.Description}} {{.Tags}} {{.Labels}}"},
		{"ls", "--format", "json"},
		{"inspect", "x"},
		append([]string{"inspect", "x"}, template...),
		{"inspect", "--files", "x"},
		{"inspect", "--files", "--format", "json", "x"},
		{"rm", "x", "y"},
		append([]string{"rm", "x"}, template...),
		{"recover"},
		{"recover", "--format", "json"},
		{"recover", evil},
	} {
		for name, fails := range map[string]error{
			"": nil, " fails": errors.New(forged),
			" with problems": &plan.ProblemsError{Problems: []plan.Problem{poisoned[plan.Problem]()}},
			" is stuck":      &replace.UndoError{Err: errors.New(forged), Container: forged},
		} {
			t.Run(strings.Join(args, " ")+name, func(t *testing.T) {
				f := newFixture()
				f.evil = &evilEngine{fails: fails}
				f.run(t, args...)
				assert.Assert(t, f.stdout.Len()+f.stderr.Len() > 0)
				checkHarmless(t, f.stdout.String())
				checkHarmless(t, f.stderr.String())
				if fails == nil && (len(args) < 3 || args[len(args)-2] != "--format") {
					assert.Assert(t, !is.Contains(f.stdout.String()+f.stderr.String(), "\nforged")().Success(), "%s%s", &f.stdout, &f.stderr)
				}
			})
		}
	}
}

func TestTheLineOfProgressIsHarmless(t *testing.T) {
	var out bytes.Buffer
	clock := &fakeClock{time: noon}
	line := &ttyLine{out: terminal{streams.NewOut(&out)}}
	play(&liveDisplay{out: line.out, clock: clock.clock(), line: line, interval: ttyInterval}, clock, status(forged), 2*patience, warning(forged))
	assert.Assert(t, is.Contains(out.String(), eraseLine+"doing x"))
	checkHarmless(t, strings.ReplaceAll(out.String(), eraseLine, ""))
}

func TestWrongOptionsAreHarmless(t *testing.T) {
	f := newFixture()
	assert.Equal(t, f.run(t, "create", "--pause="+evil, "web"), 125)
	checkHarmless(t, f.stderr.String())
}
