// Package tuple encodes tuples of values as byte strings that sort as the
// tuples do, byte for byte like FoundationDB's tuple layer, but without its C
// library. Its system of record is design/tuple.md of apple/foundationdb.
//
// There are two interfaces. Pack and Unpack handle whole tuples of any shape and are
// convenient. The typed Append functions and Reader handle one element at a time
// and do not allocate; they are for code that encodes and decodes keys of known
// shape.
//
// It is pure and imports nothing of the project.
package tuple

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// MaxDepth bounds the nesting of tuples, and so the stack that a hostile key can
// make Unpack use.
const MaxDepth = 100

// MaxIntSize is the magnitude, in bytes, of the largest integer with an
// encoding.
const MaxIntSize = 255

// A Tuple is an ordered list of elements, each of them one of:
//
//	nil
//	[]byte
//	string
//	int, int64, uint, uint64, *big.Int
//	float32, float64
//	bool
//	UUID
//	Versionstamp
//	Tuple
//
// Unpack returns an integer as int64 if it fits, otherwise as uint64 if it fits,
// otherwise as *big.Int.
type Tuple []any

// A UUID is sixteen bytes in network order.
type UUID [16]byte

// String returns the usual spelling with dashes.
func (u UUID) String() string {
	s := hex.EncodeToString(u[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// A Versionstamp orders keys by the commit that wrote them, and within a commit
// by User.
type Versionstamp struct {
	Transaction [10]byte // set by the store; all 0xFF while incomplete
	User        uint16
}

// Incomplete returns a versionstamp whose first ten bytes the store fills in at
// commit; see PackWithVersionstamp.
func Incomplete(user uint16) Versionstamp {
	return Versionstamp{Transaction: incomplete, User: user}
}

// IsIncomplete reports whether the store has not yet filled in v.
func (v Versionstamp) IsIncomplete() bool { return v.Transaction == incomplete }

// String returns the stamp in hexadecimal, with the user's part after a colon.
func (v Versionstamp) String() string {
	return fmt.Sprintf("%x:%04x", v.Transaction, v.User)
}

var incomplete = [10]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}

// ErrMalformed is wrapped by every error of decoding.
var ErrMalformed = errors.New("tuple: malformed")

// Type codes. They are in the order in which values of different types sort.
const (
	codeNil          = 0x00
	codeBytes        = 0x01
	codeText         = 0x02
	codeNested       = 0x05
	codeBigNegative  = 0x0b
	codeZero         = 0x14 // ± the size in bytes of other integers
	codeBigPositive  = 0x1d
	codeFloat32      = 0x20
	codeFloat64      = 0x21
	codeFalse        = 0x26
	codeTrue         = 0x27
	codeUUID         = 0x30
	codeVersionstamp = 0x33

	terminator = 0x00
	escape     = 0xff // follows a terminator byte that is data
)

// Pack returns the encoding of t. It panics as Append does.
func (t Tuple) Pack() []byte {
	return Append(make([]byte, 0, 16*len(t)), t...)
}

// PackWithVersionstamp returns prefix followed by the encoding of t, which must hold
// exactly one incomplete versionstamp, and the offset in key at which the store
// will fill in its ten bytes.
func (t Tuple) PackWithVersionstamp(prefix []byte) (key []byte, offset int, err error) {
	e := encoder{dst: append(make([]byte, 0, len(prefix)+16*len(t)), prefix...)}
	e.appendElements(t, 0)
	if len(e.incomplete) != 1 {
		return nil, 0, fmt.Errorf("tuple: %d incomplete versionstamps in %v, need exactly one",
			len(e.incomplete), t)
	}
	return e.dst, e.incomplete[0], nil
}

// Range returns the keys [begin, end) of all longer tuples that begin with t.
func (t Tuple) Range() (begin, end []byte) { return Range(t.Pack()) }

// Range returns the keys [begin, end) of all tuples that are longer than, and
// begin with, the one whose encoding is packed.
func Range(packed []byte) (begin, end []byte) {
	n := len(packed) + 1
	both := make([]byte, 2*n)
	copy(both, packed)
	copy(both[n:], packed)
	both[2*n-1] = 0xff
	return both[:n:n], both[n:]
}

// Unpack returns the tuple that b encodes. A tuple has exactly one encoding: Pack
// turns the result into b again.
func Unpack(b []byte) (Tuple, error) {
	r := NewReader(b)
	t := r.readElements()
	if err := r.Done(); err != nil {
		return nil, err
	}
	return t, nil
}

// String returns t in a form for people, with strings quoted and byte strings
// in hexadecimal.
func (t Tuple) String() string {
	var b strings.Builder
	b.WriteByte('(')
	for i, e := range t {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(formatElement(e))
	}
	b.WriteByte(')')
	return b.String()
}

func formatElement(element any) string {
	switch e := element.(type) {
	case nil:
		return "nil"
	case string:
		return strconv.Quote(e)
	case []byte:
		return "0x" + hex.EncodeToString(e)
	case *big.Int:
		return e.String()
	default:
		return fmt.Sprint(e)
	}
}
