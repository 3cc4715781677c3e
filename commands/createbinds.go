package commands

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/docker/cli/opts"
	"github.com/docker/go-units"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

func (o *createOptions) addBindFlags(flags *pflag.FlagSet) {
	flags.Var(opts.NewListOptsRef(&o.engine.Binds.Include, checkDestination), "include-bind", "Capture the content of the bind mount on this path of the container, too")
	flags.Var(parsed(&o.engine.Limits.Entries, "number", parseLimit), "max-entries",
		fmt.Sprintf("Take no snapshot if a bind mount or volume has more entries; 0: no limit (default %d for bind mounts)", capture.MaxBindEntries))
	flags.Var(parsed(&o.engine.Limits.Bytes, "bytes", parseMemory), "max-bytes",
		fmt.Sprintf("Take no snapshot if a bind mount or volume has more content, as in 500MB; 0: no limit (default %s for bind mounts)", units.BytesSize(capture.MaxBindBytes)))
}

// checkDestination refuses what cannot be where a container has a bind mount.
func checkDestination(word string) (string, error) {
	if !path.IsAbs(word) {
		return "", errors.New("use the path in the container, as in /work")
	}
	return word, nil
}

// parseLimit reads a number from 0.
func parseLimit(text string) (*int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, errors.New("use a number; 0 means no limit")
	}
	if number < 0 {
		return nil, errNegative
	}
	return &number, nil
}

// limitAdvice lists what takes the space of what is too large to be captured, and says what to do.
func limitAdvice(e *volumebackup.LimitError) string {
	var b strings.Builder
	if len(e.Largest) > 0 {
		b.WriteString("The largest directories in it, with what is below them:\n")
	}
	for _, d := range e.Largest {
		fmt.Fprintf(&b, "  %10s  %8d entries  %s\n", units.BytesSize(float64(d.Bytes)), d.Entries, pathText(d.Path))
	}
	b.WriteString("Leave something out with --exclude, or raise the limit with --max-entries or --max-bytes (0: no limit)")
	return b.String()
}
