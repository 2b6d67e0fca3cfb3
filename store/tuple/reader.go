package tuple

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
)

// A Kind is the type of an encoded element.
type Kind uint8

// Kinds of elements, in the order in which they sort.
const (
	End     Kind   = iota // the end of the tuple that is being read
	Nil                   //
	Bytes                 // []byte
	Text                  // string
	Nested                // Tuple
	Int                   // an integer of any size
	Float32               //
	Float64               //
	Bool                  //
	ID                    // UUID
	Stamp                 // Versionstamp
	Invalid               // no element begins like this
	kinds   = iota        // number of kinds
)

var kindNames = [kinds]string{
	"end", "nil", "bytes", "string", "tuple", "integer", "float32", "float64",
	"bool", "UUID", "versionstamp", "invalid",
}

// String returns the name of k.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		k = Invalid
	}
	return kindNames[k]
}

// A Reader decodes a tuple element by element. Each method reads the next element,
// which must be of its type. After the first error every read returns a zero value,
// and Err and Done return that error. So a caller may read a key to its end and
// check once.
//
// It does not allocate, except for errors and where a method says so.
type Reader struct {
	b     []byte
	at    int // of the next element in b
	depth int // number of open nested tuples
	err   error
}

// NewReader returns a reader of the tuple that b encodes. It keeps b.
func NewReader(b []byte) Reader { return Reader{b: b} }

// Err returns the first error, which wraps ErrMalformed.
func (r *Reader) Err() error { return r.err }

// Done returns the first error. Unread elements are an error.
func (r *Reader) Done() error {
	if r.err == nil && (r.at < len(r.b) || r.depth > 0) {
		r.fail("end of the tuple expected")
	}
	return r.err
}

// Rest returns the encoding of the unread elements.
func (r *Reader) Rest() []byte { return r.b[r.at:] }

// Kind returns the type of the next element without reading it.
func (r *Reader) Kind() Kind {
	if r.err != nil || r.at == len(r.b) {
		return End
	}

	switch code := r.b[r.at]; code {
	case codeNil:
		// In a nested tuple the code alone marks the end.
		if r.depth > 0 && !r.isEscaped(r.at) {
			return End
		}
		return Nil
	case codeBytes:
		return Bytes
	case codeText:
		return Text
	case codeNested:
		return Nested
	case codeFloat32:
		return Float32
	case codeFloat64:
		return Float64
	case codeFalse, codeTrue:
		return Bool
	case codeUUID:
		return ID
	case codeVersionstamp:
		return Stamp
	default:
		if codeBigNegative <= code && code <= codeBigPositive {
			return Int
		}
		return Invalid
	}
}

// Nil reads a null value.
func (r *Reader) Nil() {
	if r.expectKind(Nil) {
		r.at++
		if r.depth > 0 {
			r.at++ // the escape
		}
	}
}

// Bytes reads a byte string. The result is a part of the encoding if possible, and a
// copy if the string holds a zero byte. It is nil only after an error.
func (r *Reader) Bytes() []byte {
	if !r.expectKind(Bytes) {
		return nil
	}
	return r.readDelimited()
}

// Text reads a string. It allocates.
func (r *Reader) Text() string { return string(r.TextBytes()) }

// TextBytes reads a string as Bytes reads a byte string.
func (r *Reader) TextBytes() []byte {
	if !r.expectKind(Text) {
		return nil
	}
	return r.readDelimited()
}

// Int reads an integer that an int64 can hold.
func (r *Reader) Int() int64 {
	negative, magnitude := r.readSmallInt()
	switch {
	case negative && magnitude <= 1<<63:
		return -int64(magnitude)
	case !negative && magnitude < 1<<63:
		return int64(magnitude)
	default:
		r.fail("integer out of range for int64")
		return 0
	}
}

// Uint reads an integer that a uint64 can hold.
func (r *Reader) Uint() uint64 {
	negative, magnitude := r.readSmallInt()
	if negative {
		r.fail("negative integer where none is possible")
		return 0
	}
	return magnitude
}

// BigInt reads an integer of any size. It allocates.
func (r *Reader) BigInt() *big.Int {
	i := new(big.Int)
	if !r.expectKind(Int) {
		return i
	}

	code := r.b[r.at]
	if code != codeBigNegative && code != codeBigPositive {
		negative, magnitude := r.readSmallInt()
		return withSign(i.SetUint64(magnitude), negative)
	}

	if r.at+2 > len(r.b) {
		r.fail("integer cut short")
		return i
	}

	n, flip := int(r.b[r.at+1]), byte(0)
	if code == codeBigNegative {
		n, flip = 0xff-n, 0xff
	}

	digits := r.readFixed(2, n)
	// A tuple has exactly one encoding.
	if r.err == nil && (n <= 8 || digits[0]^flip == 0) {
		r.fail("integer longer than necessary")
	}
	if r.err != nil {
		return i
	}

	magnitude := make([]byte, n)
	for j, d := range digits {
		magnitude[j] = d ^ flip
	}

	return withSign(i.SetBytes(magnitude), code == codeBigNegative)
}

func withSign(magnitude *big.Int, negative bool) *big.Int {
	if negative {
		return magnitude.Neg(magnitude)
	}
	return magnitude
}

// Float32 reads a floating point number.
func (r *Reader) Float32() float32 {
	if !r.expectKind(Float32) {
		return 0
	}

	b := r.readFixed(1, 4)
	if b == nil {
		return 0
	}

	u := binary.BigEndian.Uint32(b)
	if u>>31 != 0 {
		return math.Float32frombits(u &^ (1 << 31))
	}
	return math.Float32frombits(^u)
}

