package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/cli/command/inspect"
	"github.com/docker/cli/templates"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot"
)

type inspectOptions struct {
	format string
	files  bool
}

func newInspectCommand(d deps) *cobra.Command {
	var o inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect [OPTIONS] SNAPSHOT [SNAPSHOT...]",
		Short: "Display everything about one or more snapshots",
		Long: `Display everything about one or more snapshots as JSON: the container's whole
run configuration, and for each mount whether its data is in the snapshot, or
why not.

With --files it lists what the volumes of one snapshot hold, or only the VOLUME
that is named behind it, by its name or by where it is mounted.`,
		Example: `  docker snapshot inspect web:before-upgrade
  docker snapshot inspect --format '{{json .Config.Env}}' web:latest
  docker snapshot inspect --files db:latest db-data`,
		Args:                  cli.RequiresMinArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeSnapshots(d, 0),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if o.files && o.format != "" {
				return usageError(cmd, errors.New("conflicting options: --files and --format"))
			}
			if o.files {
				return runFiles(ctx, d, args)
			}
			return runInspect(ctx, d, o, args)
		}),
	}
	d.volumes.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.files, "files", false, "List the files of its volumes, or of the VOLUME named behind the snapshot")
	cmd.Flags().VarP(checked{&o.format, checkTemplate}, "format", "f", "Format the output: 'json', or a Go template")
	return cmd
}

func checkTemplate(format string) error {
	_, err := templates.Parse(format)
	return err
}

// runInspect prints what it finds, and then fails for what it did not find.
func runInspect(ctx context.Context, d deps, o inspectOptions, words []string) error {
	eng, err := d.engine()
	if err != nil {
		return err
	}
	inspector, err := inspect.NewTemplateInspectorFromString(d.out, o.format)
	if err != nil {
		return err
	}
	var failures []error
	for _, word := range words {
		failures = append(failures, inspectOne(ctx, eng, inspector, word))
	}
	if err := inspector.Flush(); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return errors.Join(failures...)
}

func inspectOne(ctx context.Context, eng engine, inspector inspect.Inspector, word string) error {
	if err := checkSnapshot(word); err != nil {
		return err
	}
	s, err := eng.Resolve(ctx, word)
	if err != nil {
		return err
	}
	whole := newDetails(s)
	raw, err := json.Marshal(whole)
	if err != nil {
		return fmt.Errorf("encode snapshot %s: %w", s.ID, err)
	}
	return inspector.Inspect(whole, raw)
}

// details is a snapshot as inspect shows it. The configuration is decoded no
// further than to JSON, so that nothing is lost that this program does not know.
type details struct {
	ID, Name, Ref                        string
	Refs                                 words
	Description, Created                 string
	Tags                                 words
	Meta                                 pairs
	Trigger, RunID, StepID               string
	Group, Parent, Expires               string
	Pinned                               bool
	ImageID, EngineID, Platform          string
	Size, StoredBytes                    int64
	Container                            labels.Container
	Config, HostConfig, NetworkingConfig any
	Mounts                               []mountDetails
	Attachments                          []attachmentDetails
}

type mountDetails struct {
	Type        string
	Name        string `json:",omitempty"`
	Source      string `json:",omitempty"`
	Subpath     string `json:",omitempty"`
	Destination string
	Driver      string            `json:",omitempty"`
	Options     map[string]string `json:",omitempty"`
	Labels      map[string]string `json:",omitempty"`
	RW          bool
	Anonymous   bool
	Captured    bool
	Skipped     string          `json:",omitempty"`
	Archive     *archiveDetails `json:",omitempty"`
}

type archiveDetails struct {
	Root                   string
	Entries, Bytes, Stored int64
	Index                  int
	Devices, Trusted       bool
}

type attachmentDetails struct {
	Name      string
	Bytes     int64
	SHA256    string
	MediaType string
}

func newDetails(s snapshot.Snapshot) details {
	whole := details{
		ID: string(s.ID), Name: s.Name, Ref: s.Ref(), Refs: append(words{}, s.Refs...),
		Description: s.Description, Created: rfc3339(s.Created),
		Tags: append(words{}, s.Tags...), Meta: newPairs(s.Meta),
		Trigger: string(s.Trigger), RunID: s.RunID, StepID: s.StepID,
		Group: s.Group, Parent: string(s.Parent), Expires: rfc3339(s.Expires), Pinned: s.Pinned,
		ImageID: s.ImageID, EngineID: s.EngineID, Platform: s.Platform,
		Size: s.Size, StoredBytes: s.StoredBytes(),
		Container:        s.Container,
		Config:           decoded(s.Config.Config),
		HostConfig:       decoded(s.Config.HostConfig),
		NetworkingConfig: decoded(s.Config.NetworkingConfig),
		Mounts:           []mountDetails{}, Attachments: []attachmentDetails{},
	}
	for _, m := range s.Mounts {
		whole.Mounts = append(whole.Mounts, newMountDetails(m))
	}
	for _, a := range s.Attachments {
		whole.Attachments = append(whole.Attachments, attachmentDetails(a))
	}
	return whole
}

func newMountDetails(m labels.Mount) mountDetails {
	detail := mountDetails{
		Type: m.Type, Name: m.Name, Source: m.Source, Subpath: m.Subpath, Destination: m.Destination,
		Driver: m.Driver, Options: m.Options, Labels: m.Labels, RW: m.RW, Anonymous: m.Anonymous,
		Captured: m.Archive != nil, Skipped: m.Skipped,
	}
	if m.Archive != nil {
		archive := archiveDetails(*m.Archive)
		detail.Archive = &archive
	}
	return detail
}

// decoded makes the engine's JSON fit for templates. Numbers stay as written.
func decoded(raw json.RawMessage) any {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return nil
	}
	return value
}
