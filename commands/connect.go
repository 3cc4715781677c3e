package commands

import (
	"fmt"

	"github.com/docker/cli/cli/command"
	endpoint "github.com/docker/cli/cli/context/docker"
	"github.com/docker/docker/client"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// connect returns the engine that the CLI's context points at. Only it may ask the CLI
// for a client: that ends the program if the context cannot be resolved. So connect
// resolves the context first, and reports a failure like any other.
func connect(dockerCLI command.Cli, global []string, volumes volumebackup.Config, isGiven bool) (engine, error) {
	if err := checkEndpoint(dockerCLI); err != nil {
		return nil, unreachable{fmt.Errorf("unable to resolve docker endpoint: %w", err)}
	}
	docker := dockerCLI.Client()
	var options []snapshot.Option
	if isGiven {
		options = append(options, snapshot.WithGivenStore())
	}
	return snapshot.New(docker, archives.Of(volumebackup.New(docker, volumes)), newGuard(global), options...), nil
}

// checkEndpoint fails if no client can be made for what the CLI's context points at.
func checkEndpoint(dockerCLI command.Cli) error {
	contexts, name := dockerCLI.ContextStore(), dockerCLI.CurrentContext()
	found, err := contexts.GetMetadata(name)
	if err != nil {
		return err
	}
	described, err := endpoint.EndpointFromContext(found)
	if err != nil {
		return err
	}
	complete, err := endpoint.WithTLSData(contexts, name, described)
	if err != nil {
		return err
	}
	options, err := complete.ClientOpts()
	if err != nil {
		return err
	}
	_, err = client.NewClientWithOpts(options...)
	return err
}
