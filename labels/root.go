package labels

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Root returns the SHA-256, in hex, that stands for the state that a snapshot holds:
// its layers, the run configuration, the content of volumes, and the attachments.
// Equal states have equal roots, whatever the snapshots are called and whenever they
// were taken. layers are the digests of the image's layers, from the lowest to the
// highest.
//
// It is the SHA-256 of these lines, each of which ends with a newline:
//
//	cua-root 1
//	layer DIGEST                  for each layer
//	config SHA256                 of the configuration as canonical JSON
//	volume DESTINATION ROOT       for each mount with an archive, sorted
//	attachment NAME SHA256        for each attachment, sorted
//
// DESTINATION and NAME are JSON strings. The canonical JSON of the configuration is an
// object with the keys Config, HostConfig and NetworkingConfig, without blanks, with
// all keys sorted, as jq -cS prints it.
func Root(r Record, layers []string) (string, error) {
	config, err := canonical(r.Config)
	if err != nil {
		return "", fmt.Errorf("root of snapshot %s: configuration: %w", r.ID, err)
	}
	var text strings.Builder
	text.WriteString("cua-root 1\n")
	for _, digest := range layers {
		fmt.Fprintf(&text, "layer %s\n", digest)
	}
	fmt.Fprintf(&text, "config %x\n", sha256.Sum256(config))
	var parts []string
	for _, m := range r.Mounts {
		if m.Archive != nil {
			parts = append(parts, fmt.Sprintf("volume %s %s\n", quoted(m.Destination), m.Archive.Root))
		}
	}
	slices.Sort(parts)
	text.WriteString(strings.Join(parts, ""))
	parts = nil
	for _, a := range r.Attachments {
		parts = append(parts, fmt.Sprintf("attachment %s %s\n", quoted(a.Name), a.SHA256))
	}
	slices.Sort(parts)
	text.WriteString(strings.Join(parts, ""))
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:]), nil
}

// canonical returns the configuration as JSON with sorted keys and without blanks.
// Numbers stay as they are written.
func canonical(c Config) ([]byte, error) {
	whole := map[string]any{}
	for key, part := range map[string]json.RawMessage{"Config": c.Config, "HostConfig": c.HostConfig, "NetworkingConfig": c.NetworkingConfig} {
		if len(part) == 0 {
			part = json.RawMessage("null")
		}
		decoder := json.NewDecoder(bytes.NewReader(part))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		whole[key] = value
	}
	return unescaped(whole)
}

// unescaped encodes a value as JSON with <, > and & as they are.
func unescaped(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// quoted returns text as a JSON string.
func quoted(text string) string {
	out, _ := unescaped(text) // a string can always be encoded
	return string(out)
}
