package offset_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/text/offset"
)

// fish maps "a b!" to the source "a&nbsp;&nbsp;b": the white space came from
// twelve bytes, the exclamation mark from nothing.
func fish() *offset.Map {
	var b offset.Builder
	b.Copy(0, 1)
	b.Step(1, 1, 12)
	b.Copy(13, 1)
	b.Step(1, 14, 0)
	return b.Map()
}

func TestSource(t *testing.T) {
	for _, test := range []struct {
		name       string
		start, end int
		want       [2]int
	}{
		{"copied", 0, 1, [2]int{0, 1}},
		{"shortened", 1, 2, [2]int{1, 13}},
		{"across", 0, 3, [2]int{0, 14}},
		{"inserted", 3, 4, [2]int{14, 14}},
		{"empty", 1, 1, [2]int{1, 1}},
		{"empty at the end", 4, 4, [2]int{14, 14}},
	} {
		t.Run(test.name, func(t *testing.T) {
			from, to := fish().Source(test.start, test.end)
			if diff := cmp.Diff(test.want, [2]int{from, to}); diff != "" {
				t.Errorf("Source(%d, %d) (-want +got):\n%s", test.start, test.end, diff)
			}
		})
	}
}

func TestNilIsIdentity(t *testing.T) {
	var m *offset.Map
	if from, to := m.Source(3, 7); from != 3 || to != 7 || m.Splits(4) {
		t.Errorf("got [%d, %d), splits %v", from, to, m.Splits(4))
	}
}

func TestEmptyMap(t *testing.T) {
	if from, to := new(offset.Builder).Map().Source(0, 0); from != 0 || to != 0 {
		t.Errorf("got [%d, %d), want an empty range at 0", from, to)
	}
}

// TestSteps builds maps from random steps and compares every range with the
// plain list of steps.
func TestSteps(t *testing.T) {
	type step struct{ out, pos, in int }
	rapid.Check(t, func(t *rapid.T) {
		var b offset.Builder
		var origin []step // the step of each derived byte
		begins := map[int]bool{}
		pos := 0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			pos += rapid.SampledFrom([]int{0, 0, 0, 1, 5}).Draw(t, "dropped")
			s := step{out: rapid.IntRange(0, 4).Draw(t, "out"), pos: pos, in: rapid.IntRange(0, 3).Draw(t, "in")}
			begins[b.Len()] = true
			if rapid.Bool().Draw(t, "copy") {
				b.Copy(pos, s.in)
				for k := range s.in {
					begins[len(origin)] = true
					origin = append(origin, step{1, pos + k, 1})
				}
			} else {
				b.Step(s.out, s.pos, s.in)
				for range s.out {
					origin = append(origin, s)
				}
			}
			pos += s.in
		}
		m := b.Map()
		if m.Len() != len(origin) {
			t.Fatalf("Len() = %d, want %d", m.Len(), len(origin))
		}
		for p := range pos + 2 {
			want := slices.IndexFunc(origin, func(s step) bool { return s.pos >= p })
			if want < 0 {
				want = len(origin)
			}
			if got := m.Derived(p); got != want {
				t.Fatalf("Derived(%d) = %d, want %d", p, got, want)
			}
		}
		for i := range origin {
			if got := m.Splits(i); got == begins[i] {
				t.Fatalf("Splits(%d) = %v", i, got)
			}
			for j := i + 1; j <= len(origin); j++ {
				last := origin[j-1]
				from, to := m.Source(i, j)
				if from != origin[i].pos || to != last.pos+last.in {
					t.Fatalf("Source(%d, %d) = %d, %d, want %d, %d", i, j, from, to, origin[i].pos, last.pos+last.in)
				}
			}
		}
	})
}
