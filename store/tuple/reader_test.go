package tuple_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/store/tuple"
)

func TestReaderReadsWhatAppendWrites(t *testing.T) {
	stamp := tuple.Versionstamp{Transaction: [10]byte{1, 2}, User: 3}
	id := tuple.UUID{4, 5}
	large := power(70, 0)

	var key []byte
	key = tuple.AppendNil(key)
	key = tuple.AppendBytes(key, []byte("b\x00"))
	key = tuple.AppendString(key, "text")
	key = tuple.AppendInt(key, math.MinInt64)
	key = tuple.AppendUint(key, math.MaxUint64)
	key = tuple.AppendBigInt(key, large)
	key = tuple.AppendFloat32(key, -1.5)
	key = tuple.AppendFloat64(key, 2.5)
	key = tuple.AppendBool(key, true)
	key = tuple.AppendUUID(key, id)
	key = tuple.AppendVersionstamp(key, stamp)
	key = tuple.Append(key, tuple.Tuple{nil, "in"})

	r := tuple.NewReader(key)
	r.Nil()
	got := tuple.Tuple{
		nil, r.Bytes(), r.Text(), r.Int(), r.Uint(), r.BigInt(), r.Float32(), r.Float64(),
		r.Bool(), r.UUID(), r.Versionstamp(),
	}
	r.Open()
	r.Nil()
	got = append(got, r.Text())
	r.Close()
	if err := r.Done(); err != nil {
		t.Fatal(err)
	}
	want := tuple.Tuple{
		nil, []byte("b\x00"), "text", int64(math.MinInt64), uint64(math.MaxUint64), large,
		float32(-1.5), 2.5, true, id, stamp, "in",
	}
	if d := cmp.Diff(want, got, bigInts); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestReaderKinds(t *testing.T) {
	u := tuple.Tuple{
		nil,
		[]byte{},
		"",
		tuple.Tuple{},
		-1, 0, power(80, 0), float32(0), 0.0, false, true,
		tuple.UUID{},
		tuple.Versionstamp{},
	}
	want := []tuple.Kind{
		tuple.Nil, tuple.Bytes, tuple.Text, tuple.Nested, tuple.Int, tuple.Int, tuple.Int,
		tuple.Float32, tuple.Float64, tuple.Bool, tuple.Bool, tuple.ID, tuple.Stamp, tuple.End,
	}
	var got []tuple.Kind
	for r := tuple.NewReader(u.Pack()); ; r.Skip() {
		got = append(got, r.Kind())
		if r.Kind() == tuple.End {
			break
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestReaderRefuses(t *testing.T) {
	tests := []struct {
		name  string
		tuple tuple.Tuple
		read  func(r *tuple.Reader)
		want  string
	}{
		{"other type", tuple.Tuple{"a"}, func(r *tuple.Reader) { r.Int() }, "integer expected, found string"},
		{"past the end", tuple.Tuple{}, func(r *tuple.Reader) { r.Text() }, "string expected, found end"},
		{"something left", tuple.Tuple{1, 2}, func(r *tuple.Reader) { r.Int() }, "end of the tuple expected"},
		{"too large for Int", tuple.Tuple{uint64(1 << 63)}, func(r *tuple.Reader) { r.Int() }, "out of range"},
		{"too small for Int", tuple.Tuple{new(big.Int).Neg(power(63, 1))}, func(r *tuple.Reader) { r.Int() }, "out of range"},
		{"too large for Uint", tuple.Tuple{power(64, 0)}, func(r *tuple.Reader) { r.Uint() }, "more than eight bytes"},
		{"negative for Uint", tuple.Tuple{-1}, func(r *tuple.Reader) { r.Uint() }, "negative integer"},
		{"nested left open", tuple.Tuple{tuple.Tuple{}}, func(r *tuple.Reader) { r.Open() }, "end of the tuple expected"},
		{"closed too early", tuple.Tuple{tuple.Tuple{1}}, func(r *tuple.Reader) { r.Open(); r.Close() }, "end expected, found integer"},
		{"closed twice", tuple.Tuple{tuple.Tuple{}, nil}, func(r *tuple.Reader) { r.Open(); r.Close(); r.Close() }, "without an end"},
		{"skipped past the end", tuple.Tuple{}, func(r *tuple.Reader) { r.Skip() }, "element expected, found end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := tuple.NewReader(tt.tuple.Pack())
			tt.read(&r)
			err := r.Done()
			if !errors.Is(err, tuple.ErrMalformed) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Done() = %v, want an error that says %q", err, tt.want)
			}
		})
	}
}

func TestReaderKeepsTheFirstMistake(t *testing.T) {
	r := tuple.NewReader(tuple.Tuple{"a", 5}.Pack())
	r.Int()
	first := r.Err()
	if first == nil {
		t.Fatal("Int of a string is no mistake")
	}
	got := []any{
		r.Text(), r.Bytes(), r.Int(), r.Uint(), r.BigInt().Int64(), r.Float32(), r.Float64(),
		r.Bool(), r.UUID(), r.Versionstamp(), r.Kind(),
	}
	want := []any{
		"", []byte(nil), int64(0), uint64(0), int64(0), float32(0), 0.0,
		false,
		tuple.UUID{},
		tuple.Versionstamp{},
		tuple.End,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("after a mistake (-want +got):\n%s", d)
	}
	if !errors.Is(r.Done(), first) || r.Err() != first {
		t.Errorf("Done() = %v, want the first mistake, %v", r.Done(), first)
	}
}

func TestReaderRest(t *testing.T) {
	r := tuple.NewReader(tuple.Tuple{"a", "b"}.Pack())
	r.Skip()
	if d := cmp.Diff(tuple.Tuple{"b"}.Pack(), r.Rest()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 128)
	text, id := "mr_20250101_abcdef", []byte{1, 2}
	build := func() {
		buf = tuple.AppendString(buf[:0], "units")
		buf = tuple.AppendString(buf, text)
		buf = tuple.AppendInt(buf, 123456)
		buf = tuple.AppendBytes(buf, id)
	}
	var sum int64
	walk := func() {
		r := tuple.NewReader(buf)
		sum += int64(len(r.TextBytes()) + len(r.TextBytes()))
		sum += r.Int() + int64(len(r.Bytes()))
		if r.Done() != nil {
			t.Fatal(r.Err())
		}
	}
	if n := testing.AllocsPerRun(100, build); n != 0 {
		t.Errorf("building a key allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, walk); n != 0 {
		t.Errorf("walking a key allocates %v times", n)
	}
	if want := int64(101 * (5 + 18 + 123456 + 2)); sum != want {
		t.Errorf("read %d in all, want %d", sum, want)
	}
}

func BenchmarkAppend(b *testing.B) {
	buf := make([]byte, 0, 128)
	b.ReportAllocs()
	for b.Loop() {
		buf = tuple.AppendString(buf[:0], "units")
		buf = tuple.AppendString(buf, "mr_20250101_abcdef")
		buf = tuple.AppendInt(buf, 123456)
	}
}

func BenchmarkReader(b *testing.B) {
	key := tuple.Tuple{"units", "mr_20250101_abcdef", 123456}.Pack()
	b.ReportAllocs()
	for b.Loop() {
		r := tuple.NewReader(key)
		r.TextBytes()
		r.TextBytes()
		r.Int()
		if r.Done() != nil {
			b.Fatal(r.Err())
		}
	}
}

func ExampleReader() {
	key := tuple.Tuple{"units", "mr_20250101_abcdef", "reduce_L1_0"}.Pack()
	r := tuple.NewReader(key)
	kind, job, unit := r.Text(), r.Text(), r.Text()
	if err := r.Done(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(kind, job, unit)
	// Output: units mr_20250101_abcdef reduce_L1_0
}
