package capture

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

func TestWithoutAdded(t *testing.T) {
	for _, test := range []struct{ image, run, want string }{
		{"", "", ""},
		{"A=1", "A=1", "A=1"},
		{"A=1", "A=2", "A=1"},
		{"A=1", "B=2", "A=1 B"},
		{"A=1", "", "A=1"},
		{"AB=1", "A=2", "AB=1 A"},
		{"A", "A=2", "A"},
		{"A=1", "B=x=y C", "A=1 B C"},
	} {
		image := strings.Fields(test.image)
		assert.Equal(t, strings.Join(withoutAdded(image, strings.Fields(test.run)), " "), test.want)
		assert.Equal(t, strings.Join(image, " "), test.image)
	}
}
