package dockerop

import (
	"fmt"
)

func Describe(err error, doing string) error {
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
