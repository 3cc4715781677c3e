package snapshot

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

// countedAlways is the number of images of an engine up to which [Engine.CountAtTimes] counts at every call.
const countedAlways = 100

// Count is how many snapshots of a container the limits apply to.
type Count struct {
	Automatic int
	Newest    time.Time // of all of its snapshots, those by hand included; zero: it has none
}

// CountAtTimes counts the automatic snapshots of the container of a name, or returns false. An engine looks at all its images to list
// some, and at the labels of those that it lists. So of many calls only so many count, left to chance, that on average a call costs
// no more than with countedAlways images.
func (e *Engine) CountAtTimes(ctx context.Context, container string) (count Count, counted bool, err error) {
	info, err := e.docker.Identify(ctx)
	if err != nil {
		return Count{}, false, err
	}
	if info.Images > countedAlways {
		drawn, err := rand.Int(e.random, big.NewInt(int64(info.Images)))
		if err != nil {
			return Count{}, false, fmt.Errorf("draw a number: %w", err)
		}
		if drawn.Int64() >= countedAlways {
			return Count{}, false, nil
		}
	}
	all, err := e.catalog.Find(ctx, nil, catalog.Repository(container))
	for _, s := range all {
		if s.Created.After(count.Newest) {
			count.Newest = s.Created
		}
		if retention.IsLimited(s.Record) {
			count.Automatic++
		}
	}
	return count, err == nil, err
}
