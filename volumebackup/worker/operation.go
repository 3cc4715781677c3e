//go:build linux

package worker

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// operations are the handlers of all operations: one line for each.
var operations = index(
	on((*session).begin),
	on((*session).pass),
	on((*session).attach),
	on((*session).publish),
	on((*session).discard),
	on((*session).check),
	on((*session).secure),
	on((*session).restore),
	on((*session).fill),
	on((*session).verify),
	on((*session).remove),
	on((*session).record),
	on((*session).lost),
	on((*session).list),
	on((*session).extract),
	on((*session).diff),
	on((*session).known),
	on((*session).learn),
	on((*session).recall),
	on((*session).attachment),
	on((*session).usage),
	on((*session).journal),
	withoutStore(on((*session).walk)),
	withoutStore(on((*session).freeze)),
)

// handler answers one operation.
type handler struct {
	op      protocol.Op
	answer  answer
	noStore bool // it needs none, and none is mounted
}

type answer func(s *session, ctx context.Context, arguments protocol.Arguments, e *exchange) (any, error)

// on makes a handler of a method, for the operation that takes its arguments.
func on[A protocol.Arguments, R any](method func(*session, context.Context, A, *exchange) (R, error)) handler {
	var none A
	return handler{op: none.Op(), answer: func(s *session, ctx context.Context, arguments protocol.Arguments, e *exchange) (any, error) {
		return method(s, ctx, arguments.(A), e)
	}}
}

// withoutStore is the handler of an operation that needs no store.
func withoutStore(h handler) handler {
	h.noStore = true
	return h
}

func index(all ...handler) map[protocol.Op]handler {
	byOp := make(map[protocol.Op]handler, len(all))
	for _, h := range all {
		byOp[h.op] = h
	}
	return byOp
}
