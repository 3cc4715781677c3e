// Package plan holds what an operation says before and while it works: the steps of its plan, the
// problems that prevent it, the events of its progress, and how long each phase took. It imports
// nothing of this program.
package plan
