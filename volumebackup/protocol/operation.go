package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/containerd/errdefs"
)

// Op names an operation.
type Op string

// Arguments are what one operation takes. Each operation has its own type of them.
type Arguments interface {
	// Op is the operation that takes them.
	Op() Op
	validate() error
}

// operations are all operations there are: one line for each.
var operations = index(
	decoder[BeginRequest],
	decoder[PassRequest],
	decoder[AttachRequest],
	decoder[PublishRequest],
	decoder[DiscardRequest],
	decoder[CheckRequest],
	decoder[SecureRequest],
	decoder[RestoreRequest],
	decoder[FillRequest],
	decoder[VerifyRequest],
	decoder[RemoveRequest],
	decoder[RecordRequest],
	decoder[LostRequest],
	decoder[ListRequest],
	decoder[ExtractRequest],
	decoder[DiffRequest],
	decoder[KnownRequest],
	decoder[LearnRequest],
	decoder[RecallRequest],
	decoder[WalkRequest],
	decoder[AttachmentRequest],
	decoder[UsageRequest],
	decoder[JournalRequest],
	decoder[FreezeRequest],
)

// Operations lists the names of all operations, for whoever has to serve each of them to check that it does.
func Operations() []Op {
	var all []Op
	for op := range operations {
		all = append(all, op)
	}
	slices.Sort(all)
	return all
}

// decode reads the arguments of one operation.
type decode func(text []byte) (Arguments, error)

// decoder returns an operation's name, and how to read its arguments. It refuses fields that the operation does not
// have.
func decoder[A Arguments]() (Op, decode) {
	var none A
	return none.Op(), func(text []byte) (Arguments, error) {
		var a A
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err := d.Decode(&a)
		return a, err
	}
}

func index(all ...func() (Op, decode)) map[Op]decode {
	byName := make(map[Op]decode, len(all))
	for _, one := range all {
		op, decode := one()
		byName[op] = decode
	}
	return byName
}

// MaxItems bounds every list inside a request.
const MaxItems = 100_000

// checkItems refuses a list of arguments that is too long.
func checkItems(count int) error {
	if count > MaxItems {
		return fmt.Errorf("%d items: %w", count, errdefs.ErrInvalidArgument)
	}
	return nil
}

// None is the result of an operation that has nothing to say but that it is done.
type None struct{}
