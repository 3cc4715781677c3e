//go:build linux

// Command mapwriter writes to a file through a mapping and never syncs it, so that
// the file's times do not show the writes.
//
//	mapwriter FILE         write for ever: 1 to every page in turn, then 2 to every page …
//	mapwriter -check FILE  print what the first page has; fail if the others are not of the same moment
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	pageSize = 4096
	pages    = 256
)

func main() {
	check := flag.Bool("check", false, "")
	flag.Parse()
	run := write
	if *check {
		run = verify
	}
	if err := run(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "mapwriter:", err)
		os.Exit(1)
	}
}

func write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(pages * pageSize); err != nil {
		return err
	}
	mapping, err := unix.Mmap(int(f.Fd()), 0, pages*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map %s: %w", path, err)
	}
	for n := uint64(1); ; n++ {
		for at := 0; at < len(mapping); at += pageSize {
			binary.LittleEndian.PutUint64(mapping[at:], n)
		}
	}
}

// verify checks that the pages up to some page have one number, and all pages after it the number before.
func verify(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(content) != pages*pageSize {
		return fmt.Errorf("%s has %d bytes", path, len(content))
	}
	first := binary.LittleEndian.Uint64(content)
	previous := first
	for at := 0; at < len(content); at += pageSize {
		n := binary.LittleEndian.Uint64(content[at:])
		if n > previous || n+1 < first {
			return fmt.Errorf("page %d has %d after %d and, in the first, %d", at/pageSize, n, previous, first)
		}
		previous = n
	}
	fmt.Println(first)
	return nil
}
