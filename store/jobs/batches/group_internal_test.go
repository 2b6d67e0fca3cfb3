package batches

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A batch has lines of one model, in the order in which they wait, and keeps every limit; it is full
// unless nothing more is to come; and each line is in exactly one batch once all are made.
func TestGroupsKeepLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type vendor struct{ lines, bytes, fewest int64 }
		vendors := make(map[string]vendor)
		for _, name := range []string{"a", "b"} {
			vendors[name] = vendor{
				rapid.Int64Range(0, 6).Draw(t, "lines"), rapid.Int64Range(0, 100).Draw(t, "bytes"), rapid.Int64Range(0, 3).Draw(t, "fewest"),
			}
		}
		var left []waiting
		for i := range rapid.IntRange(0, 30).Draw(t, "waiting") {
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "provider")
			v := vendors[name]
			left = append(left, waiting{
				unit: mapreduce.UnitID(fmt.Sprintf("u%02d", i)), provider: name, model: rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model"),
				size: rapid.Int64Range(1, 40).Draw(t, "size"), mostLines: v.lines, mostBytes: v.bytes, fewest: v.fewest,
			})
		}

		all := len(left)
		for made := 0; len(left) > 0; {
			hurry := rapid.Bool().Draw(t, "hurry")
			g := nextGroup(left, hurry)
			if g == nil && !hurry {
				g = nextGroup(left, true)
				if g == nil {
					t.Fatalf("nothing is made of %d lines though no more are to come", len(left))
				}
			}
			if g == nil {
				t.Fatalf("nothing is made of %d lines though no more are to come", len(left))
			}

			v, bytes, in := vendors[g.lines[0].provider], int64(0), make(map[mapreduce.UnitID]bool)
			for i, w := range g.lines {
				bytes += w.size
				in[w.unit] = true
				if w.provider != g.lines[0].provider || w.model != g.lines[0].model || i > 0 && w.unit <= g.lines[i-1].unit {
					t.Fatalf("line %d, %+v, is behind %+v", i, w, g.lines[0])
				}
			}
			switch n := int64(len(g.lines)); {
			case bytes != g.bytes:
				t.Fatalf("it says that it has %d bytes, and has %d", g.bytes, bytes)
			case v.lines > 0 && n > v.lines, v.bytes > 0 && bytes > v.bytes && n > 1:
				t.Fatalf("%d lines of %d bytes for a vendor that takes %+v", n, bytes, v)
			case g.few != (n < v.fewest):
				t.Fatalf("%d lines of a vendor that makes batches of %d: few is %t", n, v.fewest, g.few)
			}

			rest := left[:0:0]
			for _, w := range left {
				if !in[w.unit] {
					rest = append(rest, w)
				}
			}
			left, made = rest, made+len(g.lines)
			if made+len(left) != all {
				t.Fatalf("of %d lines %d are in batches and %d wait", all, made, len(left))
			}
		}
	})
}

// A batch that could take more lines waits for them, whatever waits of other models.
func TestGroupsWaitForMore(t *testing.T) {
	line := func(model string, most int64) waiting {
		return waiting{unit: mapreduce.UnitID(model), provider: "p", model: model, size: 1, mostLines: most}
	}
	if g := nextGroup([]waiting{line("m", 3), line("m", 3)}, false); g != nil {
		t.Errorf("two lines of three became a batch of %d", len(g.lines))
	}
	g := nextGroup([]waiting{line("n", 3), line("m", 2), line("m", 2), line("m", 2)}, false)
	if g == nil || len(g.lines) != 2 || g.lines[0].model != "m" {
		t.Errorf("the lines that fill a batch became %+v", g)
	}
	if g := nextGroup(nil, true); g != nil {
		t.Errorf("no lines became %+v", g)
	}
}
