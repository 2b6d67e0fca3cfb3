package tuple_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/store/tuple"
)

var bigInts = cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })

func power(exponent uint, plus int64) *big.Int {
	i := new(big.Int).Lsh(big.NewInt(1), exponent)
	return i.Add(i, big.NewInt(plus))
}

// vectors are encodings that FoundationDB's specification gives, and others
// that were checked against its own Go and Python bindings.
var vectors = []struct {
	name  string
	tuple tuple.Tuple
	hex   string
}{
	{"empty", tuple.Tuple{}, ""},
	{"nil", tuple.Tuple{nil}, "00"},
	{"specification: bytes", tuple.Tuple{[]byte("foo\x00bar")}, "01666f6f00ff62617200"},
	{"specification: text", tuple.Tuple{"F\u00d4O\u0000bar"}, "0246c3944f00ff62617200"},
	{
		"specification: nested",
		tuple.Tuple{tuple.Tuple{[]byte("foo\x00bar"), nil, tuple.Tuple{}}},
		"0501666f6f00ff6261720000ff050000",
	},
	{"specification: integer", tuple.Tuple{int64(-5551212)}, "11ab4b93"},
	{"specification: float", tuple.Tuple{float32(-42)}, "203dd7ffff"},
	{"empty bytes", tuple.Tuple{[]byte{}}, "0100"},
	{"empty text", tuple.Tuple{""}, "0200"},
	{"only zero bytes", tuple.Tuple{[]byte{0, 0}}, "0100ff00ff00"},
	{"zero", tuple.Tuple{int64(0)}, "14"},
	{"one", tuple.Tuple{int64(1)}, "1501"},
	{"minus one", tuple.Tuple{int64(-1)}, "13fe"},
	{"255", tuple.Tuple{int64(255)}, "15ff"},
	{"256", tuple.Tuple{int64(256)}, "160100"},
	{"-255", tuple.Tuple{int64(-255)}, "1300"},
	{"-256", tuple.Tuple{int64(-256)}, "12feff"},
	{"greatest int64", tuple.Tuple{int64(math.MaxInt64)}, "1c7fffffffffffffff"},
	{"least int64", tuple.Tuple{int64(math.MinInt64)}, "0c7fffffffffffffff"},
	{"greatest uint64", tuple.Tuple{uint64(math.MaxUint64)}, "1cffffffffffffffff"},
	{"below int64", tuple.Tuple{new(big.Int).Neg(power(63, 1))}, "0c7ffffffffffffffe"},
	{"-(2^64-1)", tuple.Tuple{new(big.Int).Neg(power(64, -1))}, "0c0000000000000000"},
	{"2^64", tuple.Tuple{power(64, 0)}, "1d09010000000000000000"},
	{"-2^64", tuple.Tuple{new(big.Int).Neg(power(64, 0))}, "0bf6feffffffffffffffff"},
	{"-(2^72-1)", tuple.Tuple{new(big.Int).Neg(power(72, -1))}, "0bf6000000000000000000"},
	{"float64", tuple.Tuple{1.5}, "21bff8000000000000"},
	{"negative zero", tuple.Tuple{math.Copysign(0, -1)}, "217fffffffffffffff"},
	{"infinity", tuple.Tuple{float32(math.Inf(1))}, "20ff800000"},
	{"bools", tuple.Tuple{false, true}, "2627"},
	{
		"UUID",
		tuple.Tuple{tuple.UUID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
		"300102030405060708090a0b0c0d0e0f10",
	},
	{
		"versionstamp",
		tuple.Tuple{tuple.Versionstamp{Transaction: [10]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, User: 0x0b0c}},
		"330102030405060708090a0b0c",
	},
	{"nested at the end", tuple.Tuple{"a", tuple.Tuple{nil, "b", nil}}, "0261000500ff02620000ff00"},
	{
		"key of this project",
		tuple.Tuple{"mapreduce", "jobs", "mr_20250101_abcdef"},
		"026d617072656475636500026a6f627300026d725f32303235303130315f61626364656600",
	},
}

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			if got := hex.EncodeToString(v.tuple.Pack()); got != v.hex {
				t.Errorf("Pack() = %s, want %s", got, v.hex)
			}
			encoded, err := hex.DecodeString(v.hex)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tuple.Unpack(encoded)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(v.tuple, got, bigInts); d != "" {
				t.Errorf("Unpack (-want +got):\n%s", d)
			}
		})
	}
}

func TestIntegerTypesEncodeAlike(t *testing.T) {
	want := tuple.Tuple{int64(300)}.Pack()
	for _, i := range []any{300, uint(300), uint64(300), big.NewInt(300)} {
		if got := (tuple.Tuple{i}).Pack(); !bytes.Equal(got, want) {
			t.Errorf("%T packs as %x, want %x", i, got, want)
		}
	}
}

