package snapshot

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// soundJournal is one with a value for everything.
func soundJournal() journal {
	id := strings.Repeat("ab", 32)
	j := journal{
		Name: "web", Old: id, OldName: "web", Aside: "web-replaced-ababab", Running: true, Policy: "always", Timeout: 10,
		Snapshot: "20260131-120000-000001", Safety: "20260131-120100-0000ff",
		Volumes: []string{"data", "nfs"}, Found: []string{"nfs"}, Made: []string{"gone"}, Holds: []string{"data"},
		Others: []other{{ID: strings.Repeat("cd", 32), Name: "reader", Timeout: 3}},
	}
	j.Worker = j.workerName(j.Safety)
	return j
}

// forgedJournal names what no restore in place has made.
func forgedJournal(docker *fakeDocker) string {
	j := soundJournal()
	j.Old, j.Worker, j.Volumes = docker.findContainer("web").id, "precious", []string{"data"}
	return j.text()
}

func (j journal) text() string {
	text, err := json.Marshal(j)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// journalLabels are those of a worker with that journal.
func journalLabels(text string) map[string]string {
	journal := volumebackup.JournalLabels("v1")
	journal[labelJournal] = text
	return journal
}

func TestJournalComesBackAsItWasWritten(t *testing.T) {
	j := soundJournal()
	read, err := readJournal(journalLabels(j.text()))
	assert.NilError(t, err)
	assert.DeepEqual(t, read.text(), j.text())
	options, err := j.options()
	assert.NilError(t, err)
	assert.Equal(t, options.Journal[labelJournal], j.text())
}

// Who rolls back removes and renames what the journal names, so it may only name what a
// restore in place can have made or touched.
func TestAJournalThatNoRestoreCanHaveWrittenIsRefused(t *testing.T) {
	id := strings.Repeat("ef", 32)
	for name, spoil := range map[string]func(*journal){
		"a stranger as worker":             func(j *journal) { j.Worker = "precious" },
		"a worker of another lock":         func(j *journal) { j.Worker = volumebackup.LockName(id) + "-0000ff" },
		"a worker of another operation":    func(j *journal) { j.Worker = volumebackup.LockName(j.Old) + "-abcdef" },
		"a name as ID":                     func(j *journal) { j.Old = "precious" },
		"the beginning of an ID":           func(j *journal) { j.Old = j.Old[:12] },
		"another name aside":               func(j *journal) { j.Aside = "precious" },
		"no name":                          func(j *journal) { j.Name = "" },
		"a path as name":                   func(j *journal) { j.Name = "../x" },
		"a long name":                      func(j *journal) { j.Name = strings.Repeat("x", maxJournalName+1) },
		"no snapshot":                      func(j *journal) { j.Snapshot = "" },
		"a name as safety snapshot":        func(j *journal) { j.Safety = "latest" },
		"a policy that is none":            func(j *journal) { j.Policy = "sometimes" },
		"a negative timeout":               func(j *journal) { j.Timeout = -1 },
		"a path as volume":                 func(j *journal) { j.Volumes = []string{"/etc", "nfs"} },
		"a volume without a name":          func(j *journal) { j.Made = []string{""} },
		"a volume with control characters": func(j *journal) { j.Holds = []string{"a\x1b[2J"} },
		"a volume that was there as made":  func(j *journal) { j.Made = []string{"data"} },
		"storage of a volume not written":  func(j *journal) { j.Found = []string{"other"} },
		"a name as another's ID":           func(j *journal) { j.Others[0].ID = "reader" },
		"itself as another":                func(j *journal) { j.Others[0].ID = j.Old },
		"many volumes":                     func(j *journal) { j.Holds = make([]string, maxJournalItems+1) },
		"a container that was gone": func(j *journal) {
			j.Old = ""
			j.Worker = j.workerName(j.Safety)
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := soundJournal()
			spoil(&j)
			_, err := readJournal(journalLabels(j.text()))
			assert.ErrorContains(t, err, "read journal")
			_, err = j.options()
			assert.ErrorContains(t, err, "write journal")
		})
	}
	sound := soundJournal().text()
	for name, text := range map[string]string{
		"a field that nobody knows": strings.Replace(sound, `{"name"`, `{"later":1,"name"`, 1),
		"a field of another that":   strings.Replace(sound, `{"id"`, `{"later":1,"id"`, 1),
		"something after it":        sound + "{}",
		"nothing":                   "",
		"too much":                  sound + strings.Repeat(" ", maxJournal),
	} {
		t.Run(name, func(t *testing.T) {
			assert.Assert(t, name != "a field" || text != sound)
			_, err := readJournal(journalLabels(text))
			assert.ErrorContains(t, err, "read journal")
		})
	}
}

func TestAJournalOfAnotherVersionIsRefused(t *testing.T) {
	for name, version := range map[string]map[string]string{
		"later": {"cua.snapshot.worker.journal": "2"}, "none": {},
	} {
		t.Run(name, func(t *testing.T) {
			worker := map[string]string{labelJournal: soundJournal().text(), "cua.snapshot.worker.frozen": `["a"]`}
			maps.Copy(worker, version)
			_, err := readJournal(worker)
			assert.ErrorContains(t, err, "this plugin understands only version 1")
			_, err = volumebackup.FrozenBy(worker)
			assert.ErrorContains(t, err, "this plugin understands only version 1")
		})
	}
}

func TestAJournalOnAnotherWorkerIsRefused(t *testing.T) {
	var w worker
	w.Labels, w.Names = journalLabels(soundJournal().text()), []string{"/" + volumebackup.LockName("0123456789ab")}
	_, err := journalOf(w)
	assert.ErrorContains(t, err, "does not lock container")
}

func FuzzReadJournal(f *testing.F) {
	f.Add(soundJournal().text())
	f.Add(journal{Name: "gone", Snapshot: "20260131-120000-000001"}.text())
	f.Add(`{"name":"web","old":"x","worker":"precious","volumes":["data"]}`)
	f.Fuzz(func(t *testing.T, text string) {
		j, err := readJournal(journalLabels(text))
		if err != nil {
			return
		}
		again, err := readJournal(journalLabels(j.text()))
		assert.NilError(t, err)
		assert.DeepEqual(t, again.text(), j.text())
		if j.Old != "" {
			assert.Assert(t, strings.HasPrefix(j.Aside, j.OldName+"-replaced-"))
		}
		assert.Assert(t, strings.HasPrefix(j.Worker, "cua-snapshot-"))
	})
}
