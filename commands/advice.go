package commands

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runs"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// explain is the text of an error as users see it: what is wrong, and what they
// can do about it. The engine's errors know no flags; all advice is here.
func explain(err error) string {
	if told, ok := err.(reported); ok { //nolint:errorlint // what it wraps may be several
		err = told.error
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var lines []string
		for _, one := range joined.Unwrap() {
			lines = append(lines, explain(one))
		}
		return strings.Join(lines, "\n")
	}
	if stuck, ok := errors.AsType[*replace.UndoError](err); ok {
		return fmt.Sprintf("container %s could not be put back: %s\n%s", stuck.Container, explain(stuck.Err), plain(stuck.State))
	}
	if problems, ok := errors.AsType[*plan.ProblemsError](err); ok {
		return explainProblems(problems)
	}
	message := plain(connectionError(err).Error())
	if next := advice(err); next != "" {
		message += "\n" + next
	}
	return message
}

// advice is the next step for an error that has one.
func advice(err error) string {
	if none, ok := errors.AsType[*catalog.NotFoundError](err); ok {
		if none.Lost {
			return "'docker snapshot ls' lists the snapshots there are, and 'docker snapshot ls --lost' those that have lost their images"
		}
		return "'docker snapshot ls' lists the snapshots there are"
	}
	if untagged, ok := errors.AsType[*catalog.UntaggedError](err); ok {
		return fmt.Sprintf("This makes it whole again: docker tag %s %s", untagged.Ref, untagged.IDRef)
	}
	if state, ok := errors.AsType[*catalog.StateError](err); ok {
		return fmt.Sprintf("Write out what is attached to it: docker snapshot cat %s NAME", state.ID)
	}
	if taken, ok := errors.AsType[*catalog.LineError](err); ok {
		if taken.IsLine {
			return "Rename the container, or remove the states of the line"
		}
		return "Use another line"
	}
	if named, ok := errors.AsType[*catalog.ContainerError](err); ok {
		return fmt.Sprintf("Name one of those that 'docker snapshot ls %s' lists, or use --all for all of them", named.Name)
	}
	if _, ok := errors.AsType[*diff.GoneError](err); ok {
		return "Name a second snapshot to compare with, or another container"
	}
	if _, ok := errors.AsType[*catalog.AmbiguousError](err); ok {
		return "Use one of these, or more of the ID"
	}
	if taken, ok := errors.AsType[*catalog.NameTakenError](err); ok {
		if !taken.Reuse {
			return "Use another name, or free this one, if nobody needs what has it: docker image rm " + taken.Tag
		}
		return "Use another name, or --reuse to replace it"
	}
	if pinned, ok := errors.AsType[*catalog.PinnedError](err); ok {
		if pinned.Replaced {
			return fmt.Sprintf("Use another name, or remove it first: docker snapshot rm --force %s", pinned.ID)
		}
		return "Use --force to remove it anyway"
	}
	return containerAdvice(err)
}

// containerAdvice is the next step for an error about what a container does, or what an operation on one left.
func containerAdvice(err error) string {
	if unknown, ok := errors.AsType[*replace.UnknownJournalError](err); ok {
		return "If you know of no operation that it belongs to, remove it: docker rm " + unknown.Worker
	}
	if _, ok := errors.AsType[*removal.InterruptedError](err); ok {
		return "Put that right first: docker snapshot recover"
	}
	if pending, ok := errors.AsType[*replace.PendingError](err); ok {
		return "Wait for it, or type: docker snapshot recover " + pending.Container
	}
	if stale, ok := errors.AsType[*dockerop.StaleTaskError](err); ok {
		return fmt.Sprintf("End that process on the engine's machine (this finds it: pgrep -af 'containerd-shim.*%s'), or restart the machine. Then try again", stale.Container)
	}
	if _, ok := errors.AsType[*dockerop.FreezeError](err); ok {
		return "Use --pause=none to take it while it runs; what is captured may be torn"
	}
	if _, ok := errors.AsType[*replace.RefusedError](err); ok {
		return "Use an option of restore to change that (--memory, --cpus, --network, -p …), or leave out --replace for a copy"
	}
	if none, ok := errors.AsType[*replace.NotCopyError](err); ok {
		return "This lists the copies there are: docker ps --all --filter label=" + labels.KeyCopyOf + "; to go back to a snapshot of " + none.Container + ", use restore --replace"
	}
	if none, ok := errors.AsType[*replace.NoUndoError](err); ok {
		return fmt.Sprintf("'docker snapshot ls %s' lists the snapshots that restore --replace can bring back", none.Container)
	}
	if self, ok := errors.AsType[*dockerop.SelfError](err); ok {
		if self.Stop {
			return "Run it elsewhere"
		}
		return "Run it elsewhere, or use --pause=none; what is captured may then be torn"
	}
	return adviceOnUse(err)
}

