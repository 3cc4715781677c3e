package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// Session is what is known of a run.
type Session struct {
	RunID       string    `json:"run_id"`
	Command     []string  `json:"command"`   // only its first word, if arguments are not recorded
	Container   string    `json:"container"` // name; the run follows it when the container is replaced
	ContainerID string    `json:"container_id"`
	Volumes     []Mount   `json:"volumes"` // that the container mounted when the run started
	Binds       []Mount   `json:"binds"`
	Interval    string    `json:"interval"`
	Started     time.Time `json:"started"`
	Ended       time.Time `json:"ended,omitzero"` // zero: it has not ended, or its client was killed
	ExitCode    *int      `json:"exit_code"`      // of the command; nil: it has none
	Status      Status    `json:"status"`

	Next          int             `json:"next"` // number of the next snapshot
	Snapshots     []Snapshot      `json:"snapshots"`
	Restores      []Restore       `json:"restores"`
	EngineNetwork []NetworkEvent  `json:"engine_network_events"`
	NetworkEvents json.RawMessage `json:"network_events,omitempty"` // the caller's own list
}

// Status says how a run ended.
type Status string

// The statuses. A run is unfinished from its start: so it stays if its client is killed.
const (
	StatusUnfinished Status = "unfinished"
	StatusCompleted  Status = "completed" // the command ended with 0
	StatusFailed     Status = "failed"    // the command ended otherwise, or could not be started
)

// Mount is a volume or a bind mount of the container.
type Mount struct {
	Name        string `json:"name,omitempty"`   // of a volume
	Source      string `json:"source,omitempty"` // of a bind mount, on the engine's host
	Destination string `json:"destination"`
}

// Snapshot is one that was taken in a run. It may have been removed since.
type Snapshot struct {
	Number    int            `json:"number"`
	ID        labels.ID      `json:"id"`
	Trigger   labels.Trigger `json:"trigger"`
	Container string         `json:"container"`
	Root      string         `json:"root,omitempty"` // of the state in it; empty: it was not known
}

// Restore is a restore in place of the container while the run was under way.
type Restore struct {
	At       time.Time `json:"at"`
	Snapshot labels.ID `json:"snapshot"`         // what was restored
	Safety   labels.ID `json:"safety,omitempty"` // with which it can be undone
	Status   Outcome   `json:"status"`
}

// Outcome says how a restore in place ended.
type Outcome string

// The outcomes.
const (
	OutcomeRestored   Outcome = "restored"
	OutcomeRolledBack Outcome = "rolled_back"
)

// NetworkEvent is that the container was connected to a network, or disconnected from one.
type NetworkEvent struct {
	At      time.Time `json:"at"`
	Action  string    `json:"action"` // connect or disconnect
	Network string    `json:"network"`
}

// Limits on what a session may hold: it comes from an image, and images come from anywhere.
const (
	maxBytes         = 4 << 20 // of the whole label
	maxRunID         = 128
	maxNetworkEvents = 1000 // of the engine
	rootDigits       = 64   // of a SHA-256, in hex
	// MaxNetworkBytes is how long the caller's list of network events may be.
	MaxNetworkBytes = 2 << 20
)

var runIDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/@+-]*$`)

// CheckRunID tells why id cannot name a run.
func CheckRunID(id string) error {
	if len(id) > maxRunID || !runIDPattern.MatchString(id) {
		return fmt.Errorf("invalid run ID %.140q: use 1 to %d letters, digits and any of _.:/@+- after the first", id, maxRunID)
	}
	return nil
}

// Encode returns the value of [labels.KeySession]. It refuses a session that [Decode] would refuse.
func Encode(s Session) (string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encode run %s: %w", s.RunID, err)
	}
	_, err = Decode(string(text))
	return string(text), err
}

// Decode reads the value of [labels.KeySession].
func Decode(text string) (Session, error) {
	if len(text) > maxBytes {
		return Session{}, fmt.Errorf("read the record of a run: it is longer than %d bytes", maxBytes)
	}
	var s Session
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return Session{}, fmt.Errorf("read the record of a run: %w", err)
	}
	if err := s.check(); err != nil {
		return Session{}, fmt.Errorf("read the record of a run: %w", err)
	}
	return s, nil
}

func (s Session) check() error {
	if err := CheckRunID(s.RunID); err != nil {
		return err
	}
	switch {
	case !labels.IsContainerName(s.Container):
		return fmt.Errorf("%.100q is not a container name", s.Container)
	case s.Started.IsZero():
		return errors.New("it does not say when the run started")
	case s.Status != StatusUnfinished && s.Status != StatusCompleted && s.Status != StatusFailed:
		return fmt.Errorf("unknown status %.100q", s.Status)
	case s.Next < 0:
		return errors.New("the next number is negative")
	}
	for _, one := range s.Snapshots {
		if _, err := labels.ParseID(string(one.ID)); err != nil {
			return err
		}
		if one.Root != "" && !labels.IsDigits(one.Root, rootDigits, rootDigits) {
			return fmt.Errorf("snapshot %s has the root %.100q", one.ID, one.Root)
		}
		if one.Number < 0 || !labels.IsContainerName(one.Container) {
			return fmt.Errorf("snapshot %s has the number %d, and is of container %.100q", one.ID, one.Number, one.Container)
		}
	}
	for _, one := range s.Restores {
		if _, err := labels.ParseID(string(one.Snapshot)); err != nil {
			return err
		}
	}
	return checkList(s.NetworkEvents)
}

// CheckNetworkEvents tells why text cannot be the caller's list of network events: it has to be a
// JSON list, of at most [MaxNetworkBytes].
func CheckNetworkEvents(text []byte) error {
	if len(text) > MaxNetworkBytes {
		return fmt.Errorf("more than %d bytes", MaxNetworkBytes)
	}
	if len(text) == 0 {
		return errors.New("nothing was given: use a JSON list, which may be []")
	}
	return checkList(text)
}

func checkList(text json.RawMessage) error {
	if len(text) == 0 {
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("not a JSON list: %w", err)
	}
	return nil
}

// HeardNetwork adds an event of the engine. Of very many only the latest stay.
func (s *Session) HeardNetwork(events ...NetworkEvent) {
	s.EngineNetwork = append(s.EngineNetwork, events...)
	if extra := len(s.EngineNetwork) - maxNetworkEvents; extra > 0 {
		s.EngineNetwork = s.EngineNetwork[extra:]
	}
}
