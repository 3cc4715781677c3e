package space

import "github.com/cua-snapshot/docker-snapshot/snapshot/retention"

// Share is what some snapshots occupy.
type Share struct {
	Unique int64 // bytes that are free once these snapshots are gone
	Shared int64 // bytes that something else needs, too
}

// Bytes is all that they occupy.
func (s Share) Bytes() int64 { return s.Unique + s.Shared }

// nobody is the group of snapshots that belong to none.
const nobody = -1

// shares divides sets among groups of snapshots. groups has the group of each snapshot: an index below
// number, or nobody. A set that holds snapshots of several groups is shared by each of them.
func shares(sets []retention.Set, groups []int, number int) []Share {
	found := make([]Share, number)
	for i, set := range sets {
		if set.Bytes == 0 {
			continue
		}
		holders := holdersOf(sets, i, groups)
		for group := range holders {
			switch {
			case group == nobody:
			case len(holders) == 1:
				found[group].Unique += set.Bytes
			default:
				found[group].Shared += set.Bytes
			}
		}
	}
	return found
}

// holdersOf returns the groups of the snapshots in a set.
func holdersOf(sets []retention.Set, i int, groups []int) map[int]bool {
	holders := map[int]bool{}
	for {
		set := sets[i]
		group := nobody
		if set.Snapshot >= 0 && set.Snapshot < len(groups) {
			group = groups[set.Snapshot]
		}
		holders[group] = true
		if set.Rest < 0 || set.Rest >= i { // a set consists of one before it
			return holders
		}
		i = set.Rest
	}
}

// addBases adds the images on which snapshots stand.
func addBases(found []Share, bases []Base, groups []int) {
	for _, base := range bases {
		holders := map[int]bool{}
		for _, i := range base.Snapshots {
			holders[groups[i]] = true
		}
		for group := range holders {
			switch {
			case group == nobody:
			case base.IsThere || len(holders) > 1:
				found[group].Shared += base.Bytes
			default:
				found[group].Unique += base.Bytes
			}
		}
	}
}
