//go:build linux

// Command benchtree makes the content of the benchmarks' volume, and changes one per
// cent of it.
//
//	benchtree DIR                     718 MB: four files of 150 MB, half of which compresses, and 20,000 small ones
//	benchtree -change SEED DIR        writes 16 random pages of the big files, and 100 small files anew
//	benchtree -small N DIR            N small files only
//	benchtree -write SECONDS DIR      writes 100 random pages a second
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

const (
	bigFiles    = 4
	bigSize     = 150 << 20
	smallFiles  = 20_000
	smallSize   = 5_900 // bytes, on average
	perFolder   = 200
	page        = 4096
	changePages = 16
	changeSmall = 100
	writeRate   = 100 // pages a second
)

func main() {
	change := flag.Int64("change", -1, "change one per cent, by this seed")
	small := flag.Int("small", 0, "make only so many small files")
	write := flag.Int("write", 0, "write pages for so many seconds")
	flag.Parse()
	if err := run(flag.Arg(0), *change, *small, *write); err != nil {
		fmt.Fprintln(os.Stderr, "benchtree:", err)
		os.Exit(1)
	}
}

func run(dir string, change int64, small, write int) error {
	switch {
	case dir == "":
		return errors.New("no folder given")
	case change >= 0:
		return changeTree(dir, rand.New(rand.NewPCG(uint64(change), 1)))
	case write > 0:
		return writePages(dir, time.Duration(write)*time.Second)
	case small > 0:
		return makeSmall(dir, small, rand.New(rand.NewPCG(0, 0)))
	}
	random := rand.New(rand.NewPCG(0, 0))
	for n := range bigFiles {
		if err := os.WriteFile(big(dir, n), halfCompressible(bigSize, random), 0o644); err != nil {
			return err
		}
	}
	return makeSmall(dir, smallFiles, random)
}

func big(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("big-%d", n)) }

func smallName(dir string, n int) string {
	return filepath.Join(dir, fmt.Sprintf("dir-%04d", n/perFolder), fmt.Sprintf("file-%07d", n))
}

// halfCompressible is random in every other page and zero-free text in the rest.
func halfCompressible(size int, random *rand.Rand) []byte {
	content := make([]byte, size)
	for at := 0; at < size; at += 8 {
		if at/page%2 == 0 {
			for i := range min(8, size-at) {
				content[at+i] = byte(random.Uint32())
			}
			continue
		}
		copy(content[at:], "snapshot")
	}
	return content
}

func makeSmall(dir string, count int, random *rand.Rand) error {
	for n := range count {
		if n%perFolder == 0 {
			if err := os.MkdirAll(filepath.Dir(smallName(dir, n)), 0o755); err != nil {
				return err
			}
		}
		if err := writeSmall(dir, n, random); err != nil {
			return err
		}
	}
	return nil
}

func writeSmall(dir string, n int, random *rand.Rand) error {
	return os.WriteFile(smallName(dir, n), halfCompressible(smallSize/2+random.IntN(smallSize), random), 0o644)
}

func changeTree(dir string, random *rand.Rand) error {
	for n := range changePages {
		if err := changePage(dir, n%bigFiles, random); err != nil {
			return err
		}
	}
	for range changeSmall {
		if err := writeSmall(dir, random.IntN(smallFiles), random); err != nil {
			return err
		}
	}
	return nil
}

func changePage(dir string, n int, random *rand.Rand) error {
	f, err := os.OpenFile(big(dir, n), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(halfCompressible(page, random), int64(random.IntN(bigSize/page))*page)
	return errors.Join(err, f.Close())
}

func writePages(dir string, long time.Duration) error {
	random := rand.New(rand.NewPCG(0, 0))
	tick := time.NewTicker(time.Second / writeRate)
	defer tick.Stop()
	end := time.After(long)
	for {
		select {
		case <-end:
			return nil
		case <-tick.C:
			if err := changePage(dir, random.IntN(bigFiles), random); err != nil {
				return err
			}
		}
	}
}
