package pending

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// soundJournal returns a journal with a value in every field.
func soundJournal() Journal {
	id := strings.Repeat("ab", 32)
	j := Journal{
		Members: []Member{{
			Name: "web", Old: id, OldName: "web", Aside: "web-replaced-ababab", Running: true, Policy: "always", Timeout: 10, Starts: true,
			Snapshot: "20260131-120000-000001", Safety: "20260131-120100-0000ff",
		}, {
			Name: "db", Old: strings.Repeat("12", 32), OldName: "db", Aside: "db-replaced-121212",
			Snapshot: "20260131-120000-000002", Safety: "20260131-120100-0000fe",
		}},
		Volumes: []string{"data", "nfs"}, Found: []string{"nfs"}, Made: []string{"gone"}, Holds: []string{"data"},
		Others: []Other{{ID: strings.Repeat("cd", 32), Name: "reader", Timeout: 3}},
	}
	j.Worker = j.WorkerName(j.Members[0].Safety)
	return j
}

// journalText returns a journal as the label of a worker holds it.
func journalText(j Journal) string {
	text, err := json.Marshal(j)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// journalLabels returns the labels of a worker with that journal.
func journalLabels(text string) map[string]string {
	journal := volumebackup.JournalLabels("v1")
	journal[LabelJournal] = text
	return journal
}

func TestJournalComesBackAsItWasWritten(t *testing.T) {
	j := soundJournal()
	read, err := ReadJournal(journalLabels(journalText(j)))
	assert.NilError(t, err)
	assert.DeepEqual(t, journalText(read), journalText(j))
}

// Whoever rolls back removes and renames what the journal names. So it may only name what a restore
// in place can have made or touched.
func TestAJournalThatNoRestoreCanHaveWrittenIsRefused(t *testing.T) {
	id := strings.Repeat("ef", 32)
	for name, spoil := range map[string]func(*Journal){
		"a stranger as worker":           func(j *Journal) { j.Worker = "precious" },
		"a worker of another lock":       func(j *Journal) { j.Worker = volumebackup.LockName(id) + "-0000ff" },
		"a worker of another operation":  func(j *Journal) { j.Worker = volumebackup.LockName(j.Members[0].Old) + "-abcdef" },
		"a name as ID":                   func(j *Journal) { j.Members[0].Old = "precious" },
		"the beginning of an ID":         func(j *Journal) { j.Members[0].Old = j.Members[0].Old[:12] },
		"another name aside":             func(j *Journal) { j.Members[0].Aside = "precious" },
		"no name":                        func(j *Journal) { j.Members[0].Name = "" },
		"a path as name":                 func(j *Journal) { j.Members[0].Name = "../x" },
		"a long name":                    func(j *Journal) { j.Members[0].Name = strings.Repeat("x", maxJournalName+1) },
		"no snapshot":                    func(j *Journal) { j.Members[0].Snapshot = "" },
		"a name as safety snapshot":      func(j *Journal) { j.Members[0].Safety = "latest" },
		"a policy that is none":          func(j *Journal) { j.Members[0].Policy = "sometimes" },
		"no member":                      func(j *Journal) { j.Members = nil },
		"a member twice":                 func(j *Journal) { j.Members[1] = j.Members[0] },
		"two members of a name":          func(j *Journal) { j.Members[1].Name = "web" },
		"a second member as another":     func(j *Journal) { j.Others[0].ID = j.Members[1].Old },
		"a negative timeout":             func(j *Journal) { j.Members[0].Timeout = -1 },
		"a path in a volume's place":     func(j *Journal) { j.Volumes = []string{"./etc", "nfs"} },
		"the host's root":                func(j *Journal) { j.Volumes = append(j.Volumes, "/") },
		"a path that leads up":           func(j *Journal) { j.Volumes = append(j.Volumes, "/srv/../etc") },
		"a path that is not clean":       func(j *Journal) { j.Volumes = append(j.Volumes, "/srv/") },
		"a path with control characters": func(j *Journal) { j.Volumes = append(j.Volumes, "/srv/\x1b[2J") },
		"a long path":                    func(j *Journal) { j.Volumes = append(j.Volumes, "/"+strings.Repeat("x", 4096)) },
		"a path that is made":            func(j *Journal) { j.Made = append(j.Made, "/srv/work") },
		"a path that is held":            func(j *Journal) { j.Holds = append(j.Holds, "/srv/work") },
		"a path that was found": func(j *Journal) {
			j.Volumes, j.Found = append(j.Volumes, "/srv/work"), append(j.Found, "/srv/work")
		},
		"a volume without a name":          func(j *Journal) { j.Made = []string{""} },
		"a volume with control characters": func(j *Journal) { j.Holds = []string{"a\x1b[2J"} },
		"a volume that was there as made":  func(j *Journal) { j.Made = []string{"data"} },
		"storage of a volume not written":  func(j *Journal) { j.Found = []string{"other"} },
		"a name as another's ID":           func(j *Journal) { j.Others[0].ID = "reader" },
		"itself as another":                func(j *Journal) { j.Others[0].ID = j.Members[0].Old },
		"many volumes":                     func(j *Journal) { j.Holds = make([]string, maxJournalItems+1) },
		"frozen but not kept":              func(j *Journal) { j.Live = true },
		"a container that was gone": func(j *Journal) {
			j.Members[0].Old = ""
			j.Worker = j.WorkerName(j.Members[0].Safety)
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := soundJournal()
			spoil(&j)
			_, err := ReadJournal(journalLabels(journalText(j)))
			assert.ErrorContains(t, err, "read journal")
			assert.Assert(t, j.Check() != nil)
		})
	}
	sound := journalText(soundJournal())
	for name, text := range map[string]string{
		"a field that nobody knows": strings.Replace(sound, `{"members"`, `{"later":1,"members"`, 1),
		"a field of a member":       strings.Replace(sound, `{"name"`, `{"later":1,"name"`, 1),
		"a field of another that":   strings.Replace(sound, `{"id"`, `{"later":1,"id"`, 1),
		"something after it":        sound + "{}",
		"nothing":                   "",
		"too much":                  sound + strings.Repeat(" ", maxJournal),
	} {
		t.Run(name, func(t *testing.T) {
			assert.Assert(t, name != "a field" || text != sound)
			_, err := ReadJournal(journalLabels(text))
			assert.ErrorContains(t, err, "read journal")
		})
	}
}

