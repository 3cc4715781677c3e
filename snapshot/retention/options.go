package retention

import "time"

// Options says what to prune.
type Options struct {
	Policy Policy // the user's settings
	Limits Limits // what was asked for this time
	// Known are policies that are known already, by the names of lines. Labels and Limits do not
	// change them.
	Known map[string]Policy
	// All also removes snapshots that have a name or were taken by hand, and counts them.
	All bool
	// Force, together with All, also removes the newest snapshot of a container.
	Force  bool
	DryRun bool // change nothing
	// Automatic leaves out the containers whose policy has no automatic cleanup.
	Automatic bool
	// ExpiredOnly removes what has expired, and nothing else.
	ExpiredOnly bool
}

// Limits override those of a policy, also of one that a container's labels have changed. Nil leaves
// the policy's; 0 means no limit.
type Limits struct {
	KeepLast  *int           // of each line, and of those that agents took of it
	MaxTotal  *int           // of all lines together
	MaxSize   *int64         // bytes
	OlderThan *time.Duration // what is older goes
}

// Of returns the policy for a container with these labels. It returns an error for each label that
// cannot be read, and passes over that label.
func (o Options) Of(containerLabels map[string]string) (Policy, []error) {
	p, wrong := o.Policy.ForContainer(containerLabels)
	return o.Limits.override(p), wrong
}

// InAll returns the policy for all containers together.
func (o Options) InAll() Policy { return o.Limits.override(o.Policy) }

func (l Limits) override(p Policy) Policy {
	overrideOne(&p.MaxSnapshots, l.KeepLast)
	overrideOne(&p.MaxAgent, l.KeepLast)
	overrideOne(&p.MaxTotal, l.MaxTotal)
	overrideOne(&p.MaxSize, l.MaxSize)
	overrideOne(&p.MaxAge, l.OlderThan)
	return p
}

func overrideOne[T any](field, given *T) {
	if given != nil {
		*field = *given
	}
}