// Float64 reads a floating point number.
func (r *Reader) Float64() float64 {
	if !r.expectKind(Float64) {
		return 0
	}

	b := r.readFixed(1, 8)
	if b == nil {
		return 0
	}

	u := binary.BigEndian.Uint64(b)
	if u>>63 != 0 {
		return math.Float64frombits(u &^ (1 << 63))
	}
	return math.Float64frombits(^u)
}

// Bool reads a truth value.
func (r *Reader) Bool() bool {
	if !r.expectKind(Bool) {
		return false
	}
	r.at++
	return r.b[r.at-1] == codeTrue
}

// UUID reads a UUID.
func (r *Reader) UUID() (u UUID) {
	if r.expectKind(ID) {
		copy(u[:], r.readFixed(1, len(u)))
	}
	return u
}

// Versionstamp reads a versionstamp.
func (r *Reader) Versionstamp() (v Versionstamp) {
	if !r.expectKind(Stamp) {
		return v
	}
	if b := r.readFixed(1, 12); b != nil {
		v.User = binary.BigEndian.Uint16(b[copy(v.Transaction[:], b):])
	}
	return v
}

// Open enters a nested tuple. The next calls read its elements until Kind returns
// End and Close leaves it.
func (r *Reader) Open() {
	if !r.expectKind(Nested) {
		return
	}
	if r.depth == MaxDepth {
		r.fail(fmt.Sprintf("nested deeper than %d", MaxDepth))
		return
	}
	r.at++
	r.depth++
}

// Close leaves a nested tuple after its last element.
func (r *Reader) Close() {
	switch {
	case r.err != nil:
	case r.depth == 0 || r.at == len(r.b):
		r.fail("nested tuple without an end")
	case r.expectKind(End):
		r.at++
		r.depth--
	}
}

// Skip reads and drops an element of any type. It may allocate.
func (r *Reader) Skip() {
	switch r.Kind() {
	case Bytes:
		r.Bytes()
	case Text:
		r.TextBytes()
	default:
		r.readElement()
	}
}

// expectKind reports whether the next element is of kind k.
func (r *Reader) expectKind(k Kind) bool {
	if r.err != nil {
		return false
	}
	if got := r.Kind(); got != k {
		r.fail(fmt.Sprintf("%v expected, found %v", k, got))
		return false
	}
	return true
}

// fail records the first error only.
func (r *Reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: byte %d of %d: %s", ErrMalformed, r.at, len(r.b), what)
	}
}

// isEscaped reports whether the zero byte at i is escaped, so that it is data.
func (r *Reader) isEscaped(i int) bool { return i+1 < len(r.b) && r.b[i+1] == escape }

// readFixed reads an element of n bytes after a head.
func (r *Reader) readFixed(head, n int) []byte {
	begin, end := r.at+head, r.at+head+n
	if end > len(r.b) {
		r.fail("element cut short")
		return nil
	}
	r.at = end
	return r.b[begin:end:end]
}

// readDelimited reads a string up to its terminator.
func (r *Reader) readDelimited() []byte {
	begin := r.at + 1
	var unescaped []byte
	for i := begin; ; {
		n := bytes.IndexByte(r.b[i:], terminator)
		if n < 0 {
			r.fail("string without an end")
			return nil
		}

		end := i + n
		if !r.isEscaped(end) {
			r.at = end + 1
			if unescaped == nil {
				return r.b[begin:end:end]
			}
			return append(unescaped, r.b[i:end]...)
		}

		// The zero byte is data: it is kept, and its escape is dropped.
		unescaped = append(unescaped, r.b[i:end+1]...)
		i = end + 2
	}
}

// readSmallInt reads an integer of at most eight bytes.
func (r *Reader) readSmallInt() (negative bool, magnitude uint64) {
	if !r.expectKind(Int) {
		return false, 0
	}

	n := int(r.b[r.at]) - codeZero
	if negative = n < 0; negative {
		n = -n
	}

	if n > 8 {
		r.fail("integer of more than eight bytes")
		return false, 0
	}

	for _, d := range r.readFixed(1, n) {
		magnitude = magnitude<<8 | uint64(d)
	}
	if negative {
		magnitude ^= 1<<(8*n) - 1 // all ones for n = 8
	}

	if r.err == nil && byteLength(magnitude) != n {
		r.fail("integer longer than necessary")
	}
	if r.err != nil {
		return false, 0
	}

	return negative, magnitude
}

func (r *Reader) readElements() Tuple {
	t := Tuple{}
	for r.Kind() != End {
		t = append(t, r.readElement())
	}
	return t
}

func (r *Reader) readElement() any {
	switch k := r.Kind(); k {
	case Nil:
		r.Nil()
		return nil
	case Bytes:
		return bytes.Clone(r.Bytes())
	case Text:
		return r.Text()
	case Nested:
		r.Open()
		t := r.readElements()
		r.Close()
		return t
	case Int:
		return r.readInteger()
	case Float32:
		return r.Float32()
	case Float64:
		return r.Float64()
	case Bool:
		return r.Bool()
	case ID:
		return r.UUID()
	case Stamp:
		return r.Versionstamp()
	default:
		r.fail(fmt.Sprintf("element expected, found %v", k))
		return nil
	}
}

// readInteger returns the smallest type that holds the next element.
func (r *Reader) readInteger() any {
	i := r.BigInt()
	switch {
	case i.IsInt64():
		return i.Int64()
	case i.IsUint64():
		return i.Uint64()
	default:
		return i
	}
}
