package labels_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

func TestDecodeRefusesWhatItCannotTrust(t *testing.T) {
	const mount = `{"type":"volume","destination":"/d","rw":true`
	archive := func(fields string) string {
		return `[` + mount + `,"archive":{"root":"` + strings.Repeat("0f", 32) + `"` + fields + `}}]`
	}
	long := strings.Repeat("x", 4<<20+1)
	sum := strings.Repeat("1", 64)
	attachment := func(name string, bytes int, sum string) string {
		return fmt.Sprintf(`[{"name":"%s","bytes":%d,"sha256":"%s"}]`, name, bytes, sum)
	}
	tests := []struct {
		key, value, want string
	}{
		{labels.KeyVersion, "", "unknown schema version"},
		{labels.KeyVersion, "2", "unknown schema version"},
		{labels.KeyVersion, "01", "unknown schema version"},
		{labels.KeyID, "latest", "not a snapshot ID"},
		{labels.KeyID, "20261345-000000-abcdef", "not a snapshot ID"},
		{labels.KeyID, "20260131-235959-0A1B2C", "not a snapshot ID"},
		{labels.KeyParent, "none", "not a snapshot ID"},
		{labels.KeyName, "a/b", "invalid snapshot name"},
		{labels.KeyName, "latest", "invalid snapshot name"},
		{labels.KeyName, "20260131-235959-0a1b2c", "invalid snapshot name"},
		{labels.KeyDescription, long, "longer than"},
		{labels.KeyCreated, "", "is missing"},
		{labels.KeyCreated, "yesterday", "not a time"},
		{labels.KeyCreated, "0001-01-01T00:00:00Z", "is missing"},
		{labels.KeyExpires, "9999-12-31T23:59:59-23:00", "not a time"},
		{labels.KeyExpires, "0000-01-01T00:00:00+23:00", "not a time"},
		{labels.KeyExpires, "2026-01-31", "not a time"},
		{labels.KeyTags, `{"a":1}`, "broken JSON"},
		{labels.KeyTags, `["a"`, "broken JSON"},
		{labels.KeyTags, `[` + strings.Repeat(`"",`, 1024) + `""]`, "more than 1024 items"},
		{labels.KeyTrigger, "", "not one of"},
		{labels.KeyTrigger, "Manual", "not one of"},
		{labels.KeyContainerID, "", "not 64 hex digits"},
		{labels.KeyContainerID, "web", "not 64 hex digits"},
		{labels.KeyContainerID, strings.Repeat("a", 63), "not 64 hex digits"},
		{labels.KeyContainerID, strings.Repeat("a", 65), "not 64 hex digits"},
		{labels.KeyContainerID, strings.Repeat("A", 64), "not 64 hex digits"},
		{labels.KeyContainerID, strings.Repeat("a", 64) + "\n", "not 64 hex digits"},
		{labels.KeyContainerName, "", "not a container name"},
		{labels.KeyContainerName, "/web", "not a container name"},
		{labels.KeyContainerName, "web/../x", "not a container name"},
		{labels.KeyContainerState, "", "not one of"},
		{labels.KeyContainerState, "dead", "not one of"},
		{labels.KeyContainerHealth, "none", "not one of"},
		{labels.KeyConfig, "", "broken JSON"},
		{labels.KeyConfig, "null", "lacks the objects"},
		{labels.KeyConfig, `{"Config":{},"HostConfig":[]}`, "lacks the objects"},
		{labels.KeyConfig, `{"Config":{}}`, "lacks the objects"},
		{labels.KeyConfig, `{"Config":null,"HostConfig":{}}`, "lacks the objects"},
		{labels.KeyConfig, `{"Config":{},"HostConfig":{},"NetworkingConfig":7}`, "NetworkingConfig is not an object"},
		{labels.KeyConfig, `{"Config":` + strings.Repeat(`{"a":`, 20000), "broken JSON"},
		{labels.KeyConfig, long, "longer than"},
		{labels.KeyMounts, `[null]`, "lacks its type or destination"},
		{labels.KeyMounts, `[{"type":"volume"}]`, "lacks its type or destination"},
		{labels.KeyMounts, `[` + strings.Repeat(mount+`},`, 4096) + mount + `}]`, "more than 4096 items"},
		{labels.KeyMounts, `[{"type":"volume","destination":7}]`, "broken JSON"},
		{labels.KeyMounts, `[` + mount + `,"archive":{"root":"00"}}]`, "root is not a SHA-256"},
		{labels.KeyMounts, `[` + mount + `,"archive":{"root":"` + strings.Repeat("xy", 32) + `"}}]`, "root is not a SHA-256"},
		{labels.KeyMounts, archive(`,"entries":-1`), "out of range"},
		{labels.KeyMounts, archive(`,"bytes":-1`), "out of range"},
		{labels.KeyMounts, archive(`,"stored":-1`), "out of range"},
		{labels.KeyMounts, archive(`,"index":-1`), "out of range"},
		{labels.KeyMounts, archive(`,"index":4097`), "out of range"},
		{labels.KeyMounts, archive(`,"bytes":1e30`), "broken JSON"},
		{labels.KeyAttachments, `[{"bytes":"many"}]`, "broken JSON"},
		{labels.KeyAttachments, `[` + strings.Repeat(`{},`, 1000) + `{}]`, "more than 1000 items"},
		{labels.KeyAttachments, attachment("", 1, sum), "names no file"},
		{labels.KeyAttachments, attachment("..", 1, sum), "names no file"},
		{labels.KeyAttachments, attachment("../x", 1, sum), "slash"},
		{labels.KeyAttachments, attachment(`a\\b`, 1, sum), "slash"},
		{labels.KeyAttachments, attachment(`C:x`, 1, sum), "colon"},
		{labels.KeyAttachments, attachment(`a\nb`, 1, sum), "cannot be printed"},
		{labels.KeyAttachments, attachment(strings.Repeat("n", 256), 1, sum), "longer than 255 bytes"},
		{labels.KeyAttachments, attachment("x", -1, sum), "negative"},
		{labels.KeyAttachments, attachment("x", 1, sum[1:]), "not a SHA-256"},
		{labels.KeyAttachments, `[` + strings.Trim(attachment("x", 1, sum), "[]") + `,` + strings.Trim(attachment("x", 2, sum), "[]") + `]`, "two of the name"},
		{labels.KeyIdempotencyKey, "a\nb", "invalid idempotency key"},
		{labels.KeyIdempotencyKey, strings.Repeat("k", 256), "invalid idempotency key"},
		{labels.KeyRestores, "web:latest", "not a snapshot ID"},
		{labels.KeyUpdated, "today", "not a time"},
		{labels.KeyScope, `[]`, "broken JSON"},
		{labels.KeyScope, `{"next":"web:latest"}`, "not a snapshot ID"},
		{labels.KeyFormer, `["web:latest"]`, "not a list of image IDs"},
		{labels.KeyFormer, `["sha256:12"]`, "not a list of image IDs"},
		{labels.KeyFormer, `{}`, "broken JSON"},
		{labels.KeySize, "", "not a number of bytes"},
		{labels.KeySize, "-1", "not a number of bytes"},
		{labels.KeySize, "1e3", "not a number of bytes"},
		{labels.KeySize, "9223372036854775808", "not a number of bytes"},
		{labels.KeyNumber, "-1", "not a number from 0"},
		{labels.KeyNumber, "01", "not a number from 0"},
		{labels.KeyNumber, "2147483648", "not a number from 0"},
		{labels.KeyUsage, "91", "not a part of a whole"},
		{labels.KeyUsage, "NaN", "not a part of a whole"},
		{labels.KeyUsage, "0.910", "not a part of a whole"},
		{labels.KeyUsageLow, "-0.1", "not a part of a whole"},
		{labels.KeyWhiteouts, `["etc/.wh.passwd"]`, "not a list of absolute paths"},
		{labels.KeyKind, "thing", "not one of"},
		{labels.KeyLine, "chat", "only states have one"},
		{labels.KeyPinned, "false", "neither true nor empty"},
		{labels.KeyPinned, "TRUE", "neither true nor empty"},
		{labels.PrefixMeta, "x", "invalid key"},
		{labels.PrefixMeta + "a b", "x", "invalid key"},
		{labels.PrefixMeta + "-a", "x", "invalid key"},
		{labels.PrefixMeta + strings.Repeat("k", 257), "x", "invalid key"},
		{labels.PrefixMeta + "long", long, "longer than"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s=%.40s", test.key, test.value), func(t *testing.T) {
			image, err := labels.Encode(full())
			assert.NilError(t, err)
			image[test.key] = test.value

			record, err := labels.Decode(image)

			var field *labels.FieldError
			assert.Assert(t, errors.As(err, &field), "got %v", err)
			assert.Equal(t, field.Key, test.key)
			assert.ErrorContains(t, err, test.want)
			assert.DeepEqual(t, record, labels.Record{})
		})
	}
}

