package labels

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Limits on what an image may claim. They are far above what real containers
// have, and keep a hostile image from costing more than its own size.
const (
	maxValue  = 4 << 20 // bytes of one label
	maxMounts = 4096
	maxTags   = 1024
	// MaxWhiteouts is how many a record lists: more would only be more of the same.
	MaxWhiteouts = 100
	maxFormer    = 10_000 // one for each container that was made of a snapshot
	maxMeta      = 1024
	maxMetaKey   = 256
)

// containerDigits is how many hex digits the ID of a container has.
const containerDigits = 64

// ErrAbsent is returned for labels that do not describe a snapshot at all.
var ErrAbsent = errors.New("no snapshot labels")

// FieldError is returned for labels that claim to describe a snapshot but
// cannot be trusted. Value is cut to a length that fits in a message.
type FieldError struct {
	Key   string
	Value string
	Err   error
}

// Error names the label, its value and what is wrong with it.
func (e *FieldError) Error() string {
	return fmt.Sprintf("label %s=%q: %v", e.Key, e.Value, e.Err)
}

// Unwrap returns what is wrong with the value.
func (e *FieldError) Unwrap() error { return e.Err }

// Decode reads the labels of an image. It returns [ErrAbsent] if they do not
// describe a snapshot, and a [*FieldError] for the first value that is not what
// [Encode] would write.
func Decode(image map[string]string) (Record, error) {
	if image[KeyID] == "" {
		return Record{}, ErrAbsent
	}
	d := decoder{image: image}
	if v := image[KeyVersion]; v != SchemaVersion {
		d.fail(KeyVersion, fmt.Errorf("unknown schema version, this program reads version %s", SchemaVersion))
		return Record{}, d.err
	}
	kind := oneOf(&d, KeyKind, []Kind{KindContainer, KindState})
	r := Record{
		ID:             d.id(KeyID),
		Kind:           kind,
		Line:           d.line(kind),
		Name:           d.name(),
		Description:    d.text(KeyDescription),
		Created:        d.time(KeyCreated),
		Trigger:        oneOf(&d, KeyTrigger, Triggers()),
		RunID:          d.text(KeyRunID),
		StepID:         d.text(KeyStepID),
		Number:         d.number(),
		Parent:         d.id(KeyParent),
		Restores:       d.id(KeyRestores),
		Scope:          d.scope(),
		Group:          d.text(KeyGroup),
		Container:      d.container(kind),
		EngineID:       d.text(KeyEngineID),
		Platform:       d.text(KeyPlatform),
		Config:         d.config(kind),
		Size:           d.size(),
		Expires:        d.time(KeyExpires),
		Pinned:         d.bool(KeyPinned),
		Meta:           d.meta(),
		Store:          d.text(KeyStore),
		StoreID:        d.text(KeyStoreID),
		Updated:        d.time(KeyUpdated),
		Seal:           d.text(KeySeal),
		IdempotencyKey: d.idempotencyKey(),
		Usage:          d.usage(KeyUsage),
		UsageLow:       d.usageLow(),
	}
	r.Tags = list[string](&d, KeyTags, maxTags)
	r.Mounts = d.mounts()
	r.Attachments = d.attachments()
	r.Former = d.former()
	r.Whiteouts = d.whiteouts()
	if r.Created.IsZero() {
		d.fail(KeyCreated, errors.New("is missing"))
	}
	if d.err != nil {
		return Record{}, d.err
	}
	return r, nil
}

// decoder remembers the first error, so that Decode reads like a table.
type decoder struct {
	image map[string]string
	err   error
}

func (d *decoder) fail(key string, err error) {
	if d.err != nil {
		return
	}
	const shown = 64
	value := d.image[key]
	if len(value) > shown {
		value = value[:shown] + "…"
	}
	d.err = &FieldError{Key: key, Value: value, Err: err}
}

func (d *decoder) text(key string) string {
	value := d.image[key]
	if len(value) > maxValue {
		d.fail(key, fmt.Errorf("longer than %d bytes", maxValue))
		return ""
	}
	return value
}

func (d *decoder) id(key string) ID {
	value := d.text(key)
	if value == "" {
		return ""
	}
	id, err := ParseID(value)
	if err != nil {
		d.fail(key, err)
	}
	return id
}

func (d *decoder) name() string {
	value := d.text(KeyName)
	if value == "" {
		return ""
	}
	if err := CheckName(value); err != nil {
		d.fail(KeyName, err)
	}
	return value
}

// containerID refuses names: whoever replaces the container that a snapshot was taken
// of goes by this.
func (d *decoder) containerID() string {
	value := d.text(KeyContainerID)
	if !IsDigits(value, containerDigits, containerDigits) {
		d.fail(KeyContainerID, fmt.Errorf("not %d hex digits", containerDigits))
	}
	return value
}

func (d *decoder) containerName() string {
	value := d.text(KeyContainerName)
	if !IsContainerName(value) {
		d.fail(KeyContainerName, errors.New("not a container name"))
	}
	return value
}

func (d *decoder) time(key string) time.Time {
	value := d.text(key)
	if value == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, value)
	t = t.UTC()
	if year := t.Year(); err != nil || year < 0 || year > 9999 { // a zone can move it out of what RFC 3339 can write
		d.fail(key, errors.New("not a time in RFC 3339"))
	}
	return t
}

func (d *decoder) bool(key string) bool {
	value := d.text(key)
	if value != "" && value != "true" {
		d.fail(key, errors.New("neither true nor empty"))
	}
	return value == "true"
}