// adviceOnUse is the next step for an error about what somebody uses.
func adviceOnUse(err error) string {
	if used, ok := errors.AsType[*copies.InUseError](err); ok {
		if len(used.Volumes) > 0 {
			return "Remove what mounts the volumes first, or use --force to keep these and remove the rest"
		}
		return "Stop them first, or use --force to remove them anyway"
	}
	if used, ok := errors.AsType[*replace.InUseError](err); ok {
		return "Stop container " + used.User + ", then type: docker snapshot recover " + used.Container
	}
	return storeAdvice(err)
}

// storeAdvice is the next step for an error about what a store holds, or should hold.
func storeAdvice(err error) string {
	if none, ok := errors.AsType[*archives.NoAttachmentError](err); ok {
		return fmt.Sprintf("It has those that this lists: docker snapshot inspect --format '{{json .Attachments}}' %s", none.Snapshot)
	}
	if none, ok := errors.AsType[*extract.NoPathError](err); ok {
		if none.Volume == "" {
			return fmt.Sprintf("This lists what there is: docker snapshot cp %s:/ - | tar t", none.Snapshot)
		}
		return fmt.Sprintf("This lists what there is: docker snapshot inspect --files %s %s", none.Snapshot, none.Volume)
	}
	if unknown, ok := errors.AsType[*replace.UnknownPathError](err); ok {
		return fmt.Sprintf("Name paths as the container sees them. This lists the files: docker snapshot inspect --files %s", unknown.Snapshot)
	}
	if _, ok := errors.AsType[*diff.UnknownPathError](err); ok {
		return "Name paths as the container sees them. This lists the files of a snapshot: docker snapshot inspect --files SNAPSHOT"
	}
	if large, ok := errors.AsType[*extract.TooLargeError](err); ok {
		return fmt.Sprintf("Write both out, and compare those: docker snapshot cp SNAPSHOT:%s DEST, or docker cp for the container as it is", large.Path)
	}
	if none, ok := errors.AsType[*extract.NotHeldError](err); ok {
		return fmt.Sprintf("This says of each mount whether it is: docker snapshot inspect --format '{{json .Mounts}}' %s", none.Snapshot)
	}
	if large, ok := errors.AsType[*volumebackup.LimitError](err); ok {
		return limitAdvice(large)
	}
	if _, ok := errors.AsType[*volumebackup.FullError](err); ok {
		return "Free space with docker snapshot rm"
	}
	if missing, ok := errors.AsType[*volumebackup.MissingError](err); ok {
		return fmt.Sprintf("Was volume %s removed (docker volume prune)? Use another snapshot, or the --store that holds this one", missing.Store) + restOf(missing.Snapshot)
	}
	if none, ok := errors.AsType[*volumebackup.NoStoreError](err); ok {
		return fmt.Sprintf("Was volume %s removed (docker volume prune)? Use the --store that holds this snapshot", none.Store) + restOf(none.Snapshot)
	}
	if none, ok := errors.AsType[*archives.NoBaseError](err); ok {
		return fmt.Sprintf("Get that image (docker pull), or put the volumes back into the container that is there: docker snapshot restore --lost --replace %s", none.Snapshot)
	}
	if other, ok := errors.AsType[*volumebackup.JournalVersionError](err); ok {
		return fmt.Sprintf("docker snapshot %s wrote it: recover with that version, or with a newer one", cmp.Or(plainVersion(other.Plugin), "of another version"))
	}
	return adviceOnTheMoment(err)
}

// restOf is how to get what a snapshot without its store still has.
func restOf(snapshot string) string {
	if snapshot == "" {
		return ""
	}
	return ". This brings back the rest, with empty volumes: docker snapshot restore --volumes none " + snapshot
}

// adviceOnStart is the next step for a container that did not come up.
func adviceOnStart(down *build.NotReadyError) string {
	text := "Use --wait=false to accept it as it is, or look for the cause in a copy, without --replace"
	switch {
	case down.Promoted:
		text = "Use --wait=false to promote it as it is, or look for the cause in the copy, which was left unchanged"
	case down.Copy:
		text = "Use --wait=false to keep it and look for the cause"
	}
	if down.Late {
		text += ". --health-timeout gives it longer"
	}
	return text
}

