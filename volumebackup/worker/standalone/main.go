// Command standalone is the worker and nothing else. Builds of the plugin carry
// it for Linux engines of every architecture: it has a fifth of the plugin's
// size, so the engine has less to import and to start.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := worker.ServeConfined(ctx, os.Stdin, os.Stdout, worker.Options{})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
