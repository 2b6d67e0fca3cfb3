package tuple

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

// Append appends the encodings of elements to dst. It panics on mistakes of the
// program: an element that is not of a type of Tuple, an incomplete versionstamp,
// an integer above MaxIntSize, nesting deeper than MaxDepth.
func Append(dst []byte, elements ...any) []byte {
	e := encoder{dst: dst}
	e.appendElements(elements, 0)
	if len(e.incomplete) > 0 {
		panic("tuple: incomplete versionstamp outside PackWithVersionstamp")
	}
	return e.dst
}

// AppendNil appends the null value.
func AppendNil(dst []byte) []byte { return append(dst, codeNil) }

// AppendBytes appends a byte string.
func AppendBytes(dst, b []byte) []byte { return appendEscaped(append(dst, codeBytes), b) }

// AppendString appends a string of text, which should be valid UTF-8.
func AppendString(dst []byte, s string) []byte { return appendEscaped(append(dst, codeText), s) }

func appendEscaped[T string | []byte](dst []byte, s T) []byte {
	begin := 0
	for i := 0; i < len(s); i++ {
		if s[i] == terminator {
			dst = append(dst, s[begin:i+1]...)
			dst = append(dst, escape)
			begin = i + 1
		}
	}
	dst = append(dst, s[begin:]...)
	return append(dst, terminator)
}

// AppendInt appends an integer.
func AppendInt(dst []byte, i int64) []byte {
	if i >= 0 {
		return AppendUint(dst, uint64(i))
	}
	magnitude := -uint64(i)
	n := byteLength(magnitude)
	return appendLow(append(dst, byte(codeZero-n)), ^magnitude, n)
}

// AppendUint appends an integer that is not negative. The encoding is the same as
// that of AppendInt where both apply.
func AppendUint(dst []byte, u uint64) []byte {
	n := byteLength(u)
	return appendLow(append(dst, byte(codeZero+n)), u, n)
}

// byteLength returns how many bytes u needs.
func byteLength(u uint64) int { return (bits.Len64(u) + 7) / 8 }

// appendLow appends the n low bytes of u, the high ones first.
func appendLow(dst []byte, u uint64, n int) []byte {
	end := len(dst) + n
	return binary.BigEndian.AppendUint64(dst, u<<(64-8*n))[:end]
}

// AppendBigInt appends an integer of any size up to MaxIntSize, and panics above
// it.
func AppendBigInt(dst []byte, i *big.Int) []byte {
	n := (i.BitLen() + 7) / 8
	if n > MaxIntSize {
		panic(fmt.Sprintf("tuple: integer of %d bytes, at most %d can be encoded", n, MaxIntSize))
	}

	var flip byte // negative numbers are stored as one's complement
	switch {
	case i.Sign() < 0 && n > 8:
		dst = append(dst, codeBigNegative, ^byte(n))
		flip = 0xff
	case i.Sign() < 0:
		dst = append(dst, byte(codeZero-n))
		flip = 0xff
	case n > 8:
		dst = append(dst, codeBigPositive, byte(n))
	default:
		dst = append(dst, byte(codeZero+n))
	}

	begin := len(dst)
	dst = append(dst, make([]byte, n)...)
	i.FillBytes(dst[begin:])
	for j := begin; j < len(dst); j++ {
		dst[j] ^= flip
	}

	return dst
}

// AppendFloat32 appends a floating point number. They sort by IEEE's total
// order.
func AppendFloat32(dst []byte, f float32) []byte {
	u := math.Float32bits(f)
	if u>>31 != 0 {
		u = ^u
	} else {
		u |= 1 << 31
	}
	return binary.BigEndian.AppendUint32(append(dst, codeFloat32), u)
}

// AppendFloat64 appends a floating point number. It sorts after every float32.
func AppendFloat64(dst []byte, f float64) []byte {
	u := math.Float64bits(f)
	if u>>63 != 0 {
		u = ^u
	} else {
		u |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(append(dst, codeFloat64), u)
}

// AppendBool appends a truth value.
func AppendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, codeTrue)
	}
	return append(dst, codeFalse)
}

// AppendUUID appends a UUID.
func AppendUUID(dst []byte, u UUID) []byte { return append(append(dst, codeUUID), u[:]...) }

// AppendVersionstamp appends a versionstamp. If it is incomplete, the store must
// fill in the ten bytes that begin at len(dst)+1.
func AppendVersionstamp(dst []byte, v Versionstamp) []byte {
	dst = append(append(dst, codeVersionstamp), v.Transaction[:]...)
	return binary.BigEndian.AppendUint16(dst, v.User)
}

// An encoder appends elements of any type.
type encoder struct {
	dst        []byte
	incomplete []int // offsets of incomplete versionstamps
}

func (e *encoder) appendElements(t []any, depth int) {
	for i, element := range t {
		if !e.appendElement(element, depth) {
			panic(fmt.Sprintf("tuple: element %d is of type %T, which has no encoding", i, element))
		}
	}
}

func (e *encoder) appendElement(element any, depth int) bool {
	switch v := element.(type) {
	case nil:
		e.appendNull(depth)
	case []byte:
		e.dst = AppendBytes(e.dst, v)
	case string:
		e.dst = AppendString(e.dst, v)
	case bool:
		e.dst = AppendBool(e.dst, v)
	case Tuple:
		e.appendNested(v, depth+1)
	case UUID:
		e.dst = AppendUUID(e.dst, v)
	case Versionstamp:
		e.appendVersionstamp(v)
	default:
		return e.appendNumber(element)
	}
	return true
}

func (e *encoder) appendNumber(element any) bool {
	switch v := element.(type) {
	case int:
		e.dst = AppendInt(e.dst, int64(v))
	case int64:
		e.dst = AppendInt(e.dst, v)
	case uint:
		e.dst = AppendUint(e.dst, uint64(v))
	case uint64:
		e.dst = AppendUint(e.dst, v)
	case *big.Int:
		e.dst = AppendBigInt(e.dst, v)
	case float32:
		e.dst = AppendFloat32(e.dst, v)
	case float64:
		e.dst = AppendFloat64(e.dst, v)
	default:
		return false
	}
	return true
}

// appendNull escapes null inside a nested tuple, where the code alone marks the end.
func (e *encoder) appendNull(depth int) {
	e.dst = append(e.dst, codeNil)
	if depth > 0 {
		e.dst = append(e.dst, escape)
	}
}

func (e *encoder) appendNested(t Tuple, depth int) {
	if depth > MaxDepth {
		panic(fmt.Sprintf("tuple: nested deeper than %d", MaxDepth))
	}
	e.dst = append(e.dst, codeNested)
	e.appendElements(t, depth)
	e.dst = append(e.dst, terminator)
}

func (e *encoder) appendVersionstamp(v Versionstamp) {
	if v.IsIncomplete() {
		e.incomplete = append(e.incomplete, len(e.dst)+1)
	}
	e.dst = AppendVersionstamp(e.dst, v)
}
