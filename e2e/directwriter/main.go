//go:build linux

// Command directwriter writes past the page cache. A file's times move when a write begins. Its bytes change when the disk
// has them, which is much later on a slow disk.
//
//	directwriter DIR         write to file-0 to file-3 for ever, asynchronously: 1 to every sector of their first
//	                         128 KiB, then 2 to every sector …
//	directwriter -sync DIR   the same, in calls that return when the disk has the bytes
//	directwriter -check DIR  fail unless every sector is of one moment or of the one before it, as after a crash
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	sector = 512
	size   = 128 << 10
	files  = 4
)

func main() {
	check := flag.Bool("check", false, "")
	synchronous := flag.Bool("sync", false, "")
	flag.Parse()
	var err error
	if *check {
		err = verify(flag.Arg(0))
	} else {
		err = write(flag.Arg(0), *synchronous)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "directwriter:", err)
		os.Exit(1)
	}
}

func name(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("file-%d", n)) }

// write begins with the moment after the last one that is complete.
func write(dir string, synchronous bool) error {
	var targets [files]target
	for n := range targets {
		if err := targets[n].open(name(dir, n)); err != nil {
			return err
		}
	}
	begin := submit
	if synchronous {
		begin = each
	}
	for moment := last(&targets) + 1; ; moment++ {
		for n := range targets {
			for at := 0; at < size; at += sector {
				binary.LittleEndian.PutUint64(targets[n].memory[at:], moment)
			}
		}
		if err := begin(&targets); err != nil {
			return err
		}
	}
}

// target is a file and the memory that is written to it, which has to be aligned.
type target struct {
	fd     int
	memory []byte
}

func (t *target) open(path string) (err error) {
	if t.fd, err = unix.Open(path, unix.O_RDWR|unix.O_DIRECT, 0); err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	t.memory, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	return err
}

func last(targets *[files]target) uint64 {
	var moment uint64
	for _, t := range targets {
		if _, err := unix.Pread(t.fd, t.memory, 0); err == nil {
			moment = max(moment, binary.LittleEndian.Uint64(t.memory))
		}
	}
	return moment
}

// each writes to all targets at once, in a thread each.
func each(targets *[files]target) error {
	var group errgroup.Group
	for _, t := range targets {
		group.Go(func() error {
			_, err := unix.Pwrite(t.fd, t.memory, 0)
			return err
		})
	}
	return group.Wait()
}

// iocb is the kernel's control block of an asynchronous write, to the beginning of a file.
type iocb struct {
	_      [16]byte
	opcode uint16
	_      uint16
	fd     uint32
	memory uint64
	length uint64
	_      [24]byte
}

const pwrite = 1 // IOCB_CMD_PWRITE

// completion is what the kernel says of one.
type completion struct {
	_      [16]byte
	result int64
	_      [8]byte
}

var queue uintptr

// submit begins a write to all targets and waits for their ends.
func submit(targets *[files]target) error {
	if queue == 0 {
		if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, files, uintptr(unsafe.Pointer(&queue)), 0); errno != 0 {
			return fmt.Errorf("io_setup: %w", errno)
		}
	}
	var blocks [files]iocb
	var pointers [files]*iocb
	for n, t := range targets {
		memory := uint64(uintptr(unsafe.Pointer(&t.memory[0])))
		blocks[n] = iocb{opcode: pwrite, fd: uint32(t.fd), memory: memory, length: size}
		pointers[n] = &blocks[n]
	}
	if _, _, errno := unix.Syscall(unix.SYS_IO_SUBMIT, queue, files, uintptr(unsafe.Pointer(&pointers))); errno != 0 {
		return fmt.Errorf("io_submit: %w", errno)
	}
	var ended [files]completion
	for got := uintptr(0); got < files; { // a pause of the container interrupts the wait
		n, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, queue, 1, files-got, uintptr(unsafe.Pointer(&ended[got])), 0, 0)
		if errno != 0 && errno != unix.EINTR {
			return fmt.Errorf("io_getevents: %w", errno)
		}
		if errno == 0 {
			got += n
		}
	}
	for _, c := range ended {
		if c.result != size {
			return fmt.Errorf("a write ended with %d", c.result)
		}
	}
	return nil
}

func verify(dir string) error {
	oldest, newest := uint64(1<<63), uint64(0)
	for n := range files {
		content, err := os.ReadFile(name(dir, n))
		if err != nil {
			return err
		}
		for at := 0; at < size; at += sector {
			moment := binary.LittleEndian.Uint64(content[at:])
			oldest, newest = min(oldest, moment), max(newest, moment)
		}
	}
	if newest > oldest+1 {
		return fmt.Errorf("there are sectors of moment %d and of moment %d", oldest, newest)
	}
	fmt.Println(newest)
	return nil
}
