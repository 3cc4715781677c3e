package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// Attachment is a file of the caller that is stored with the snapshot. It is read more than once.
type Attachment struct {
	Name    string
	Content io.ReadSeeker
}

// JSONExtension ends the names of attachments that have to be JSON.
const JSONExtension = ".json"

// checkAttachments refuses attachments that cannot be stored, or that are not what their names say.
func checkAttachments(all []Attachment) error {
	if len(all) > labels.MaxAttachments {
		return fmt.Errorf("%d attachments: a snapshot can have %d", len(all), labels.MaxAttachments)
	}
	names := map[string]bool{}
	for _, a := range all {
		if err := labels.CheckAttachmentName(a.Name); err != nil {
			return err
		}
		if names[a.Name] {
			return fmt.Errorf("there are two attachments of the name %s", a.Name)
		}
		names[a.Name] = true
		if filepath.Ext(a.Name) != JSONExtension {
			continue
		}
		if err := a.checkJSON(); err != nil {
			return fmt.Errorf("attachment %s is not JSON: %w", a.Name, err)
		}
	}
	return nil
}

// checkJSON reads the content once, without keeping it: it may be large. It must be one value.
func (a Attachment) checkJSON() error {
	content, err := a.open()
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(content)
	for depth, first := 0, true; first || depth > 0; first = false {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("it ends too soon")
		case err != nil:
			return err
		case token == json.Delim('{') || token == json.Delim('['):
			depth++
		case token == json.Delim('}') || token == json.Delim(']'):
			depth--
		}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the first value")
	}
	return nil
}

// open begins to read at the beginning.
func (a Attachment) open() (io.Reader, error) {
	if _, err := a.Content.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read attachment %s: %w", a.Name, err)
	}
	return a.Content, nil
}

// mediaType tells what kind of content it is, by its first bytes.
func (a Attachment) mediaType() (string, error) {
	if filepath.Ext(a.Name) == JSONExtension {
		return "application/json", nil
	}
	content, err := a.open()
	if err != nil {
		return "", err
	}
	const looked = 512 // as many as DetectContentType considers
	first, err := io.ReadAll(io.LimitReader(content, looked))
	return http.DetectContentType(first), err
}

// attach stores the attachments in the backup, and records them.
func (a *part) attach(ctx context.Context) error {
	files := a.from.options.Attachments
	if len(files) == 0 {
		return nil
	}
	a.p.Status("attachments", "storing attachments")
	a.record.Attachments = make([]labels.Attachment, 0, len(files)) // another attempt may have failed
	for _, file := range files {
		kind, err := file.mediaType()
		if err != nil {
			return fmt.Errorf("read attachment %s: %w", file.Name, err)
		}
		content, err := file.open()
		if err != nil {
			return err
		}
		stored, err := a.backup.Attach(ctx, file.Name, content)
		if err != nil {
			return err
		}
		a.record.Attachments = append(a.record.Attachments, labels.Attachment{Name: file.Name, Bytes: stored.Bytes, SHA256: stored.SHA256, MediaType: kind})
	}
	return nil
}
