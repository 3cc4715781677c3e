package capture

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Exclude says what of the volumes and bind mounts is not captured. The zero value leaves that to the labels of the
// container; of bind mounts, it leaves out what .gitignore files say.
type Exclude struct {
	labels.Exclusions // besides what the labels say
	// NoGitignore says that .gitignore files do not count, not even those in bind mounts.
	NoGitignore bool
	// Of says it for each volume and bind mount, by its key. Unless it is nil, nothing else counts.
	Of map[string]labels.Exclusions
}

// from returns what is excluded of every volume of a container with these labels.
func (e Exclude) from(containerLabels map[string]string) (labels.Exclusions, error) {
	all := labels.Exclusions{
		Patterns: slices.Clone(e.Patterns), Globs: slices.Clone(e.Globs), Included: e.Included, Gitignore: e.Gitignore,
	}
	for word := range strings.SplitSeq(containerLabels[labels.KeyPolicyExclude], ",") {
		switch word = strings.TrimSpace(word); {
		case word == "":
		case strings.ContainsAny(word, "*?["):
			all.Globs = append(all.Globs, word)
		default:
			all.Patterns = append(all.Patterns, word)
		}
	}
	if err := e.Check(); err != nil {
		return labels.Exclusions{}, err
	}
	if err := all.Check(); err != nil {
		return labels.Exclusions{}, fmt.Errorf("label %s: %w", labels.KeyPolicyExclude, err)
	}
	return all, nil
}

// exclude notes for each volume what of it is not captured.
func (e Exclude) exclude(volumes []volumebackup.Volume, all labels.Exclusions) {
	for i := range volumes {
		v := &volumes[i]
		if e.Of == nil {
			v.Excluded = e.ofOne(v.Key, all)
			continue
		}
		if one, ok := e.Of[v.Key]; ok {
			v.Excluded = &one
		}
	}
}

// ofOne returns what is excluded of the mount of a key: for a bind mount, .gitignore files count unless that is refused.
func (e Exclude) ofOne(key string, all labels.Exclusions) *labels.Exclusions {
	if labels.IsPathKey(key) && !e.NoGitignore {
		all.Gitignore = true
	}
	if all.IsEmpty() {
		return nil
	}
	return &all
}

// noteExclusions says what exclusions that the user asked for do not reach.
func (e Exclude) noteExclusions(p plan.Progress) {
	if len(e.Patterns)+len(e.Globs) > 0 || e.Gitignore {
		p.Note("volumes", "exclusions cannot apply to the root filesystem: only what is in volumes and in included bind mounts can be left out")
	}
}

// recordExclusions adds to archives what is not in them, and how many entries were left out.
func recordExclusions(mounts []labels.Mount, volumes []volumebackup.Volume, archives []volumebackup.Archive) {
	for i := range mounts {
		a := mounts[i].Archive
		if a == nil {
			continue
		}
		at := slices.IndexFunc(volumes, func(v volumebackup.Volume) bool { return v.Number == a.Index })
		if at < 0 || volumes[at].Excluded == nil {
			continue
		}
		recorded := *volumes[at].Excluded
		if from := slices.IndexFunc(archives, func(found volumebackup.Archive) bool { return found.Number == a.Index }); from >= 0 {
			recorded.Entries = archives[from].Excluded
		}
		a.Excluded = &recorded
	}
}
