package commands

import (
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// resultSchema describes what a tool returns: one of these structs of docs/json.md, or the failure that each
// tool may return. Keys may be added to them, so others are allowed.
func resultSchema(results ...any) *jsonschema.Schema {
	either := &jsonschema.Schema{Type: "object"}
	for _, result := range append(results, failure{}) {
		s, err := jsonschema.ForType(reflect.TypeOf(result), nil)
		if err != nil {
			panic(fmt.Sprintf("describe %T: %v", result, err)) // a mistake in this program, which every test of the server finds
		}
		allowMore(s)
		either.AnyOf = append(either.AnyOf, s)
	}
	return either
}

// allowMore allows keys that a struct does not have, also in what it holds.
func allowMore(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Properties) > 0 {
		s.AdditionalProperties = nil
	}
	for _, property := range s.Properties {
		allowMore(property)
	}
	allowMore(s.Items)
}
