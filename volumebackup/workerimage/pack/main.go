// Command pack makes the image of a worker that builds of the plugin carry:
//
//	pack ARCHITECTURE PROGRAM >IMAGE.tar.gz
package main

import (
	"fmt"
	"os"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/workerimage"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("pack needs an architecture and a program, not %q", args)
	}
	content, err := os.ReadFile(args[1]) //nolint:gosec // that is what it is called with
	if err != nil {
		return err
	}
	image, err := workerimage.Make(args[0], content)
	if err != nil {
		return err
	}
	return image.Pack(os.Stdout)
}