func TestUnpackRefuses(t *testing.T) {
	tests := []struct{ name, hex, want string }{
		{"bytes without an end", "01deadc0de", "byte 0 of 5: string without an end"},
		{"escaped zero is no end", "01dead00ffc0de", "string without an end"},
		{"text without an end", "0268656c", "string without an end"},
		{"nested without an end", "050268656c00", "byte 6 of 6: nested tuple without an end"},
		{"nested ends in an escape", "0502680000ff", "nested tuple without an end"},
		{"integer cut short", "1601", "cut short"},
		{"negative integer cut short", "1201", "cut short"},
		{"big integer cut short", "1d090102030405060708", "cut short"},
		{"negative big integer cut short", "0bf60102030405060708", "cut short"},
		{"big integer without a size", "1d", "cut short"},
		{"big integer that is small", "1d0101", "longer than necessary"},
		{"big integer with a leading zero", "1d09000102030405060708", "longer than necessary"},
		{"leading zero", "160001", "longer than necessary"},
		{"leading ones", "12fffe", "longer than necessary"},
		{"float32 cut short", "20010203", "cut short"},
		{"float64 cut short", "2101020304050607", "cut short"},
		{"UUID cut short", "300102030405060708090a0b0c0d0e0f", "cut short"},
		{"versionstamp cut short", "330102030405060708090a0b", "cut short"},
		{"unknown type", "2631", "byte 1 of 2: element expected, found invalid"},
		{"escape as type", "ff", "found invalid"},
		{"nested too deep", strings.Repeat("05", 101) + strings.Repeat("00", 101), "nested deeper than 100"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			encoded, err := hex.DecodeString(tt.hex)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tuple.Unpack(encoded)
			if !errors.Is(err, tuple.ErrMalformed) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Unpack = %v, %v, want an error that says %q", got, err, tt.want)
			}
		})
	}
}

func TestPackWithVersionstamp(t *testing.T) {
	prefix := []byte("prefix")
	done := tuple.Versionstamp{Transaction: [10]byte{9}, User: 7}
	tests := []struct {
		name  string
		tuple tuple.Tuple
	}{
		{"alone", tuple.Tuple{tuple.Incomplete(7)}},
		{"after others", tuple.Tuple{"checkpoints", done, tuple.Incomplete(7), "x"}},
		{"nested", tuple.Tuple{"a", tuple.Tuple{nil, tuple.Incomplete(7)}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			key, offset, err := tt.tuple.PackWithVersionstamp(prefix)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(key, prefix) {
				t.Fatalf("key %x has no prefix", key)
			}
			copy(key[offset:], done.Transaction[:])
			got, err := tuple.Unpack(key[len(prefix):])
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(complete(tt.tuple, done), got); d != "" {
				t.Errorf("after filling in (-want +got):\n%s", d)
			}
		})
	}
}

// complete returns t with done for incomplete versionstamps.
func complete(t tuple.Tuple, done tuple.Versionstamp) tuple.Tuple {
	var out tuple.Tuple
	for _, e := range t {
		switch v := e.(type) {
		case tuple.Tuple:
			e = complete(v, done)
		case tuple.Versionstamp:
			if v.IsIncomplete() {
				e = done
			}
		}
		out = append(out, e)
	}
	return out
}

func TestPackWithVersionstampNeedsExactlyOne(t *testing.T) {
	for _, refused := range []tuple.Tuple{
		{},
		{"none", tuple.Versionstamp{}},
		{tuple.Incomplete(1), tuple.Incomplete(2)},
		{tuple.Incomplete(1), tuple.Tuple{tuple.Incomplete(2)}},
	} {
		if key, _, err := refused.PackWithVersionstamp(nil); err == nil {
			t.Errorf("%v packed as %x, want an error", refused, key)
		}
	}
}

func TestAppendPanicsOnMistakes(t *testing.T) {
	deep := tuple.Tuple{}
	for range tuple.MaxDepth + 1 {
		deep = tuple.Tuple{deep}
	}
	tests := []struct {
		name    string
		element any
	}{
		{"type without an encoding", struct{}{}},
		{"int32 is not an element", int32(1)},
		{"incomplete versionstamp", tuple.Incomplete(1)},
		{"integer too large", power(8*tuple.MaxIntSize, 0)},
		{"nested too deep", deep},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("Append returned, want a panic")
				}
			}()
			tuple.Append(nil, tt.element)
		})
	}
}

func TestRange(t *testing.T) {
	in := []tuple.Tuple{{"a", nil}, {"a", int64(1)}, {"a", tuple.Versionstamp{Transaction: [10]byte{0xff}}}, {"a", "b", "c"}}
	out := []tuple.Tuple{{"a"}, {"aa"}, {"b"}, {}, {[]byte("a"), nil}}
	begin, end := tuple.Tuple{"a"}.Range()
	contains := func(u tuple.Tuple) bool {
		key := u.Pack()
		return bytes.Compare(begin, key) <= 0 && bytes.Compare(key, end) < 0
	}
	for _, u := range in {
		if !contains(u) {
			t.Errorf("range of (a) lacks %v", u)
		}
	}
	for _, u := range out {
		if contains(u) {
			t.Errorf("range of (a) holds %v", u)
		}
	}
}

func TestRangeEndsDoNotShareMemory(t *testing.T) {
	begin, end := tuple.Range([]byte("p"))
	_ = append(begin, 'x')
	if want := []byte("p\xff"); !bytes.Equal(end, want) {
		t.Errorf("end = %q after an append to begin, want %q", end, want)
	}
}

func TestString(t *testing.T) {
	tests := []struct {
		want  string
		tuple tuple.Tuple
	}{
		{`()`, tuple.Tuple{}},
		{`("a\x00", 0x00ff, nil, -5)`, tuple.Tuple{"a\x00", []byte{0, 255}, nil, -5}},
		{`((1, true), 1.5, 18446744073709551616)`, tuple.Tuple{tuple.Tuple{1, true}, 1.5, power(64, 0)}},
		{
			`(00010203-0405-0607-0809-0a0b0c0d0e0f)`,
			tuple.Tuple{tuple.UUID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		},
		{`(01000000000000000000:0002)`, tuple.Tuple{tuple.Versionstamp{Transaction: [10]byte{1}, User: 2}}},
	}
	for _, tt := range tests {
		if got := tt.tuple.String(); got != tt.want {
			t.Errorf("String() = %s, want %s", got, tt.want)
		}
	}
}
