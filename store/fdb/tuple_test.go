//go:build fdb

package fdb_test

import (
	"bytes"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	official "github.com/apple/foundationdb/bindings/go/src/fdb/tuple"

	"github.com/coditect/mapreduce/store/tuple"
)

const (
	randomTuples = 100_000
	maxElements  = 6
	maxNesting   = 3
)

// Our encoding of tuples is FoundationDB's, byte for byte. It needs no cluster.
func TestTuplesAreTheOfficialOnes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range randomTuples {
		theirs, ours := drawTuple(random, maxNesting)
		if want, got := theirs.Pack(), ours.Pack(); !bytes.Equal(want, got) {
			t.Fatalf("tuple %d, %v: got % x, want % x", i, ours, got, want)
		}
		stamp := uint16(random.Uint32())
		theirs, ours = append(theirs, official.IncompleteVersionstamp(stamp)), append(ours, tuple.Incomplete(stamp))
		want, err := theirs.PackWithVersionstamp([]byte("prefix"))
		if err != nil {
			t.Fatal(err)
		}
		key, offset, err := ours.PackWithVersionstamp([]byte("prefix"))
		if err != nil {
			t.Fatal(err)
		}
		if got := append(key, byte(offset), byte(offset>>8), byte(offset>>16), byte(offset>>24)); !bytes.Equal(want, got) {
			t.Fatalf("tuple %d, %v: got % x, want % x", i, ours, got, want)
		}
	}
}

// drawTuple draws a tuple in both types.
func drawTuple(r *rand.Rand, nesting int) (official.Tuple, tuple.Tuple) {
	theirs, ours := official.Tuple{}, tuple.Tuple{}
	for range r.IntN(maxElements) {
		a, b := drawElement(r, nesting)
		theirs, ours = append(theirs, a), append(ours, b)
	}
	return theirs, ours
}

func drawElement(r *rand.Rand, nesting int) (theirs, ours any) {
	switch r.IntN(10 + min(nesting, 1)) {
	case 0:
		return nil, nil
	case 1:
		b := drawBytes(r)
		return b, b
	case 2:
		s := string(drawBytes(r))
		return s, s
	case 3:
		return bothOf(int64(r.Uint64()) >> r.IntN(64))
	case 4:
		return bothOf(r.Uint64() >> r.IntN(64))
	case 5:
		return bothOf(drawBig(r))
	case 6:
		return bothOf(math.Float32frombits(r.Uint32()))
	case 7:
		return bothOf(math.Float64frombits(r.Uint64()))
	case 8:
		return bothOf(r.IntN(2) == 0)
	case 9:
		var u tuple.UUID
		fill(r, u[:])
		return official.UUID(u), u
	default:
		return drawTuple(r, nesting-1)
	}
}

func bothOf(v any) (any, any) { return v, v }

// drawBytes draws few of them, with many zeros and 0xFF, which are escaped.
func drawBytes(r *rand.Rand) []byte {
	b := make([]byte, r.IntN(12))
	fill(r, b)
	for i := range b {
		switch r.IntN(4) {
		case 0:
			b[i] = 0
		case 1:
			b[i] = 0xFF
		}
	}
	return b
}

func fill(r *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

// drawBig draws integers of up to twenty bytes, often next to a power of 256.
func drawBig(r *rand.Rand) *big.Int {
	i := new(big.Int).Lsh(big.NewInt(1), uint(8*r.IntN(20)))
	i.Add(i, big.NewInt(int64(r.IntN(5)-2)))
	if r.IntN(2) == 0 {
		i.Neg(i)
	}
	return i
}