func TestAJournalMayWriteABindMount(t *testing.T) {
	j := soundJournal()
	j.Volumes = append(j.Volumes, "/srv/work")
	read, err := ReadJournal(journalLabels(journalText(j)))
	assert.NilError(t, err)
	for word, want := range map[string]bool{"/srv/work": true, "/srv/work/deep": true, "/srv": true, "/srv/works": false, "/etc": false, "data": true} {
		assert.Equal(t, read.isOn([]string{word}), want, word)
	}
}

// keepingJournal returns a journal of containers that are kept.
func keepingJournal() Journal {
	j := soundJournal()
	j.Keeps, j.Volumes, j.Found, j.Made = true, []string{"data"}, nil, nil
	return j
}

func TestAJournalOfContainersThatAreKept(t *testing.T) {
	read, err := ReadJournal(journalLabels(journalText(keepingJournal())))
	assert.NilError(t, err)
	assert.Assert(t, read.Keeps)
	live := keepingJournal()
	live.Live, live.Members[0].OneShot = true, true
	assert.NilError(t, live.Check())
	assert.Equal(t, len(live.Stopped()), len(live.Others))
	for name, spoil := range map[string]func(*Journal){
		"gone":             func(j *Journal) { j.Members[1] = Member{Name: "db", Snapshot: j.Members[1].Snapshot} },
		"removes itself":   func(j *Journal) { j.Members[0].OneShot = true },
		"becomes another":  func(j *Journal) { j.Members[0].Name = "other" },
		"writes nothing":   func(j *Journal) { j.Volumes = nil },
		"makes volumes":    func(j *Journal) { j.Made = []string{"new"} },
		"finds its volume": func(j *Journal) { j.Found = []string{"data"} },
		"no way back":      func(j *Journal) { j.Live, j.Members[1].Safety = true, "" },
	} {
		j := keepingJournal()
		spoil(&j)
		_, err := ReadJournal(journalLabels(journalText(j)))
		assert.ErrorContains(t, err, "it keeps containers", name)
	}
}