func TestDecodeRefusesTooManyMetaKeys(t *testing.T) {
	image, err := labels.Encode(minimal())
	assert.NilError(t, err)
	for i := range 1025 {
		image[fmt.Sprintf("%sk%d", labels.PrefixMeta, i)] = "v"
	}
	_, err = labels.Decode(image)
	assert.ErrorContains(t, err, "more than 1024 keys")
}

func TestDecodeTakesAnEmptyValueForAnAbsentOne(t *testing.T) {
	image, err := labels.Encode(minimal())
	assert.NilError(t, err)
	image[labels.PrefixMeta+"blanked"] = ""
	for key, value := range image {
		if value == "" && key != labels.PrefixMeta+"blanked" {
			delete(image, key)
		}
	}
	decoded, err := labels.Decode(image)
	assert.NilError(t, err)
	assert.DeepEqual(t, decoded, minimal())
}

func TestCheckMetaKey(t *testing.T) {
	for _, key := range []string{"a", "A9", "ci/commit", "x.y-z_0", strings.Repeat("k", 256)} {
		assert.NilError(t, labels.CheckMetaKey(key))
	}
	for _, key := range []string{"", ".a", "/a", "_a", "a b", "a=b", "é", "a\n", strings.Repeat("k", 257)} {
		assert.ErrorContains(t, labels.CheckMetaKey(key), "invalid key", "%q", key)
	}
}
