package manifest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// MaxArchive is the highest number that an archive, and so a pack, can have.
const MaxArchive = 9999

// maxID is checked beside the expression: every start of the plugin compiles it, and a counted repetition takes
// long.
const maxID = 128

var validID = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]*$`)

// IsID says whether text can be the ID of a snapshot.
func IsID(text string) bool { return len(text) <= maxID && validID.MatchString(text) }

// PackName is the name of a pack: the ID of a snapshot and a number.
func PackName(id string, n int) string { return id + "/" + strconv.Itoa(n) }

// CheckPackName refuses what PackName cannot have made.
func CheckPackName(name string) error {
	id, number, ok := strings.Cut(name, "/")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || strconv.Itoa(n) != number || n < 0 || n > MaxArchive || !IsID(id) {
		return fmt.Errorf("pack name %q", name)
	}
	return nil
}

// PackID stands for the name of a pack while a store is open; zero stands for none.
type PackID uint32

// PackTable gives each pack name a PackID. Its methods may be called from several goroutines.
type PackTable struct {
	mu    sync.Mutex
	names []string
	ids   map[string]PackID
}

// NewPackTable makes an empty table.
func NewPackTable() *PackTable {
	return &PackTable{names: []string{""}, ids: map[string]PackID{}}
}

// ID is the ID of a pack name, a new one if the name is new.
func (t *PackTable) ID(name string) PackID {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, ok := t.ids[name]
	if !ok {
		id = PackID(len(t.names))
		t.ids[name] = id
		t.names = append(t.names, name)
	}
	return id
}

// Name is the name that was given an ID.
func (t *PackTable) Name(id PackID) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names[id]
}
