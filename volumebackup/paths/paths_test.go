package paths

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"gotest.tools/v3/assert"
)

func TestWhatAPatternMeans(t *testing.T) {
	for patterns, want := range map[string]struct{ has, hasNot []string }{
		"etc":                      {[]string{"/etc", "/etc/a", "/etc/deep/b/"}, []string{"/", "/etcetera", "/var/etc"}},
		"/etc":                     {[]string{"/etc/a"}, []string{"/var/etc"}},
		"**/*.conf":                {[]string{"/a.conf", "/data/deep/a.conf", "/x.conf/in"}, []string{"/a.config"}},
		"/data ! /data/tmp":        {[]string{"/data/a"}, []string{"/data/tmp", "/data/tmp/a"}},
		"/data !**/*.tmp":          {[]string{"/data/a"}, []string{"/data/deep/a.tmp", "/other"}},
		"":                         {[]string{"/", "/a"}, nil},
		strings.Repeat("x ", 1000): {[]string{"/x"}, []string{"/y"}},
	} {
		filter, err := New(strings.Fields(strings.ReplaceAll(patterns, "! ", "!")))
		assert.NilError(t, err)
		for _, path := range want.has {
			assert.Assert(t, filter.Has(path), "%.20s: %s", patterns, path)
		}
		for _, path := range want.hasNot {
			assert.Assert(t, !filter.Has(path), "%.20s: %s", patterns, path)
		}
	}
}

func TestPatternsThatNobodyCanMean(t *testing.T) {
	for _, patterns := range [][]string{{"["}, {"!"}, slices.Repeat([]string{"x"}, 1001)} {
		_, err := New(patterns)
		assert.Assert(t, errors.Is(err, errdefs.ErrInvalidArgument), "%.20v: %v", patterns, err)
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("/etc\n!**/*.conf", "/etc/a.conf")
	f.Add("a[^b]\\\n**", "/a\xff")
	f.Fuzz(func(_ *testing.T, patterns, path string) {
		if filter, err := New(strings.Split(patterns, "\n")); err == nil {
			filter.Has(path)
		}
	})
}

func TestPatternsThatMatchNothing(t *testing.T) {
	u, err := NewUnmatched([]string{"/data/conf", "!/data/none", "/data/none", "**/*.conf", "/"})
	assert.NilError(t, err)
	u.See("/data")
	assert.DeepEqual(t, u.Patterns(), []string{"/data/conf", "/data/none", "**/*.conf", "/"})
	u.See("/data/conf/a.conf")
	assert.DeepEqual(t, u.Patterns(), []string{"/data/none", "/"})
	_, err = NewUnmatched([]string{"["})
	assert.Assert(t, errors.Is(err, errdefs.ErrInvalidArgument))
}
