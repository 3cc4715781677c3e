package snapshot

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
)

// countedAlways is the number of images of an engine up to which [Engine.CountAtTimes] counts at every call.
const countedAlways = 100

// CountAtTimes returns how many snapshots there are of the container of a name, or false. An engine looks at all its images to list
// some, and at the labels of those that it lists. So of many calls only so many count, left to chance, that on average a call costs
// no more than with countedAlways images.
func (e *Engine) CountAtTimes(ctx context.Context, container string) (number int, counted bool, err error) {
	info, err := e.docker.Identify(ctx)
	if err != nil {
		return 0, false, err
	}
	if info.Images > countedAlways {
		drawn, err := rand.Int(e.random, big.NewInt(int64(info.Images)))
		if err != nil {
			return 0, false, fmt.Errorf("draw a number: %w", err)
		}
		if drawn.Int64() >= countedAlways {
			return 0, false, nil
		}
	}
	number, err = e.catalog.Count(ctx, container)
	return number, err == nil, err
}
