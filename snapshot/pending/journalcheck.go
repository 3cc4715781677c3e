package pending

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// The bounds of a journal.
const (
	maxJournal      = 1 << 20 // bytes
	maxJournalItems = 10_000  // in each list
	maxJournalName  = 1024    // bytes of a name
	maxVolumeName   = 255
	workerDigits    = 6 // at the end of a worker's name
)

// ReadJournal reads the journal of a restore in place from a worker's labels. It refuses another
// version, and anything that a restore in place does not write: whoever rolls back does what the
// journal says, and has to understand all of it.
func ReadJournal(worker map[string]string) (Journal, error) {
	if err := volumebackup.CheckJournal(worker); err != nil {
		return Journal{}, err
	}
	j, err := decodeJournal(worker[LabelJournal])
	if err == nil {
		err = j.Check()
	}
	if err != nil {
		return Journal{}, fmt.Errorf("read journal %.200q: %w", worker[LabelJournal], err)
	}
	return j, nil
}

// JournalOf reads the journal of a worker, and refuses it if the worker's name does not fit it.
func JournalOf(w Worker) (Journal, error) {
	j, err := ReadJournal(w.Labels)
	name := dockerop.SummaryName(w.Summary)
	if err == nil && !volumebackup.IsLockOf(name, j.Lock()) && !volumebackup.IsSettled(name) {
		err = fmt.Errorf("read journal: worker %s does not lock container %.200q", name, j.Name)
	}
	return j, err
}

func decodeJournal(text string) (j Journal, err error) {
	if len(text) > maxJournal {
		return Journal{}, fmt.Errorf("it has %d bytes", len(text))
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&j); err != nil {
		return Journal{}, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Journal{}, errors.New("something follows it")
	}
	return j, nil
}

// Check refuses a journal that no restore in place can have written.
func (j Journal) Check() error {
	if !isName(j.Name) {
		return fmt.Errorf("name %.200q", j.Name)
	}
	if _, err := labels.ParseID(string(j.Snapshot)); err != nil {
		return err
	}
	if j.Safety != "" {
		if _, err := labels.ParseID(string(j.Safety)); err != nil {
			return err
		}
	}
	if !j.namesItsWorker() {
		return fmt.Errorf("worker %.200q", j.Worker)
	}
	if j.Retries < 0 || j.Timeout < 0 {
		return errors.New("a number is negative")
	}
	return errors.Join(j.checkOld(), j.checkVolumes(), j.checkOthers())
}

// namesItsWorker tells whether Worker is the name of this operation's own worker.
func (j Journal) namesItsWorker() bool {
	digits, ok := strings.CutPrefix(j.Worker, volumebackup.LockName(j.Lock())+"-")
	return ok && labels.IsDigits(digits, workerDigits, workerDigits) && (j.Safety == "" || strings.HasSuffix(string(j.Safety), digits))
}

// checkOld checks what the journal says of the old container.
func (j Journal) checkOld() error {
	if j.Old == "" {
		if j.OldName != "" || j.Aside != "" || j.Running || j.Paused || j.OneShot || j.Policy != "" || len(j.Holds) > 0 {
			return errors.New("it describes a container that was gone")
		}
		return nil
	}
	if !isFullID(j.Old) || !isName(j.OldName) || j.Aside != AsideName(j.OldName, j.Old) {
		return fmt.Errorf("container %.200q, %.200q, aside as %.200q", j.Old, j.OldName, j.Aside)
	}
	switch container.RestartPolicyMode(j.Policy) {
	case "", container.RestartPolicyAlways, container.RestartPolicyOnFailure, container.RestartPolicyUnlessStopped:
		return nil
	}
	return fmt.Errorf("restart policy %.200q", j.Policy)
}

func (j Journal) checkVolumes() error {
	for _, list := range [][]string{j.Volumes, j.Found, j.Made, j.Holds} {
		if len(list) > maxJournalItems {
			return fmt.Errorf("%d volumes", len(list))
		}
		for _, name := range list {
			if !isVolumeName(name) {
				return fmt.Errorf("volume %.200q", name)
			}
		}
	}
	for _, name := range j.Made {
		if slices.Contains(j.Volumes, name) || slices.Contains(j.Holds, name) {
			return fmt.Errorf("volume %.200q is listed both as existing and as made", name)
		}
	}
	for _, name := range j.Found {
		if !slices.Contains(j.Volumes, name) {
			return fmt.Errorf("volume %.200q is not written", name)
		}
	}
	return nil
}

func (j Journal) checkOthers() error {
	if len(j.Others) > maxJournalItems {
		return fmt.Errorf("%d containers", len(j.Others))
	}
	for _, o := range j.Others {
		if !isFullID(o.ID) || !isName(o.Name) || o.Timeout < 0 || o.ID == j.Old {
			return fmt.Errorf("container %.200q, %.200q", o.ID, o.Name)
		}
		if err := checkEndpoints(o.Endpoints); err != nil {
			return err
		}
	}
	return checkEndpoints(j.Endpoints)
}

// checkEndpoints refuses endpoints that no engine reports.
func checkEndpoints(e dockerop.Endpoints) error {
	if len(e) > maxJournalItems {
		return fmt.Errorf("%d networks", len(e))
	}
	for name := range e {
		if name == "" || len(name) > maxJournalName {
			return fmt.Errorf("network %.200q", name)
		}
	}
	return nil
}

func isFullID(id string) bool { return labels.IsDigits(id, dockerop.FullID, dockerop.FullID) }

func isName(name string) bool { return len(name) <= maxJournalName && labels.IsContainerName(name) }

// isVolumeName tells whether a volume can have that name. Volume drivers have rules of their own,
// but an engine takes a name that is a path for a bind mount.
func isVolumeName(name string) bool {
	return name != "" && len(name) <= maxVolumeName && name[0] != '/' && name[0] != '.' && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}
