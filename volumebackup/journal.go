package volumebackup

import (
	"context"
	"encoding/json"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// The labels that say how a worker's other labels are to be read. Every version of
// the plugin must find these two, so they never change.
const (
	labelJournalVersion = labels.Prefix + "worker.journal"
	labelPlugin         = labels.Prefix + "worker.plugin" // version of the plugin that started the worker, for people
)

// journalVersion is the version of all that a worker's labels say.
const journalVersion = "2"

// Bounds of a journal: labels come from the engine, and may be anybody's.
const (
	maxFrozen      = 10_000
	maxFrozenBytes = 1 << 20
	maxHooksBytes  = 1 << 20
)

// JournalVersionError means that another version of the plugin has started a worker, and that this version does not know
// how to recover the operation. It is an errdefs failed-precondition error.
type JournalVersionError struct {
	Version string // of the journal; empty: it has none
	Plugin  string // version of the plugin that wrote it
}

func (e *JournalVersionError) Error() string {
	return fmt.Sprintf("read journal: it is of version %.20q, and this plugin understands only version %s", e.Version, journalVersion)
}

// Unwrap gives the error its class.
func (e *JournalVersionError) Unwrap() error { return cerrdefs.ErrFailedPrecondition }

// JournalLabels are the labels of a worker whose other labels are a journal of this
// version; plugin is the version of the program.
func JournalLabels(plugin string) map[string]string {
	return map[string]string{labelJournalVersion: journalVersion, labelPlugin: plugin}
}

// CheckJournal refuses the labels of a worker that another version of the plugin has started: this version must not take
// what it does not know for done, or for harmless.
func CheckJournal(worker map[string]string) error {
	if version := worker[labelJournalVersion]; version != journalVersion {
		return &JournalVersionError{Version: version, Plugin: worker[labelPlugin]}
	}
	return nil
}

// FrozenBy reads from the labels of a worker which containers are, or were,
// frozen for it.
func FrozenBy(worker map[string]string) ([]string, error) {
	if err := CheckJournal(worker); err != nil {
		return nil, err
	}
	text := worker[labelFrozen]
	var frozen []string
	if len(text) > maxFrozenBytes {
		return nil, fmt.Errorf("read journal: %d bytes of frozen containers", len(text))
	}
	if err := json.Unmarshal([]byte(text), &frozen); err != nil {
		return nil, fmt.Errorf("read journal %.200q: %w", text, err)
	}
	if len(frozen) > maxFrozen {
		return nil, fmt.Errorf("read journal: %d frozen containers", len(frozen))
	}
	return frozen, nil
}

// HooksOf reads from the labels of a worker which commands run, for its operation, in the container that
// is captured. What cannot be read names none.
func HooksOf(worker map[string]string) (hooks []string) {
	if text := worker[labelHooks]; text != "" && len(text) <= maxHooksBytes {
		_ = json.Unmarshal([]byte(text), &hooks)
	}
	return hooks
}

func (s *session) journal(ctx context.Context, r protocol.JournalRequest) error {
	if err := s.client.Journal(ctx, r); err != nil {
		return fmt.Errorf("%s journal: %w", r.Act, s.explain(err))
	}
	return nil
}

// CheckJournal asks the store whether a worker has recorded this journal. It fails
// with [protocol.NotFound] if it has recorded none, and with [protocol.Damaged] if it
// has recorded another one.
func (s *Service) CheckJournal(ctx context.Context, worker, text string) error {
	return s.alone(ctx, job{purpose: "check a journal", rights: toLook}, func(session *session) error {
		return session.journal(ctx, protocol.JournalRequest{Act: protocol.CheckJournal, Worker: worker, Text: text})
	})
}

// ForgetJournal drops what the store notes of a worker that is gone.
func (s *Service) ForgetJournal(ctx context.Context, worker string) error {
	return s.alone(ctx, job{purpose: "forget a journal", rights: toTidy}, func(session *session) error {
		return session.journal(ctx, protocol.JournalRequest{Act: protocol.ForgetJournal, Worker: worker})
	})
}
