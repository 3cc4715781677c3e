package commands

import (
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"text/template"
	"time"

	"github.com/docker/cli/cli/command/formatter"
	"github.com/docker/cli/templates"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// unknownField matches the error of a template with a field that the type of a result does not have.
var unknownField = regexp.MustCompile(`can't evaluate field (\S+) in type (\S+)`)

// checkFields executes a template on samples of the types that it may get. It fails if each lacks a field.
func checkFields(t *template.Template, results []any) error {
	var wrong error
	for _, result := range results {
		filled := reflect.New(reflect.TypeOf(result)).Elem()
		fillSample(filled, sampleDepth)
		err := fieldError(t.Execute(io.Discard, filled.Interface()), result)
		if err == nil {
			err = fieldError(t.Execute(io.Discard, result), result)
		}
		if err == nil {
			return nil
		}
		if wrong == nil {
			wrong = err
		}
	}
	return wrong
}

// fieldError returns an error for a template with a field that does not exist. All other errors depend on the values.
func fieldError(err error, result any) error {
	if err == nil {
		return nil
	}
	found := unknownField.FindStringSubmatch(err.Error())
	if found == nil || takesKeys(result, found[1], found[2]) {
		return nil
	}
	return fmt.Errorf("the result has no field %s; --format json shows its fields", found[1])
}

// takesKeys reports whether a template may name a field of a result by its JSON key, as in docker inspect.
func takesKeys(result any, name, typeName string) bool {
	t := reflect.TypeOf(result)
	switch result.(type) {
	case details, runDetails:
		return typeName != t.String() || hasKey(t, name)
	}
	return false
}

// hasKey reports whether a struct has a field with this JSON key.
func hasKey(t reflect.Type, key string) bool {
	for _, field := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag == key {
			return true
		}
	}
	return false
}

// sampleDepth is how deep samples of results are filled.
const sampleDepth = 8

// fillSample gives every field a value, so that a template reaches all of its branches and ranges.
func fillSample(v reflect.Value, depth int) {
	if depth == 0 || !v.CanSet() && v.Kind() != reflect.Struct {
		return
	}
	switch v.Kind() { //nolint:exhaustive // the others stay zero
	case reflect.Struct:
		for _, field := range v.Fields() {
			fillSample(field, depth-1)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillSample(v.Elem(), depth-1)
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 { // JSON stays empty
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fillSample(v.Index(0), depth-1)
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	}
}

// checkListFormat refuses a template of ls, before the engine is asked.
func checkListFormat(format string) error {
	return checkTableFormat(format, func(c formatter.Context) error {
		if err := writeList(c, make([]catalog.Snapshot, 1), time.Time{}); err == nil {
			return nil
		}
		return writeLost(c, make([]archives.Lost, 1), time.Time{})
	})
}

// checkRunsFormat refuses a template of runs ls.
func checkRunsFormat(format string) error {
	return checkTableFormat(format, func(c formatter.Context) error { return writeRuns(c, make([]session.Session, 1), nil, time.Time{}) })
}

func checkTableFormat(format string, write func(formatter.Context) error) error {
	if _, err := templates.Parse(strings.TrimPrefix(format, formatter.TableFormatKey)); err != nil {
		return err
	}
	return fieldError(write(formatter.Context{Output: io.Discard, Format: formatter.Format(format)}), nil)
}
