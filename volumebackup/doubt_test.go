package volumebackup

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// What is asked for holds for this backup; only automatic ones are counted.
func TestHowFarABackupBelievesTheStore(t *testing.T) {
	half := 0.5
	for name, test := range map[string]struct {
		o    BackupOptions
		want protocol.Doubt
	}{
		"by hand":            {BackupOptions{}, protocol.Doubt{}},
		"full":               {BackupOptions{Full: true}, protocol.Doubt{Full: true}},
		"automatic":          {BackupOptions{Automatic: true}, protocol.Doubt{Fraction: 0.1, Every: 10}},
		"automatic, full":    {BackupOptions{Automatic: true, Full: true}, protocol.Doubt{Full: true}},
		"a fraction":         {BackupOptions{CheckFraction: &half}, protocol.Doubt{Fraction: 0.5}},
		"automatic, with it": {BackupOptions{Automatic: true, CheckFraction: &half}, protocol.Doubt{Fraction: 0.5}},
	} {
		assert.Equal(t, test.o.doubt(0.1), test.want, name)
	}
}
