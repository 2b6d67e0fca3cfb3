// Package stoppable makes a WebAssembly module that can be stopped from outside, of one that
// cannot: PDFium may be kept busy for ever by a file.
//
// It knows the form of modules, and nothing of PDF.
package stoppable

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A program in WebAssembly runs until it returns: nothing outside of it can end a loop, and
// while it runs, Go can neither move its goroutine off the thread nor collect garbage. The
// runtime's own remedy leaves the program at each turn of each loop, which made PDFium ten
// times slower. So stoppable adds a count to the program itself. Each turn of a loop takes one
// off. When the count is used up, the program calls a function that leaves to Go for a moment
// (it asks for no more memory), traps if the program is to stop, and begins the count anew.

// Variable is the name by which a stoppable module exports the variable that stops it: any
// number but zero does.
const Variable = "coditect_stop"

// loopTurns is how many turns of loops a module takes between two looks at that variable: a
// fraction of a millisecond.
const loopTurns = 1 << 16

// Sections of a module, in the order of the WebAssembly specification (2.0, 5.5.2).
const (
	typeSection     = 1
	importSection   = 2
	functionSection = 3
	globalSection   = 6
	exportSection   = 7
	codeSection     = 10
)

// errModule is the error of bytes that are not a module as it is known here.
var errModule = errors.New("not a WebAssembly module of the known form")

// A rewriter makes a module stoppable.
type rewriter struct {
	function uint64 // number of the first function of the module, behind the imported ones
	plain    uint64 // number of the type without parameters and results
	tick     uint64 // number of the added function
	count    uint64 // number of the variable with the turns that are left; that behind it stops
}

// Make returns a module that does what another does, and stops once its variable
// named Variable is set.
func Make(module []byte) (out []byte, err error) {
	defer func() { // bytes that end too early
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("pdf: %w: %v", errModule, p)
		}
	}()

	const preamble = "\x00asm\x01\x00\x00\x00"
	if len(module) < len(preamble) || string(module[:len(preamble)]) != preamble {
		return nil, errModule
	}

	var w rewriter
	out = append(out, preamble...)

	for r := (cursor{data: module, at: len(preamble)}); r.at < len(module); {
		id := r.byte()
		body := r.bytes(r.number())
		if body, err = w.section(id, body); err != nil {
			return nil, err
		}
		out = append(out, id)
		out = binary.AppendUvarint(out, uint64(len(body)))
		out = append(out, body...)
	}

	if w.count == 0 || w.tick == 0 {
		return nil, errModule
	}
	return out, nil
}

// section returns a section as the stoppable module has it.
func (w *rewriter) section(id byte, body []byte) ([]byte, error) {
	r := cursor{data: body}
	n := uint64(0)
	if id >= typeSection && id <= codeSection {
		n = r.number()
	}

	rest := r.data[r.at:]

	// A section of entries begins with how many it has, so what is added gets that number.
	switch id {
	case typeSection:
		w.plain = n
		return grown(n, rest, []byte{0x60, 0, 0}), nil
	case importSection:
		w.function = n // all are functions, which code checks
	case functionSection:
		w.tick = w.function + n
		return grown(n, rest, binary.AppendUvarint(nil, w.plain)), nil
	case globalSection:
		w.count = n
		variable := []byte{i32, 1, i32Const, 0, end} // that changes, and begins with 0
		return grown(n+1, rest, variable, variable), nil
	case exportSection:
		name := append([]byte{byte(len(Variable))}, Variable...)
		return grown(n, rest, name, []byte{3}, binary.AppendUvarint(nil, w.count+1)), nil
	case codeSection:
		return w.code(n, &r)
	}

	return body, nil
}

// grown returns a section of n elements with one more.
func grown(n uint64, elements []byte, more ...[]byte) []byte {
	out := append(binary.AppendUvarint(nil, n+1), elements...)
	for _, m := range more {
		out = append(out, m...)
	}
	return out
}

// Instructions and types (5.3, 5.4).
const (
	i32       = 0x7f
	noResult  = 0x40
	loop      = 0x03
	ifNotZero = 0x04
	end       = 0x0b
	call      = 0x10
	drop      = 0x1a
	globalGet = 0x23
	globalSet = 0x24
	grow      = 0x40
	i32Const  = 0x41
	i32Less   = 0x48 // of signed numbers
	i32Sub    = 0x6b
)

// code returns the section of the bodies of n functions.
func (w *rewriter) code(n uint64, r *cursor) ([]byte, error) {
	if w.function+n != w.tick {
		return nil, errModule
	}
	count, stop := binary.AppendUvarint(nil, w.count), binary.AppendUvarint(nil, w.count+1)

	// Each turn takes one off the count, and calls the added function once it is below
	// zero.
	var turn []byte
	for _, part := range [][]byte{
		{globalGet},
		count,
		{i32Const, 1, i32Sub, globalSet},
		count,
		{globalGet},
		count,
		{i32Const, 0, i32Less, ifNotZero, noResult, call},
		binary.AppendUvarint(nil, w.tick),
		{end},
	} {
		turn = append(turn, part...)
	}

	var out []byte
	for range n {
		f := cursor{data: r.bytes(r.number())}
		body, err := f.withTurns(turn)
		if err != nil {
			return nil, err
		}
		out = binary.AppendUvarint(out, uint64(len(body)))
		out = append(out, body...)
	}

	tick := []byte{0, i32Const, 0, grow, 0, drop, globalGet} // no variables of its own
	tick = append(append(tick, stop...), ifNotZero, noResult, unreachable, end, i32Const)
	tick = binary.AppendUvarint(tick, loopTurns) // which is the same as a signed number
	tick = append(append(append(tick, globalSet), count...), end)
	return grown(n, out, binary.AppendUvarint(nil, uint64(len(tick))), tick), nil
}

const unreachable = 0x00

// withTurns returns the body of a function with more instructions at the begin of each loop.
func (r *cursor) withTurns(more []byte) ([]byte, error) {
	for range r.number() { // kinds of variables
		r.number()
		r.byte()
	}

	var out []byte

	from := 0
	for r.at < len(r.data) {
		op := r.byte()
		if !r.skipOperands(op) {
			return nil, fmt.Errorf("pdf: %w: instruction %#x", errModule, op)
		}

		if op == loop {
			// The instructions stand right behind the beginning of the loop, so each turn
			// runs them.
			out = append(append(out, r.data[from:r.at]...), more...)
			from = r.at
		}
	}

	return append(out, r.data[from:]...), nil
}
