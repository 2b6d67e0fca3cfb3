package stoppable

// A cursor reads the bytes of a WebAssembly module. It panics behind their end.
type cursor struct {
	data []byte
	at   int
}

func (r *cursor) byte() byte {
	b := r.data[r.at]
	r.at++
	return b
}

func (r *cursor) bytes(n uint64) []byte {
	b := r.data[r.at:][: int(n) : len(r.data)-r.at] // not beyond the end, where the slice has room
	r.at += int(n)
	return b
}

// number reads an unsigned number in LEB128.
func (r *cursor) number() (n uint64) {
	for shift := 0; ; shift += 7 {
		b := r.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
}

// numbers skips some numbers in LEB128, signed or not.
func (r *cursor) numbers(count int) bool {
	for range count {
		r.number()
	}
	return true
}

// skip skips some bytes.
func (r *cursor) skip(count int) bool {
	r.bytes(uint64(count))
	return true
}

// skipOperands skips the operands of an instruction, and reports whether the instruction is
// known (WebAssembly 2.0 with exceptions, 5.4).
func (r *cursor) skipOperands(op byte) bool {
	// Opcodes with a form of their own come first; the ranges below hold what is left.
	switch {
	case op == 0x0e: // br_table
		return r.numbers(int(r.number()) + 1)
	case op == 0x1c: // select with types
		return r.numbers(int(r.number()))
	case op == 0x1f:
		return r.skipTry()
	case op == 0xfc:
		return r.skipBulk()
	case op == 0xfd:
		return r.skipVector()
	case op == 0x43: // f32.const
		return r.skip(4)
	case op == 0x44: // f64.const
		return r.skip(8)
	case op == 0x11, op == 0x13, op >= 0x28 && op <= 0x3e: // call_indirect, loads and stores
		return r.numbers(2)
	case op >= 0x02 && op <= 0x04, op >= 0x06 && op <= 0x09, op == 0x0c, op == 0x0d, op == 0x10, op == 0x12, op == 0x18,
		op >= 0x20 && op <= 0x26, op >= 0x3f && op <= 0x42, op == 0xd0, op == 0xd2:
		return r.numbers(1)
	}

	return op <= 0x01 || op == 0x05 || op == 0x0a || op == 0x0b || op == 0x0f || op == 0x19 || op == 0x1a || op == 0x1b ||
		op >= 0x45 && op <= 0xc4 || op == 0xd1
}

// skipTry skips the operands of try_table: a type, and the clauses that catch.
func (r *cursor) skipTry() bool {
	r.number()

	for range r.number() {
		kind := r.byte()
		if kind > 3 {
			return false
		}
		// The clauses of kinds 0 and 1 name the tag that they catch.
		if kind < 2 { // of a tag
			r.number()
		}
		r.number()
	}

	return true
}

// skipBulk skips an instruction on much memory, or a conversion that saturates.
func (r *cursor) skipBulk() bool {
	switch op := r.number(); {
	case op <= 7:
		return true
	case op == 8, op == 10, op == 12, op == 14:
		return r.numbers(2)
	case op <= 17:
		return r.numbers(1)
	}
	return false
}

// skipVector skips an instruction on a vector.
func (r *cursor) skipVector() bool {
	switch op := r.number(); {
	case op <= 11, op == 92, op == 93: // load, store
		return r.numbers(2)
	case op == 12, op == 13: // constant, shuffle
		return r.skip(16)
	case op >= 21 && op <= 34: // of a lane
		return r.skip(1)
	case op >= 84 && op <= 91: // load and store of a lane
		return r.numbers(2) && r.skip(1)
	case op <= 275:
		return true
	}
	return false
}
