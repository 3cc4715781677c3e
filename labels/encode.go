package labels

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Encode turns a record into image labels: every key of the schema, and one for
// each of the user's own. It fails on a record that [Decode] would refuse.
func Encode(r Record) (map[string]string, error) {
	config, err := encodeJSON(KeyConfig, r.Config)
	if err != nil {
		return nil, err
	}
	tags, err := encodeList(KeyTags, r.Tags)
	if err != nil {
		return nil, err
	}
	mounts, err := encodeList(KeyMounts, r.Mounts)
	if err != nil {
		return nil, err
	}
	attachments, err := encodeList(KeyAttachments, r.Attachments)
	if err != nil {
		return nil, err
	}
	out := map[string]string{
		KeyVersion:          SchemaVersion,
		KeyID:               string(r.ID),
		KeyName:             r.Name,
		KeyDescription:      r.Description,
		KeyCreated:          encodeTime(r.Created),
		KeyTags:             tags,
		KeyTrigger:          string(r.Trigger),
		KeyRunID:            r.RunID,
		KeyStepID:           r.StepID,
		KeyParent:           string(r.Parent),
		KeyGroup:            r.Group,
		KeyContainerID:      r.Container.ID,
		KeyContainerName:    r.Container.Name,
		KeyContainerState:   string(r.Container.State),
		KeyContainerImage:   r.Container.Image,
		KeyContainerImageID: r.Container.ImageID,
		KeyEngineID:         r.EngineID,
		KeyPlatform:         r.Platform,
		KeyConfig:           config,
		KeyMounts:           mounts,
		KeyAttachments:      attachments,
		KeySize:             strconv.FormatInt(r.Size, 10),
		KeyExpires:          encodeTime(r.Expires),
		KeyPinned:           encodeBool(r.Pinned),
		KeyStore:            r.Store,
		KeyStoreID:          r.StoreID,
		KeySeal:             r.Seal,
	}
	for key, value := range r.Meta {
		out[PrefixMeta+key] = value
	}
	if _, err := Decode(out); err != nil {
		return nil, err
	}
	return out, nil
}

func encodeTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
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