// adviceOnTheMoment is the next step for an error that is about what else happens on the engine, or about what is there.
func adviceOnTheMoment(err error) string {
	if held, ok := errors.AsType[*volumebackup.LockedError](err); ok {
		if held.Paused {
			return "Let it go on: docker unpause " + held.Holder
		}
		return "Wait for it, or wait longer with --lock-timeout"
	}
	if stopped, ok := errors.AsType[*volumebackup.PausedError](err); ok {
		return "Let it go on: docker unpause " + stopped.Worker
	}
	if down, ok := errors.AsType[*build.NotReadyError](err); ok {
		return adviceOnStart(down)
	}
	switch {
	case typed[*capture.HookError](err):
		return "Correct the hook, or let the container have the label cua.snapshot.policy.on-error=continue"
	case typed[*capture.LeftFrozenError](err):
		return "Put that right first: docker snapshot recover"
	case typed[*dockerop.PausedError](err), errors.Is(err, pending.ErrMoved), errors.Is(err, volumebackup.ErrLost):
		return "Try again"
	case typed[*dockerop.NoContainerError](err):
		return "'docker ps --all' lists the containers there are"
	case typed[*dockerop.FullError](err):
		return "Free space with docker snapshot rm, or elsewhere on the engine's disk"
	case typed[*labels.FieldError](err), cerrdefs.IsDataLoss(err):
		return "Use another snapshot: 'docker snapshot ls' lists them"
	}
	return adviceOnRuns(err)
}

// adviceOnRuns is the next step for an error about a run.
func adviceOnRuns(err error) string {
	if _, ok := errors.AsType[*catalog.RunNotFoundError](err); ok {
		return "'docker snapshot runs' lists the runs there are"
	}
	if other, ok := errors.AsType[*runs.OtherContainerError](err); ok {
		return "Use another --run-id than " + other.RunID
	}
	return ""
}

// plainVersion returns a version that was read from a label, or nothing if it does not
// look like one: anybody can write labels.
func plainVersion(text string) string {
	if len(text) > maxVersion || !plainWord.MatchString(text) {
		return ""
	}
	return text
}

const maxVersion = 100

// connectionError returns the Docker client's own error if it cannot reach the engine.
// That says enough: what we wanted from the engine does not matter.
func connectionError(err error) error {
	for inner := err; inner != nil && client.IsErrConnectionFailed(inner); inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

// solutions are the flags that solve each kind of problem.
var solutions = map[plan.ProblemKind]string{
	plan.ProblemNameTaken:    "use another --name",
	plan.ProblemTwoNetworks:  "remove all but one, by ID, with docker network rm, or use --network to join another",
	plan.ProblemNoNetwork:    "create it, use --network to join another, or --skip-missing to leave it out",
	plan.ProblemNoProject:    "run docker compose create in the project's directory, then try again",
	plan.ProblemNoBindSource: "create it, or use --skip-missing to leave it out (a copy takes --binds none, too)",
	plan.ProblemNoDevice:     "use --skip-missing to leave it out",
	plan.ProblemNoRuntime:    "use --skip-missing for the engine's default",
	plan.ProblemNoContainer:  "start or restore that one first, use --network (container:NAME) instead of its network, or --skip-missing to do without",
	plan.ProblemPeerGone:     "put back rootfs as well, with --only rootfs, or use --live",
	plan.ProblemNoVolume:     "use --skip-missing for an empty one",
	plan.ProblemPortTaken:    "stop what holds it, or use -p to publish another",
	plan.ProblemVolumeInUse:  "stop it, or use --stop-others",
	plan.ProblemDependent:    "restore a snapshot of that container together with this one, or remove that container first, and make it again afterwards",
	plan.ProblemNeedsRunning: "stop it first, and start it again afterwards, or use --live",
	plan.ProblemStopRemoves:  "use --live to freeze it instead, or put back rootfs as well, with --only rootfs",
	plan.ProblemNotMounted:   "leave it out of --only, or put back rootfs as well, with --only rootfs",
	plan.ProblemLostOneShot:  "use --live to freeze it instead",
	plan.ProblemLostUnused:   "leave out --replace to get the volumes in a container of their own",
	plan.ProblemLostNoTarget: "leave out --replace to get the volumes in a container of their own",
	plan.ProblemNoOriginal:   "put back rootfs as well, with --only rootfs",
	plan.ProblemAddressTaken: "free it, or use --network to join the network without it",
	plan.ProblemUnsaved:      "use --no-safety if that may be lost",
	plan.ProblemWhiteout:     "rename it, or use --no-safety if it may be lost",
	plan.ProblemSwarmTask:    "leave out --replace for a copy, or use --only with --live for its volumes alone",
	plan.ProblemOneShot:      "leave out --no-safety",
	plan.ProblemOtherOneShot: "stop it yourself, if it may be removed",
	plan.ProblemArchive:      "use another snapshot ('docker snapshot ls' lists them), the --store that holds this one, or --volumes none for the rest of it in a copy",
	plan.ProblemNoArchive:    "was that volume removed (docker volume prune)? Use another snapshot, the --store that holds this one, or --volumes none for the rest of it in a copy",
	plan.ProblemNoSpace:      "make room there first",
	plan.ProblemNotHeld:      "leave it out of --volume and --only",
	plan.ProblemRenamed:      "use --name to say which of the two to replace",
	plan.ProblemDead:         "remove it with docker rm, then try again",
	plan.ProblemContents:     "use snapshots that were taken together",
	plan.ProblemRelative:     "use --only to put back its volumes alone, or leave out --replace for a copy",
	plan.ProblemCopyState:    "stop it first, or wait until it runs",
	plan.ProblemCopyMount:    "what is there cannot take a place; copy it to where it belongs with docker cp",
	plan.ProblemCopyPort:     "stop the copy first, with docker stop",
	plan.ProblemHostAccess:   "if you trust it, use --allow", // and what it is
}

// explainProblems lists every problem with the flag that solves it.
func explainProblems(e *plan.ProblemsError) string {
	var b strings.Builder
	b.WriteString(e.Undone() + ":")
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "\n  - %s", oneLine(plain(p.Text)))
		if solution := solution(p, e.Promote); solution != "" {
			fmt.Fprintf(&b, ": %s", solution)
		}
	}
	return b.String()
}

