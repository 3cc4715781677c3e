package extract

import (
	"path"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// position is how far a path was followed, and what is left of it.
type position struct {
	mount *labels.Mount // nil: the root filesystem
	// floor is what of a volume the container sees as the root of the mount; above it the path leads out of the mount.
	floor string
	dir   string   // where it is, from the root of the volume or the root filesystem. Nothing on the way is a symlink
	rest  []string // names, "." and ".."
}

// into is the position at the root of a mount, as the container sees it.
func into(m *labels.Mount, rest []string) position {
	floor := strings.TrimPrefix(path.Join("/", m.Subpath), "/")
	return position{mount: m, floor: floor, dir: floor, rest: rest}
}

// components are the names in a path.
func components(p string) []string {
	return slices.DeleteFunc(strings.Split(p, "/"), func(name string) bool { return name == "" || name == "." })
}

// upwards follows the dots at the beginning of what is left. Above the root of a mount is the directory that it is
// mounted in, above the root of the container nothing else.
func (p position) upwards() position {
	for len(p.rest) > 0 && p.rest[0] == ".." {
		switch {
		case p.dir != p.floor:
			p.dir, p.rest = parent(p.dir), p.rest[1:]
		case p.mount != nil:
			p = position{rest: append(components(path.Dir(p.mount.Destination)), p.rest[1:]...)}
			return p.upwards()
		default:
			p.rest = p.rest[1:]
		}
	}
	return p
}

// ahead are the names up to the next "..", and what comes from there on.
func (p position) ahead() (names, later []string) {
	if at := slices.Index(p.rest, ".."); at >= 0 {
		return p.rest[:at], p.rest[at:]
	}
	return p.rest, nil
}

// behind is the position behind a symlink at a path, which begins where dir does. later is what comes after the link.
func (p position) behind(link, target string, later []string) position {
	rest := append(components(target), later...)
	if path.IsAbs(target) {
		return position{rest: rest}
	}
	return position{mount: p.mount, floor: p.floor, dir: parent(link), rest: rest}
}

// place is where a path in dir's filesystem is in the container, if all mounts are where their destinations say.
func (p position) place(names ...string) string {
	at := strings.TrimPrefix(strings.TrimPrefix(p.dir, p.floor), "/")
	root := "/"
	if p.mount != nil {
		root = p.mount.Destination
	}
	return path.Join(root, at, path.Join(names...))
}

// inner is the position in the innermost mount that a path leads into, as far as destinations tell.
func (p position) inner(mounts []labels.Mount) position {
	here := p.place()
	names, later := p.ahead()
	there := p.place(names...)
	best := p
	for i := range mounts {
		m := &mounts[i]
		if !isBelow(m.Destination, here) || m.Destination != there && !isBelow(there, m.Destination) {
			continue
		}
		if best.mount == p.mount || len(m.Destination) > len(best.mount.Destination) {
			passed := len(components(m.Destination)) - len(components(here))
			best = into(m, slices.Concat(names[passed:], later))
		}
	}
	return best
}

// parent is the directory of a path that begins without a slash.
func parent(p string) string {
	if dir := path.Dir(p); dir != "." {
		return dir
	}
	return ""
}
