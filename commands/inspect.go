package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/cli/command/inspect"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

type inspectOptions struct {
	files   bool
	volumes volumeOptions
	printer printer
}

func newInspectCommand(d deps) *cobra.Command {
	var o inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect [OPTIONS] SNAPSHOT [SNAPSHOT...]",
		Short: "Display everything about one or more snapshots",
		Long: `Display everything about one or more snapshots as JSON: the container's whole
run configuration, and for each mount whether its data is in the snapshot, or
why not.

With --files it lists the files in the volumes of one snapshot. A second argument
names one VOLUME, by its name or by where it is mounted, to list only that. With
--format it prints each file by itself.`,
		Example: `  docker snapshot inspect web:before-upgrade
  docker snapshot inspect --format '{{json .Config.Env}}' web:latest
  docker snapshot inspect --files db:latest db-data`,
		Args:                  cli.RequiresMinArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeSnapshots(d, 0),
		RunE: adapt(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if o.files {
				return o.printer.failed(d.out, runFiles(ctx, d, o, args))
			}
			return runInspect(ctx, d, o, args)
		}),
	}
	o.volumes.addFindingFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.files, "files", false, "List the files of its volumes, or of the VOLUME named after the snapshot")
	cmd.Flags().VarP(o.printer.option(), "format", "f", "Format the output: 'json', or a Go template")
	return cmd
}

// runInspect prints what it finds, and then fails for what it did not find.
func runInspect(ctx context.Context, d deps, o inspectOptions, words []string) error {
	eng, err := d.engine(o.volumes)
	if err != nil {
		return err
	}
	inspector := o.printer.inspector(d.out)
	var failures []error
	for _, word := range words {
		failures = append(failures, inspectOne(ctx, d, eng, inspector, word))
	}
	if err := inspector.Flush(); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return errors.Join(failures...)
}

// inspector prints as docker inspect does: all that it was given in one list.
func (p printer) inspector(out io.Writer) inspect.Inspector {
	switch {
	case p.template != nil:
		return inspect.NewTemplateInspector(out, p.template)
	case p.formats():
		return inspect.NewJSONInspector(out)
	}
	return inspect.NewIndentedInspector(out)
}

func inspectOne(ctx context.Context, d deps, eng engine, inspector inspect.Inspector, word string) error {
	if err := checkSnapshot(word); err != nil {
		return err
	}
	s, err := d.resolve(ctx, eng, word)
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

// resolve finds the snapshot that a word means.
func (d deps) resolve(ctx context.Context, eng engine, word string) (catalog.Snapshot, error) {
	return withSnapshot(ctx, d, eng, word, func(word string) (catalog.Snapshot, error) { return eng.Resolve(ctx, word) })
}

// details is a snapshot as inspect shows it. The configuration is decoded no
// further than to JSON, so that nothing is lost that this program does not know.
type details struct {
	summary
	Refs             words               `json:"refs"`
	EngineID         string              `json:"engine_id"`
	Store            string              `json:"store"`
	LayerSize        byteSize            `json:"layer_size"`
	Mounts           []mountDetails      `json:"mounts"`
	Attachments      []attachmentDetails `json:"attachments"`
	Config           any                 `json:"config"`
	HostConfig       any                 `json:"host_config"`
	NetworkingConfig any                 `json:"networking_config"`
}

type mountDetails struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Source      string          `json:"source"`
	Subpath     string          `json:"subpath"`
	Destination string          `json:"destination"`
	Driver      string          `json:"driver"`
	Options     pairs           `json:"options"`
	Labels      pairs           `json:"labels"`
	RW          bool            `json:"rw"`
	Anonymous   bool            `json:"anonymous"`
	Captured    bool            `json:"captured"`
	Reason      string          `json:"reason"` // why it is not captured
	Archive     *archiveDetails `json:"archive"`
}

type archiveDetails struct {
	Root       string   `json:"root"`
	Entries    int64    `json:"entries"`
	Size       byteSize `json:"size"`
	StoredSize byteSize `json:"stored_size"`
	Index      int      `json:"index"`
	Devices    bool     `json:"devices"`
	Trusted    bool     `json:"trusted"`
}

type attachmentDetails struct {
	Name      string   `json:"name"`
	Size      byteSize `json:"size"`
	SHA256    string   `json:"sha256"`
	MediaType string   `json:"media_type"`
}

func newDetails(s catalog.Snapshot) details {
	return details{
		summary:          newSummary(s),
		Refs:             newWords(s.Refs),
		EngineID:         s.EngineID,
		Store:            s.Store,
		LayerSize:        byteSize(s.Size),
		Mounts:           convert(s.Mounts, newMountDetails),
		Attachments:      convert(s.Attachments, newAttachmentDetails),
		Config:           decoded(s.Config.Config),
		HostConfig:       decoded(s.Config.HostConfig),
		NetworkingConfig: decoded(s.Config.NetworkingConfig),
	}
}

func newMountDetails(m labels.Mount) mountDetails {
	detail := mountDetails{
		Type: m.Type, Name: m.Name, Source: m.Source, Subpath: m.Subpath, Destination: m.Destination,
		Driver: m.Driver, Options: newPairs(m.Options), Labels: newPairs(m.Labels), RW: m.RW, Anonymous: m.Anonymous,
		Captured: m.Archive != nil, Reason: m.Skipped,
	}
	if a := m.Archive; a != nil {
		detail.Archive = &archiveDetails{
			Root: a.Root, Entries: a.Entries, Size: byteSize(a.Bytes), StoredSize: byteSize(a.Stored),
			Index: a.Index, Devices: a.Devices, Trusted: a.Trusted,
		}
	}
	return detail
}

func newAttachmentDetails(a labels.Attachment) attachmentDetails {
	return attachmentDetails{Name: a.Name, Size: byteSize(a.Bytes), SHA256: a.SHA256, MediaType: a.MediaType}
}

// decoded decodes the engine's JSON for templates. Numbers stay as written.
func decoded(raw json.RawMessage) any {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return nil
	}
	return value
}
