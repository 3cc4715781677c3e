package labels

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
)

// Encode turns a record into image labels: every key of the schema, and one for
// each of the user's own. It fails on a record that [Decode] would refuse.
func Encode(r Record) (map[string]string, error) {
	out, err := encodeLists(r)
	if err != nil {
		return nil, err
	}
	if out[KeyConfig], err = encodeConfig(r); err != nil {
		return nil, err
	}
	maps.Copy(out, map[string]string{
		KeyVersion:          SchemaVersion,
		KeyID:               string(r.ID),
		KeyName:             r.Name,
		KeyKind:             string(r.Kind),
		KeyLine:             r.Line,
		KeyDescription:      r.Description,
		KeyCreated:          FormatTime(r.Created),
		KeyTrigger:          string(r.Trigger),
		KeyRunID:            r.RunID,
		KeyStepID:           r.StepID,
		KeyNumber:           encodeNumber(r.Number),
		KeyParent:           string(r.Parent),
		KeyRestores:         string(r.Restores),
		KeyGroup:            r.Group,
		KeyContainerID:      r.Container.ID,
		KeyContainerName:    r.Container.Name,
		KeyContainerState:   string(r.Container.State),
		KeyContainerHealth:  string(r.Container.Health),
		KeyContainerImage:   r.Container.Image,
		KeyContainerImageID: r.Container.ImageID,
		KeyEngineID:         r.EngineID,
		KeyPlatform:         r.Platform,
		KeySize:             strconv.FormatInt(r.Size, 10),
		KeyExpires:          FormatTime(r.Expires),
		KeyPinned:           encodeBool(r.Pinned),
		KeyStore:            r.Store,
		KeyStoreID:          r.StoreID,
		KeyUpdated:          FormatTime(r.Updated),
		KeyIdempotencyKey:   r.IdempotencyKey,
		KeyUsage:            encodeUsage(r.Usage),
		KeyUsageLow:         encodeUsage(r.UsageLow),
		KeySeal:             r.Seal,
	})
	for key, value := range r.Meta {
		out[PrefixMeta+key] = value
	}
	if _, err := Decode(out); err != nil {
		return nil, err
	}
	return out, nil
}

// encodeLists writes the labels that are lists.
func encodeLists(r Record) (map[string]string, error) {
	out := map[string]string{}
	for key, encode := range map[string]func(key string) (string, error){
		KeyTags:        func(key string) (string, error) { return encodeList(key, r.Tags) },
		KeyMounts:      func(key string) (string, error) { return encodeList(key, r.Mounts) },
		KeyAttachments: func(key string) (string, error) { return encodeList(key, r.Attachments) },
		KeyWhiteouts:   func(key string) (string, error) { return encodeList(key, r.Whiteouts) },
		KeyScope:       func(string) (string, error) { return encodeScope(r.Scope) },
		KeyFormer:      func(key string) (string, error) { return encodeList(key, r.Former) },
	} {
		text, err := encode(key)
		if err != nil {
			return nil, err
		}
		out[key] = text
	}
	return out, nil
}

// encodeConfig writes the run configuration, which a state has not.
func encodeConfig(r Record) (string, error) {
	if r.Kind == KindState && r.Config.Config == nil && r.Config.HostConfig == nil && r.Config.NetworkingConfig == nil && r.Config.Peers == nil {
		return "", nil
	}
	return encodeJSON(KeyConfig, r.Config)
}

// FormatTime writes a time as every label does.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func encodeNumber(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

func encodeBool(b bool) string {
	if b {
		return "true"
	}
	return ""
}

func encodeList[T any](key string, list []T) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	return encodeJSON(key, list)
}

// encodeJSON leaves <, > and & as they are: escaped, they could make a label
// longer than Decode takes.
func encodeJSON(key string, v any) (string, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "", fmt.Errorf("encode label %s: %w", key, err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
