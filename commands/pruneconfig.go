package commands

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// keyPruneFilters is the key of docker's config.json with the filters that every prune command of docker adds.
const keyPruneFilters = "pruneFilters"

// member is one key of a JSON object, and where its value is.
type member struct {
	key        string
	start, end int
}

// withPruneFilter adds [pruneFilter] to the text of docker's config.json, and leaves all else as it is, byte by byte. It
// says whether the filter was missing.
func withPruneFilter(text []byte) (changed []byte, missing bool, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	members, open, err := membersOf(text)
	if err != nil {
		return nil, false, err
	}
	entry, err := json.Marshal(pruneFilter)
	if err != nil {
		return nil, false, err
	}
	at := lastIndex(members, keyPruneFilters)
	if at < 0 {
		return addMember(text, members, open, fmt.Sprintf("%q: [%s]", keyPruneFilters, entry)), true, nil
	}
	value := text[members[at].start:members[at].end]
	var filters []string
	if err := json.Unmarshal(value, &filters); err != nil {
		return nil, false, fmt.Errorf("%s is no list of filters: %w", members[at].key, err)
	}
	if slices.Contains(filters, pruneFilter) {
		return text, false, nil
	}
	list := "[" + string(entry) + "]"
	if len(filters) > 0 {
		inside := strings.TrimRight(strings.TrimSuffix(string(value), "]"), " \t\r\n")
		list = inside + ", " + string(entry) + string(value[len(inside):])
	}
	return slices.Concat(text[:members[at].start], []byte(list), text[members[at].end:]), true, nil
}

// membersOf finds the members of the object that a text is, and where the object opens.
func membersOf(text []byte) (members []member, open int, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	begin, err := d.Token()
	if err != nil {
		return nil, 0, err
	}
	if begin != json.Delim('{') {
		return nil, 0, errors.New("it is no JSON object")
	}
	open = int(d.InputOffset())
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, 0, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, 0, err
		}
		end := int(d.InputOffset())
		members = append(members, member{fmt.Sprint(key), end - len(value), end})
	}
	if _, err := d.Token(); err != nil {
		return nil, 0, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, 0, errors.New("something follows the JSON object")
	}
	return members, open, nil
}

// lastIndex finds the member that docker goes by: Go's JSON ignores the case of keys, and the last one of several wins.
func lastIndex(members []member, key string) int {
	for i, m := range slices.Backward(members) {
		if strings.EqualFold(m.key, key) {
			return i
		}
	}
	return -1
}

// addMember adds a member behind the last one, on a line of its own if the first one is.
func addMember(text []byte, members []member, open int, added string) []byte {
	if len(members) == 0 {
		return slices.Concat(text[:open], []byte("\n\t"+added+"\n"), text[bytes.LastIndexByte(text, '}'):])
	}
	first := bytes.IndexByte(text[open:], '"')
	indent := string(text[open : open+first])
	if indent == "" {
		indent = " "
	}
	end := members[len(members)-1].end
	return slices.Concat(text[:end], []byte(","+indent+added), text[end:])
}