// number reads the number of a snapshot within its run.
func (d *decoder) number() *int {
	text := d.text(KeyNumber)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != text {
		d.fail(KeyNumber, errors.New("not a number from 0"))
		return nil
	}
	number := int(n)
	return &number
}

func (d *decoder) size() int64 {
	n, err := strconv.ParseInt(d.text(KeySize), 10, 64)
	if err != nil || n < 0 {
		d.fail(KeySize, errors.New("not a number of bytes"))
	}
	return n
}

func (d *decoder) config(kind Kind) Config {
	var c Config
	if kind == KindState {
		return c
	}
	d.json(KeyConfig, &c)
	for _, part := range []json.RawMessage{c.Config, c.HostConfig} {
		if !isObject(part) {
			d.fail(KeyConfig, errors.New("lacks the objects Config and HostConfig"))
		}
	}
	if len(c.NetworkingConfig) > 0 && !isObject(c.NetworkingConfig) {
		d.fail(KeyConfig, errors.New("NetworkingConfig is not an object"))
	}
	return c
}

func isObject(m json.RawMessage) bool {
	return strings.HasPrefix(strings.TrimSpace(string(m)), "{")
}

func (d *decoder) mounts() []Mount {
	mounts := list[Mount](d, KeyMounts, maxMounts)
	for _, m := range mounts {
		switch {
		case m.Destination == "" || m.Type == "":
			d.fail(KeyMounts, errors.New("a mount lacks its type or destination"))
		case m.Archive != nil && m.Skipped != "":
			d.fail(KeyMounts, fmt.Errorf("mount %s is both archived and skipped", m.Destination))
		case m.Archive != nil:
			d.archive(m)
		}
	}
	return mounts
}

func (d *decoder) archive(m Mount) {
	a := m.Archive
	if root, err := hex.DecodeString(a.Root); err != nil || len(root) != 32 {
		d.fail(KeyMounts, fmt.Errorf("mount %s: root is not a SHA-256", m.Destination))
	}
	if a.Entries < 0 || a.Bytes < 0 || a.Stored < 0 || a.Index < 0 || a.Index > maxMounts {
		d.fail(KeyMounts, fmt.Errorf("mount %s: a number is out of range", m.Destination))
	}
	if err := a.Excluded.Check(); err != nil {
		d.fail(KeyMounts, fmt.Errorf("mount %s: exclusions: %w", m.Destination, err))
	}
}

const maxIdempotencyKey = 255

// CheckIdempotencyKey tells why a key cannot be that of a request.
func CheckIdempotencyKey(key string) error {
	if key == "" || len(key) > maxIdempotencyKey || strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("invalid idempotency key %.32q: use up to %d bytes that can be printed", key, maxIdempotencyKey)
	}
	return nil
}

func (d *decoder) idempotencyKey() string {
	key := d.text(KeyIdempotencyKey)
	if key == "" {
		return ""
	}
	if err := CheckIdempotencyKey(key); err != nil {
		d.fail(KeyIdempotencyKey, err)
	}
	return key
}

// former are IDs of images, each as the engine writes it.
func (d *decoder) former() []string {
	all := list[string](d, KeyFormer, maxFormer)
	for _, id := range all {
		if digits, ok := strings.CutPrefix(id, "sha256:"); !ok || !IsDigits(digits, sha256Digits, sha256Digits) {
			d.fail(KeyFormer, errors.New("not a list of image IDs"))
		}
	}
	return all
}

// whiteouts are absolute paths.
func (d *decoder) whiteouts() []string {
	all := list[string](d, KeyWhiteouts, MaxWhiteouts)
	for _, path := range all {
		if !strings.HasPrefix(path, "/") {
			d.fail(KeyWhiteouts, errors.New("not a list of absolute paths"))
		}
	}
	return all
}

var metaPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]*$`)

// CheckMetaKey tells why key cannot follow [PrefixMeta].
func CheckMetaKey(key string) error {
	if len(key) > maxMetaKey || !metaPattern.MatchString(key) {
		return fmt.Errorf("invalid key %q: use up to %d letters, digits, '_', '.', '/' and '-'", key, maxMetaKey)
	}
	return nil
}

func (d *decoder) meta() map[string]string {
	var meta map[string]string
	for full := range d.image {
		key, ok := strings.CutPrefix(full, PrefixMeta)
		value := d.text(full)
		if !ok || value == "" {
			continue
		}
		if err := CheckMetaKey(key); err != nil {
			d.fail(full, err)
		}
		if meta == nil {
			meta = map[string]string{}
		}
		meta[key] = value
	}
	if len(meta) > maxMeta {
		d.fail(PrefixMeta+"*", fmt.Errorf("more than %d keys", maxMeta))
	}
	return meta
}

func (d *decoder) json(key string, v any) {
	if err := json.Unmarshal([]byte(d.text(key)), v); err != nil {
		d.fail(key, fmt.Errorf("broken JSON: %w", err))
	}
}

func list[T any](d *decoder, key string, limit int) []T {
	if d.text(key) == "" {
		return nil
	}
	var items []T
	d.json(key, &items)
	if len(items) > limit {
		d.fail(key, fmt.Errorf("more than %d items", limit))
	}
	if len(items) == 0 {
		return nil
	}
	return items
}

func oneOf[T ~string](d *decoder, key string, known []T) T {
	value := T(d.text(key))
	if !slices.Contains(known, value) {
		d.fail(key, fmt.Errorf("not one of %v", known))
	}
	return value
}
