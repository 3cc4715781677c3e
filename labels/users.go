package labels

import (
	"maps"
	"strings"
)

// IsOurs tells whether only this program sets a label.
func IsOurs(key string) bool {
	return strings.HasPrefix(key, Prefix) && !strings.HasPrefix(key, PrefixPolicy)
}

// Users are those labels that users set: all but ours.
func Users(all map[string]string) map[string]string {
	kept := maps.Clone(all)
	maps.DeleteFunc(kept, func(key, _ string) bool { return IsOurs(key) })
	return kept
}
