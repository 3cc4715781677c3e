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
	if err == nil && !volumebackup.IsLockOf(name, j.Lock()) && !w.IsOver() {
		err = fmt.Errorf("read journal: worker %s does not lock container %.200q", name, j.Name())
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
	if len(j.Members) == 0 || len(j.Members) > maxJournalItems {
		return fmt.Errorf("%d members", len(j.Members))
	}
	for i, m := range j.Members {
		if err := m.check(); err != nil {
			return err
		}
		if slices.ContainsFunc(j.Members[:i], func(other Member) bool { return other.Name == m.Name || other.Lock() == m.Lock() }) {
			return fmt.Errorf("container %.200q is listed twice", m.Name)
		}
	}
	if !j.namesItsWorker() {
		return fmt.Errorf("worker %.200q", j.Worker)
	}
	if len(j.Holds) > 0 && !slices.ContainsFunc(j.Members, func(m Member) bool { return m.Old != "" }) {
		return errors.New("it describes containers that were gone")
	}
	return errors.Join(j.checkVolumes(), j.checkOthers(), j.checkKept(), j.checkCopy())
}

// checkKept refuses what no journal can say of containers that are kept.
func (j Journal) checkKept() error {
	if !j.Keeps {
		if j.Live {
			return errors.New("it freezes containers, and does not keep them")
		}
		return nil
	}
	if slices.ContainsFunc(j.Members, func(m Member) bool {
		return m.Old == "" || m.OneShot && !j.Live || m.Name != m.OldName || m.Safety == "" && j.Live
	}) {
		return errors.New("it keeps containers that cannot be kept")
	}
	if len(j.Volumes) == 0 || len(j.Made)+len(j.Found) > 0 {
		return errors.New("it keeps containers, and makes volumes or writes none")
	}
	return nil
}

// checkCopy refuses what no journal can say of a copy that takes a container's place.
func (j Journal) checkCopy() error {
	c := j.Copy
	if c == nil {
		return nil
	}
	if len(j.Members) != 1 || j.Keeps || !isFullID(c.ID) || !isName(c.Name) || c.Paused && !c.Running || len(c.Volumes) > maxJournalItems {
		return fmt.Errorf("copy %.200q, %.200q", c.ID, c.Name)
	}
	if j.Replaces(c.ID) || slices.ContainsFunc(j.Others, func(o Other) bool { return o.ID == c.ID }) {
		return fmt.Errorf("copy %.200q has two parts to play", c.Name)
	}
	if _, err := labels.ParseID(string(c.Of)); err != nil {
		return err
	}
	for _, name := range c.Volumes {
		if !isVolumeName(name) || slices.Contains(slices.Concat(j.Volumes, j.Made, j.Holds), name) {
			return fmt.Errorf("volume %.200q of the copy", name)
		}
	}
	return nil
}

// namesItsWorker tells whether Worker is the name of this operation's own worker.
func (j Journal) namesItsWorker() bool {
	digits, ok := strings.CutPrefix(j.Worker, volumebackup.LockName(j.Lock())+"-")
	safety := string(j.Members[0].Safety)
	return ok && labels.IsDigits(digits, workerDigits, workerDigits) && (safety == "" || strings.HasSuffix(safety, digits))
}

// check refuses what no journal can say of one container.
func (m Member) check() error {
	if !isName(m.Name) {
		return fmt.Errorf("name %.200q", m.Name)
	}
	if _, err := labels.ParseID(string(m.Snapshot)); err != nil {
		return err
	}
	if m.Safety != "" {
		if _, err := labels.ParseID(string(m.Safety)); err != nil {
			return err
		}
	}
	if m.Retries < 0 || m.Timeout < 0 {
		return errors.New("a number is negative")
	}
	return errors.Join(m.checkOld(), checkEndpoints(m.Endpoints))
}

// checkOld checks what the journal says of the old container.
func (m Member) checkOld() error {
	if m.Old == "" {
		if m.OldName != "" || m.Aside != "" || m.Running || m.Paused || m.OneShot || m.Policy != "" {
			return errors.New("it describes a container that was gone")
		}
		return nil
	}
	if !isFullID(m.Old) || !isName(m.OldName) || m.Aside != AsideName(m.OldName, m.Old) {
		return fmt.Errorf("container %.200q, %.200q, aside as %.200q", m.Old, m.OldName, m.Aside)
	}
	switch container.RestartPolicyMode(m.Policy) {
	case "", container.RestartPolicyAlways, container.RestartPolicyOnFailure, container.RestartPolicyUnlessStopped:
		return nil
	}
	return fmt.Errorf("restart policy %.200q", m.Policy)
}

func (j Journal) checkVolumes() error {
	for _, list := range [][]string{j.Volumes, j.Found, j.Made, j.Holds} {
		if len(list) > maxJournalItems {
			return fmt.Errorf("%d volumes", len(list))
		}
	}
	for _, key := range j.Volumes {
		if !isVolumeName(key) && !labels.IsArchivablePath(key) {
			return fmt.Errorf("volume or path %.200q", key)
		}
	}
	for _, name := range slices.Concat(j.Found, j.Made, j.Holds) { // the engine makes, removes and keeps only volumes
		if !isVolumeName(name) {
			return fmt.Errorf("volume %.200q", name)
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
		if !isFullID(o.ID) || !isName(o.Name) || o.Timeout < 0 || j.Replaces(o.ID) {
			return fmt.Errorf("container %.200q, %.200q", o.ID, o.Name)
		}
		if err := checkEndpoints(o.Endpoints); err != nil {
			return err
		}
	}
	return nil
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