// solution is what solves a problem of a restore, or of promote, which has few of the flags of a restore.
func solution(p plan.Problem, promote bool) string {
	text := solutions[p.Kind]
	switch {
	case p.Kind == plan.ProblemHostAccess && promote:
		return "" // only what is from elsewhere has to be allowed
	case p.Kind == plan.ProblemHostAccess:
		return text + " " + allowWord(p.Subject)
	case !promote:
		return text
	}
	namesOther := func(way string) bool {
		return slices.ContainsFunc(flagWord.FindAllString(way, -1), func(flag string) bool { return !slices.Contains(promoteSolutions, flag) })
	}
	ways := slices.DeleteFunc(strings.Split(text, ", "), namesOther)
	return strings.TrimPrefix(strings.Join(ways, ", "), "or ")
}

// promoteSolutions are the flags of promote that solve a problem.
var promoteSolutions = []string{"--name", "--stop-others", "--store"}

var flagWord = regexp.MustCompile(`\B--?[a-z][a-z-]*`)

// advised adds to the text of an event what users can do about it.
func (d deps) advised(p plan.Progress) plan.Progress {
	return func(e plan.Event) {
		switch e.Topic {
		case plan.TopicReadOnlyBind:
			e.Text += " (--binds shared: writable)"
		case plan.TopicOriginalGone:
			e.Text += ": --replace brings it back under its own name, with its own volumes"
		case plan.TopicLost:
			e.Text += fmt.Sprintf(". 'docker snapshot ls --lost' lists them, and 'docker snapshot restore --lost %s' brings the volumes of one back. %s", e.Subject, protectHint)
		case plan.TopicCleaned:
			e.Text += ". 'docker snapshot ls --lost' lists those, and 'docker snapshot restore --lost' brings their volumes back. " + protectHint
		case plan.TopicUnfinished:
			e.Text += ". " + d.recoveryHint(e.Subject)
		}
		p(e)
	}
}

// protectHint is how to keep snapshots from being cleaned up.
const protectHint = "'docker snapshot protect' keeps that from happening again"

// recoveryHint is what to type if a container's restore in place has left something to do.
func (d deps) recoveryHint(container string) string {
	return "When the cause is removed, type: " + d.commandLine("recover", container)
}

// withGuard adds to an error that the guard goes on with what is left to do.
func withGuard(err error) error {
	if unfinished(err) == "" {
		return err
	}
	return errors.Join(err, fmt.Errorf("this is tried again in the background for %.0f minutes", guardPatience.Minutes()))
}

// withRecovery adds to an error what to type if the restore in place that it is about has
// left something to do.
func (d deps) withRecovery(err error) error {
	container := unfinished(err)
	if container == "" {
		return err
	}
	return errors.Join(err, errors.New(d.recoveryHint(container)))
}

// unfinished is the container whose restore in place has left something to do, or
// nothing.
func unfinished(err error) string {
	if stuck, ok := errors.AsType[*replace.UndoError](err); ok {
		return stuck.Container
	}
	if stopped, ok := errors.AsType[*replace.NotStartedError](err); ok {
		return stopped.Container
	}
	return ""
}
