package labels

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Seal authenticates a record: an HMAC, in hex, of everything else that its
// labels say, under a key that only the engine has where it was made.
func Seal(r Record, key []byte) (string, error) {
	r.Seal = ""
	all, err := Encode(r)
	if err != nil {
		return "", fmt.Errorf("seal record: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		// Engines replace each byte that is no UTF-8, as this conversion does.
		value := string([]rune(all[name]))
		_, _ = fmt.Fprintf(mac, "%d:%s%d:%s", len(name), name, len(value), value)
	}
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// IsSealed tells whether a record was sealed with the key.
func IsSealed(r Record, key []byte) bool {
	want, err := Seal(r, key)
	return err == nil && hmac.Equal([]byte(want), []byte(r.Seal))
}
