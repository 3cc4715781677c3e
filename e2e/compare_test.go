//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// checkSame compares two inspections; they may differ where one of the patterns matches.
func checkSame(t *testing.T, before, after map[string]string, allowed []string) {
	t.Helper()
	for _, pointer := range differing(before, after) {
		matches := slices.ContainsFunc(allowed, func(pattern string) bool {
			ok, err := path.Match(pattern, pointer)
			assert.NilError(t, err)
			return ok
		})
		assert.Check(t, matches, "%s was %q, is %q", pointer, before[pointer], after[pointer])
	}
}

// leaves are the values that docker inspect shows of a container, by JSON pointer. Null and an empty list count as nothing.
func leaves(t *testing.T, container string) map[string]string {
	t.Helper()
	out, err := docker("container", "inspect", container)
	assert.NilError(t, err)
	var found []map[string]any
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.UseNumber()
	assert.NilError(t, decoder.Decode(&found))
	values := map[string]string{}
	delete(found[0], "ExecIDs") // a health check that runs at this moment
	collect(values, "", found[0])
	id := values["/Id"][:12]
	for pointer, value := range values { // a name that an engine adds by itself
		if before, ok := strings.CutSuffix(pointer, "/"+id); ok {
			delete(values, pointer)
			values[before+"/ID"] = strings.ReplaceAll(value, id, "ID")
		}
	}
	return values
}

func collect(into map[string]string, pointer string, value any) {
	switch value := value.(type) {
	case nil:
	case map[string]any:
		if len(value) == 0 {
			into[pointer] = "{}"
		}
		for key, child := range value {
			collect(into, pointer+"/"+escape(key), child)
		}
	case []any:
		for i, child := range value {
			step := fmt.Sprint(i)
			if mount, ok := child.(map[string]any); ok && pointer == "/Mounts" { // in no order
				step = escape(fmt.Sprint(mount["Destination"]))
			}
			if list := path.Base(pointer); list == "Aliases" || list == "DNSNames" { // sets
				step = escape(fmt.Sprint(child))
			}
			collect(into, pointer+"/"+step, child)
		}
	default:
		into[pointer] = fmt.Sprint(value)
	}
}

func escape(step string) string { return strings.ReplaceAll(step, "/", "~1") }

func differing(a, b map[string]string) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	var found []string
	for pointer := range all {
		valueA, inA := a[pointer]
		valueB, inB := b[pointer]
		if inA != inB || valueA != valueB {
			found = append(found, pointer)
		}
	}
	slices.Sort(found)
	return found
}
