package retention

import (
	"math"
	"slices"

	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// Set is a set of snapshots, and the bytes that just these hold together: they are free once the
// last of them is gone. So bytes that several snapshots share are counted once. A set consists of
// another one and one more snapshot.
type Set struct {
	Rest     int   // index of the other set, which comes before; [NoRest]: there is none
	Snapshot int   // index of the snapshot; [Stranger]: one that nothing is decided about
	Bytes    int64 // may be 0
}

// The indices of a [Set] that mean none.
const (
	NoRest   = -1
	Stranger = -1
)

// Ranks of snapshots: when they go. Those that may go have the ranks from 0.
const (
	isGone  = -1
	isKept  = math.MaxInt - 1
	isOther = math.MaxInt // its bytes do not count
)

// limitSize removes the oldest snapshots until those that count occupy no more than the limit. What
// a snapshot holds that does not count, does not count either: no limit could free it. States never count.
func (d *deciding) limitSize() {
	most := d.Options.InAll().MaxSize
	if most == 0 {
		return
	}
	total, freed, going := d.weigh()
	rank := 0
	for _, u := range going {
		if total <= most {
			return
		}
		d.removeUnit(u, TooLarge, "beyond the limit of "+units.HumanSize(float64(most))+" in all")
		for range u {
			total -= freed[rank]
			rank++
		}
	}
}

// weigh adds up the bytes that count, and those that each of the snapshots frees that may go, by rank.
func (d *deciding) weigh() (total int64, freed []int64, going []unit) {
	ranks, going := d.ranks()
	freed = make([]int64, len(ranks))
	lasts := lastHolders(d.Sets, ranks)
	for i, set := range d.Sets {
		switch last := lasts[i]; last {
		case isGone, isOther:
		case isKept:
			total += set.Bytes
		default:
			total += set.Bytes
			freed[last] += set.Bytes
		}
	}
	return total, freed, going
}

// ranks returns the rank of each snapshot, and the units that may go, oldest first.
func (d *deciding) ranks() (ranks []int, going []unit) {
	ranks = make([]int, len(d.all))
	for i := range ranks {
		ranks[i] = isGone
	}
	d.each(func(i int) { ranks[i] = isOther })
	next := 0
	for _, u := range d.units() {
		if d.all[u[0]].Kind == labels.KindState {
			continue
		}
		stays := slices.ContainsFunc(u, func(i int) bool { return d.stays[i] })
		for _, i := range u {
			if ranks[i] = isKept; !stays {
				ranks[i] = next
				next++
			}
		}
		if !stays {
			going = append(going, u)
		}
	}
	return ranks, going
}

// lastHolders returns the highest rank in each set: that of the snapshot that goes last.
func lastHolders(sets []Set, ranks []int) []int {
	lasts := make([]int, len(sets))
	for i, set := range sets {
		lasts[i] = isGone
		if set.Rest >= 0 && set.Rest < i {
			lasts[i] = lasts[set.Rest]
		}
		rank := isOther
		if set.Snapshot >= 0 && set.Snapshot < len(ranks) {
			rank = ranks[set.Snapshot]
		}
		lasts[i] = max(lasts[i], rank)
	}
	return lasts
}

// Freed returns how many bytes are free once the snapshots are gone for which gone is set.
func Freed(sets []Set, gone []bool) int64 {
	ranks := make([]int, len(gone))
	for i, is := range gone {
		if ranks[i] = isOther; is {
			ranks[i] = isGone
		}
	}
	total := int64(0)
	for i, last := range lastHolders(sets, ranks) {
		if last == isGone {
			total += sets[i].Bytes
		}
	}
	return total
}
