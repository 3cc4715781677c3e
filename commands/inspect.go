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
run configuration, for each mount whether its data is in the snapshot, or why
not, and when it was restored: into which container, and with which safety
snapshot.

With --files it lists the files in the volumes of one snapshot. A second argument
names one VOLUME, by its name or by where it is mounted, to list only that, or rootfs:
the root filesystem, which the engine exports for that. With --format it prints each
file by itself, with its SHA-256. Files of more than 1 MiB are read for that, unless a
template does not name .SHA256.`,
		Example: `  docker snapshot inspect web:before-upgrade
  docker snapshot inspect --format '{{json .Config.Env}}' web:latest
  docker snapshot inspect --files db:latest db-data
  docker snapshot inspect --files --format json web:latest rootfs`,
		Args:                  cli.RequiresMinArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeInspect(d, &o),
		RunE: adapt(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if o.files {
				return runFiles(ctx, d, o, args)
			}
			return runInspect(ctx, d, o, args)
		}),
	}
	o.volumes.addFindingFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.files, "files", false, "List the files of its volumes, or of the VOLUME, or rootfs, named after the snapshot")
	cmd.Flags().VarP(o.printer.option(details{}, file{}), "format", "f", "Format the output: 'json', or a Go template")
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
		failures = append(failures, o.printer.failed(d.out, inspectOne(ctx, d, eng, inspector, word)))
	}
	if err := inspector.Flush(); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return errors.Join(failures...)
}

// inspector prints as docker inspect does: all that it was given in one list. As JSON it prints one object per line.
func (p printer) inspector(out io.Writer) inspect.Inspector {
	switch {
	case p.template != nil:
		return inspect.NewTemplateInspector(out, p.template)
	case p.formats():
		return lineInspector{out}
	}
	return inspect.NewIndentedInspector(out)
}

// lineInspector prints each object on a line of its own, at once.
type lineInspector struct{ out io.Writer }

// Inspect prints one object.
func (l lineInspector) Inspect(object any, _ []byte) error { return writeJSON(l.out, object) }

// Flush has nothing to do.
func (l lineInspector) Flush() error { return nil }

func inspectOne(ctx context.Context, d deps, eng engine, inspector inspect.Inspector, word string) error {
	if err := checkSnapshot(word); err != nil {
		return err
	}
	s, err := d.resolve(ctx, eng, word)
	if err != nil {
		return err
	}
	whole, err := detailsOf(ctx, eng, s)
	if err != nil {
		return err
	}
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
	Root             string              `json:"root"` // of the state in it
	Refs             words               `json:"refs"`
	EngineID         string              `json:"engine_id"`
	Store            string              `json:"store"`
	LayerSize        byteSize            `json:"layer_size"`
	Mounts           []mountDetails      `json:"mounts"`
	Attachments      []attachmentDetails `json:"attachments"`
	Restores         []restoreDetails    `json:"restores"`
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
	Root       string            `json:"root"`
	Entries    int64             `json:"entries"`
	Size       byteSize          `json:"size"`
	StoredSize byteSize          `json:"stored_size"`
	Index      int               `json:"index"`
	Devices    bool              `json:"devices"`
	Trusted    bool              `json:"trusted"`
	Excluded   *exclusionDetails `json:"excluded"`
}

// exclusionDetails says what of a volume is not in its archive.
type exclusionDetails struct {
	Patterns  words `json:"patterns"`
	Globs     words `json:"globs"`
	Included  words `json:"included"`
	Gitignore bool  `json:"gitignore"`
	Entries   int64 `json:"entries"`
}

type attachmentDetails struct {
	Name      string   `json:"name"`
	Size      byteSize `json:"size"`
	SHA256    string   `json:"sha256"`
	MediaType string   `json:"media_type"`
}

// restoreDetails is a restore of a snapshot.
type restoreDetails struct {
	At          string `json:"at"`
	Container   string `json:"container"`
	ContainerID string `json:"container_id"`
	InPlace     bool   `json:"in_place"`
	Safety      string `json:"safety"`
	RunID       string `json:"run_id"`
}

func newRestoreDetails(r catalog.Restore) restoreDetails {
	return restoreDetails{
		At: rfc3339(r.At), Container: r.Container, ContainerID: r.ContainerID, InPlace: r.InPlace, Safety: string(r.Safety), RunID: r.RunID,
	}
}

// detailsOf is a snapshot with what became of it.
func detailsOf(ctx context.Context, eng engine, s catalog.Snapshot) (details, error) {
	restores, err := eng.RestoresOf(ctx, s)
	return newDetails(s, restores), err
}

func newDetails(s catalog.Snapshot, restores []catalog.Restore) details {
	return details{
		summary:          newSummary(s),
		Root:             s.Root(),
		Refs:             newWords(s.Refs),
		EngineID:         s.EngineID,
		Store:            s.Store,
		LayerSize:        byteSize(s.Size),
		Mounts:           convert(s.Mounts, newMountDetails),
		Attachments:      convert(s.Attachments, newAttachmentDetails),
		Restores:         convert(restores, newRestoreDetails),
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
		if e := a.Excluded; e != nil {
			detail.Archive.Excluded = &exclusionDetails{
				Patterns: newWords(e.Patterns), Globs: newWords(e.Globs), Included: newWords(e.Included), Gitignore: e.Gitignore, Entries: e.Entries,
			}
		}
	}
	return detail
}

// countExcluded is how many entries of volumes were left out; of a volume that is mounted twice, once.
func countExcluded(mounts []labels.Mount) int64 {
	var count int64
	counted := map[int]bool{}
	for _, m := range mounts {
		if m.Archive != nil && m.Archive.Excluded != nil && !counted[m.Archive.Index] {
			counted[m.Archive.Index] = true
			count += m.Archive.Excluded.Entries
		}
	}
	return count
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