// promotingJournal returns a journal of a copy that takes the place of a container.
func promotingJournal() Journal {
	j := soundJournal()
	j.Members = j.Members[:1]
	j.Copy = &Copy{ID: strings.Repeat("ef", 32), Name: "web-copy", Of: j.Members[0].Snapshot, Running: true, Volumes: []string{"data-copy"}}
	j.Worker = j.WorkerName(j.Members[0].Safety)
	return j
}

func TestAJournalOfACopyThatTakesAPlace(t *testing.T) {
	read, err := ReadJournal(journalLabels(journalText(promotingJournal())))
	assert.NilError(t, err)
	assert.Equal(t, len(read.Locks()), 2)
	assert.Assert(t, read.IsAbout([]string{"web-copy"}) && read.IsAbout([]string{read.Copy.ID[:12]}) && !read.IsAbout([]string{"web-c"}))
	for name, spoil := range map[string]func(*Journal){
		"a name as ID":            func(j *Journal) { j.Copy.ID = "precious" },
		"a path as name":          func(j *Journal) { j.Copy.Name = "../x" },
		"the old container":       func(j *Journal) { j.Copy.ID = j.Members[0].Old },
		"another that is stopped": func(j *Journal) { j.Copy.ID = j.Others[0].ID },
		"no snapshot":             func(j *Journal) { j.Copy.Of = "" },
		"paused and not running":  func(j *Journal) { j.Copy.Running, j.Copy.Paused = false, true },
		"a path as volume":        func(j *Journal) { j.Copy.Volumes = []string{"/etc"} },
		"a volume that is held":   func(j *Journal) { j.Copy.Volumes = []string{"data"} },
		"two members":             func(j *Journal) { j.Members = soundJournal().Members },
		"a member that is kept":   func(j *Journal) { j.Keeps, j.Found, j.Made = true, nil, nil },
	} {
		j := promotingJournal()
		spoil(&j)
		j.Worker = j.WorkerName(j.Members[0].Safety)
		_, err := ReadJournal(journalLabels(journalText(j)))
		assert.ErrorContains(t, err, "read journal", name)
	}
}

func TestAJournalOfAnotherVersionIsRefused(t *testing.T) {
	for name, version := range map[string]map[string]string{
		"later": {"cua.snapshot.worker.journal": "3"}, "none": {},
	} {
		t.Run(name, func(t *testing.T) {
			worker := map[string]string{LabelJournal: journalText(soundJournal()), "cua.snapshot.worker.frozen": `["a"]`}
			maps.Copy(worker, version)
			_, err := ReadJournal(worker)
			assert.ErrorContains(t, err, "this plugin understands only version 2")
			_, err = volumebackup.FrozenBy(worker)
			assert.ErrorContains(t, err, "this plugin understands only version 2")
		})
	}
}

func TestAJournalOnAnotherWorkerIsRefused(t *testing.T) {
	var w Worker
	w.Labels, w.Names = journalLabels(journalText(soundJournal())), []string{"/" + volumebackup.LockName("0123456789ab")}
	_, err := JournalOf(w)
	assert.ErrorContains(t, err, "does not lock container")
}

func FuzzReadJournal(f *testing.F) {
	f.Add(journalText(soundJournal()))
	f.Add(journalText(keepingJournal()))
	withPath := soundJournal()
	withPath.Volumes = append(withPath.Volumes, "/srv/work")
	f.Add(journalText(withPath))
	f.Add(journalText(Journal{Members: []Member{{Name: "gone", Snapshot: "20260131-120000-000001"}}}))
	f.Add(`{"members":[{"name":"web","old":"x"}],"worker":"precious","volumes":["data"]}`)
	f.Fuzz(func(t *testing.T, text string) {
		j, err := ReadJournal(journalLabels(text))
		if err != nil {
			return
		}
		again, err := ReadJournal(journalLabels(journalText(j)))
		assert.NilError(t, err)
		assert.DeepEqual(t, journalText(again), journalText(j))
		for _, m := range j.Members {
			assert.Assert(t, m.Old == "" || strings.HasPrefix(m.Aside, m.OldName+"-replaced-"))
		}
		assert.Assert(t, strings.HasPrefix(j.Worker, "cua-snapshot-"))
	})
}
