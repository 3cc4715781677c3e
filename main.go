// Command docker-snapshot is a Docker CLI plugin that takes snapshots of
// containers and brings them back. Inside a worker container, which it makes of
// itself on the engine, it reads and writes volumes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/cua-snapshot/docker-snapshot/plugin"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/worker"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "worker" {
		os.Exit(serve())
	}
	plugin.Run()
}

// serve is the worker: it answers the client until its input ends.
func serve() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := worker.ServeConfined(ctx, os.Stdin, os.Stdout, worker.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
