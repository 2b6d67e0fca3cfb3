package tuple_test

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/store/tuple"
)

// tuples draws tuples as Unpack returns them. Its small alphabets make equal
// prefixes, where order goes wrong first, likely.
func tuples(depth int) *rapid.Generator[tuple.Tuple] {
	return rapid.Custom(func(t *rapid.T) tuple.Tuple {
		u := tuple.Tuple{}
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			u = append(u, element(t, depth))
		}
		return u
	})
}

func element(t *rapid.T, depth int) any {
	text := rapid.SampledFrom([]string{"", "\x00", "\x00\xff", "a", "a\x00", "a\x00\xff", "ab", "\xff", "é"})
	switch rapid.IntRange(0, 9+min(depth, 1)).Draw(t, "type") {
	case 0:
		return nil
	case 1:
		return []byte(text.Draw(t, "bytes"))
	case 2:
		return text.Draw(t, "text")
	case 3:
		return rapid.Int64().Draw(t, "int")
	case 4:
		return bigInt(t)
	case 5:
		return rapid.Float32().Draw(t, "float32")
	case 6:
		return rapid.Float64().Draw(t, "float64")
	case 7:
		return rapid.Bool().Draw(t, "bool")
	case 8:
		return tuple.UUID{rapid.Byte().Draw(t, "uuid")}
	case 9:
		return tuple.Versionstamp{Transaction: [10]byte{rapid.Byte().Draw(t, "stamp")}, User: 1}
	default:
		return tuples(depth-1).Draw(t, "nested")
	}
}

// bigInt draws integers around the powers of 256, in the type that Unpack gives
// them.
func bigInt(t *rapid.T) any {
	i := power(uint(8*rapid.IntRange(0, 20).Draw(t, "bytes")), rapid.Int64Range(-2, 2).Draw(t, "plus"))
	if rapid.Bool().Draw(t, "negative") {
		i.Neg(i)
	}
	switch {
	case i.IsInt64():
		return i.Int64()
	case i.IsUint64():
		return i.Uint64()
	default:
		return i
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := tuples(3).Draw(t, "tuple")
		got, err := tuple.Unpack(u.Pack())
		if err != nil {
			t.Fatal(err)
		}
		if d := gocmp.Diff(u, got, bigInts); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	})
}

func TestOrderIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := tuples(2).Draw(t, "a"), tuples(2).Draw(t, "b")
		shared := rapid.IntRange(0, len(a)).Draw(t, "shared")
		b = append(append(tuple.Tuple{}, a[:shared]...), b...)
		if got, want := bytes.Compare(a.Pack(), b.Pack()), compareTuples(a, b); got != want {
			t.Fatalf("encodings of %v and %v compare as %d, want %d", a, b, got, want)
		}
	})
}

func TestAppendEqualsPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, prefix := tuples(2).Draw(t, "tuple"), rapid.SliceOf(rapid.Byte()).Draw(t, "prefix")
		want := append(append([]byte{}, prefix...), u.Pack()...)
		if got := tuple.Append(prefix, u...); !bytes.Equal(got, want) {
			t.Fatalf("Append = %x, want %x", got, want)
		}
	})
}

// compareTuples is the order of tuples, stated over the elements themselves.
func compareTuples(a, b tuple.Tuple) int {
	for i := range min(len(a), len(b)) {
		if c := compareElements(a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareElements(a, b any) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	switch a := a.(type) {
	case []byte:
		return bytes.Compare(a, b.([]byte))
	case string:
		return cmp.Compare(a, b.(string))
	case tuple.Tuple:
		return compareTuples(a, b.(tuple.Tuple))
	case float32:
		return compareFloats(float64(a), float64(b.(float32)))
	case float64:
		return compareFloats(a, b.(float64))
	case bool:
		return cmp.Compare(truth(a), truth(b.(bool)))
	case tuple.UUID:
		u := b.(tuple.UUID)
		return bytes.Compare(a[:], u[:])
	case tuple.Versionstamp:
		v := b.(tuple.Versionstamp)
		return bytes.Compare(a.Transaction[:], v.Transaction[:])
	case nil:
		return 0
	default:
		return asBig(a).Cmp(asBig(b))
	}
}

// compareFloats differs from cmp.Compare in that -0 is below 0. There are no
// NaNs among those drawn.
func compareFloats(a, b float64) int {
	if a == 0 && b == 0 {
		return cmp.Compare(truth(!math.Signbit(a)), truth(!math.Signbit(b)))
	}
	return cmp.Compare(a, b)
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func asBig(a any) *big.Int {
	switch i := a.(type) {
	case int64:
		return big.NewInt(i)
	case uint64:
		return new(big.Int).SetUint64(i)
	default:
		return a.(*big.Int)
	}
}

// rank orders the types.
func rank(a any) int {
	switch a.(type) {
	case nil:
		return 0
	case []byte:
		return 1
	case string:
		return 2
	case tuple.Tuple:
		return 3
	case float32:
		return 5
	case float64:
		return 6
	case bool:
		return 7
	case tuple.UUID:
		return 8
	case tuple.Versionstamp:
		return 9
	default:
		return 4
	}
}

func FuzzUnpack(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.tuple.Pack())
	}
	f.Add([]byte{0x05, 0x05, 0x00, 0xff, 0x00, 0x1d, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := tuple.Unpack(b)
		if err != nil {
			return
		}
		if got := u.Pack(); !bytes.Equal(got, b) {
			t.Fatalf("%x unpacks as %v, which packs as %x", b, u, got)
		}
		if got := skipAll(t, b); got != len(u) {
			t.Fatalf("Skip counts %d elements of %v", got, u)
		}
	})
}

func skipAll(t *testing.T, b []byte) (elements int) {
	r := tuple.NewReader(b)
	for r.Kind() != tuple.End {
		r.Skip()
		elements++
	}
	if err := r.Done(); err != nil {
		t.Fatal(err)
	}
	return elements
}
