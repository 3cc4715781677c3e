package commands

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// mcpAnswer is the answer of a tool: a sentence for the model, and a small object for programs. Both are in a model's context, so
// they have no more than it needs for its next call.
type mcpAnswer struct {
	text   string
	object any
}

// mcpListMost is the most entries of a list in an answer.
const mcpListMost = 20

// result is the answer as a client gets it. Clients differ in which part they show, so the object is in both.
func (a mcpAnswer) result(isError bool) (*mcp.CallToolResult, error) {
	object, err := json.Marshal(a.object)
	if err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: safeText(a.text)}, &mcp.TextContent{Text: string(object)}},
		StructuredContent: json.RawMessage(object), IsError: isError,
	}, nil
}

// mcpPage asks for a part of a list.
type mcpPage struct {
	Skip int `json:"skip,omitempty" jsonschema:"leave out so many at the beginning"`
}

// pageOf returns a page of a list, and the number of entries after it.
func pageOf[T any](p mcpPage, all []T) (part []T, more int) {
	all = all[min(max(p.Skip, 0), len(all)):]
	part = all[:min(len(all), mcpListMost)]
	return append([]T{}, part...), len(all) - len(part)
}

// first returns the beginning of a list, and a last entry that counts the others.
func first(all []string) []string {
	part, more := pageOf(mcpPage{}, all)
	if more > 0 {
		part = append(part, fmt.Sprintf("and %d more", more))
	}
	return part
}

// andMore says how to get the rest of a list.
func andMore(p mcpPage, shown, more int) string {
	if more == 0 {
		return ""
	}
	return fmt.Sprintf(" There are %d more: call again with skip %d.", more, max(p.Skip, 0)+shown)
}

// mcpSummary is a snapshot in an answer.
type mcpSummary struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	Kind        string `json:"kind"`
	Container   string `json:"container"`
	Created     string `json:"created"`
	Trigger     string `json:"trigger"`
	Description string `json:"description,omitempty"`
}

func newMCPSummary(s catalog.Snapshot) mcpSummary {
	return mcpSummary{string(s.ID), s.Name, string(s.Kind), s.Container.Name, rfc3339(s.Created), string(s.Trigger), s.Description}
}

// mcpCreated is the object of create_snapshot.
type mcpCreated struct {
	Status string `json:"status"`
	mcpSummary
	Incomplete  bool     `json:"incomplete"`
	NotCaptured []string `json:"not_captured,omitempty"` // where it is mounted
	Warnings    []string `json:"warnings,omitempty"`
}

func answerCreated(r createResult, s catalog.Snapshot) mcpAnswer {
	text := fmt.Sprintf("Took snapshot %s of container %s.", s.Title(), s.Container.Name)
	if r.Incomplete {
		text += " It is incomplete: see the warnings."
	}
	missing := convert(r.NotCaptured, func(n notCaptured) string { return n.Destination })
	return mcpAnswer{text, mcpCreated{r.Status, newMCPSummary(s), r.Incomplete, first(missing), first(r.Warnings)}}
}

// mcpDetails is the object of inspect_snapshot.
type mcpDetails struct {
	mcpSummary
	Image       string   `json:"image"` // of the container
	State       string   `json:"container_state"`
	Tags        []string `json:"tags,omitempty"`
	RunID       string   `json:"run_id,omitempty"`
	StepID      string   `json:"step_id,omitempty"`
	SafetyFor   string   `json:"safety_for,omitempty"`
	Expires     string   `json:"expires,omitempty"`
	Pinned      bool     `json:"pinned"`
	Bytes       int64    `json:"size"`
	Volumes     []string `json:"volumes"`
	NotCaptured []string `json:"not_captured,omitempty"`
	Attachments []string `json:"attachments,omitempty"`
	Restores    []string `json:"restored_to,omitempty"` // containers, the newest first
}

func answerInspected(s catalog.Snapshot, restores []catalog.Restore) mcpAnswer {
	d := newSummary(s)
	missing := convert(d.NotCaptured, func(n notCaptured) string { return n.Destination + ": " + n.Reason })
	var attachments []string
	for _, a := range s.Attachments {
		attachments = append(attachments, a.Name)
	}
	text := fmt.Sprintf("Snapshot %s of %s was taken at %s.", s.Title(), s.Container.Name, d.Created)
	return mcpAnswer{text, mcpDetails{
		mcpSummary: newMCPSummary(s), Image: d.ContainerImage, State: d.ContainerState, Tags: first(d.Tags), RunID: d.RunID, StepID: d.StepID,
		SafetyFor: d.SafetyFor, Expires: d.Expires, Pinned: d.Pinned, Bytes: int64(d.Size), Volumes: first(d.Volumes), NotCaptured: first(missing),
		Attachments: first(attachments), Restores: first(convert(restores, func(r catalog.Restore) string { return r.Container })),
	}}
}

// mcpRestored is the object of the tools that restore, or preview it.
type mcpRestored struct {
	Status      string        `json:"status"`
	Snapshot    string        `json:"snapshot"`
	Container   string        `json:"container"`
	ContainerID string        `json:"container_id,omitempty"`
	Started     bool          `json:"started"`
	Incomplete  bool          `json:"incomplete,omitempty"`
	Safety      string        `json:"safety,omitempty"` // the snapshot that was taken first
	Plan        []string      `json:"plan,omitempty"`   // of a preview
	Changes     []changeCount `json:"changes,omitempty"`
	Warnings    []string      `json:"warnings,omitempty"`
}

func newMCPRestored(r restoreResult) mcpRestored {
	m := mcpRestored{
		Status: r.Status, Snapshot: r.ID, Container: r.RestoredContainer, ContainerID: r.RestoredContainerID,
		Started: r.Started, Incomplete: r.Incomplete, Safety: r.Safety, Warnings: first(r.Warnings),
	}
	if r.Status == statusPlanned {
		m.Plan = first(convert(r.Plan, func(s planStep) string {
			return strings.TrimSpace(s.Op + " " + s.Target + " " + s.Reason)
		}))
	}
	if r.Changes != nil {
		m.Changes, _ = pageOf(mcpPage{}, r.Changes.Counts)
	}
	return m
}

func answerRestored(r restoreResult, s catalog.Snapshot) mcpAnswer {
	m := newMCPRestored(r)
	title := s.Title()
	switch {
	case r.Status == statusPlanned:
		return mcpAnswer{fmt.Sprintf("A restore of snapshot %s can be done in %d steps. Nothing was changed.", title, len(r.Plan)), m}
	case r.Safety != "":
		return mcpAnswer{fmt.Sprintf("Container %s is now as it was at snapshot %s. undo_restore takes that back.", m.Container, title), m}
	}
	return mcpAnswer{fmt.Sprintf("Restored snapshot %s as container %s.", title, m.Container), m}
}
