package batches

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A limited vendor is what a vendor of the test takes of one batch.
type limited struct{ lines, bytes, tokens, fewest int64 }

// A floor is where lines wait, and become batches, as transactions do it.
type floor struct {
	*rapid.T
	vendors map[string]limited
	left    []waiting
	open    []filling
	ended   []filling
	few     int // lines that were too few for a batch
	page    int // lines that are looked at together
}

// step does what is next, and reports whether there was anything.
func (f *floor) step(hurry bool) bool {
	some := f.left[:min(f.page, len(f.left))]
	g := nextGroup(some, len(some) == f.page, f.open, hurry)
	if g == nil {
		return false
	}

	f.check(g)
	in := make(map[mapreduce.UnitID]bool)
	for _, w := range g.lines {
		in[w.unit] = true
	}
	rest := f.left[:0:0]
	for _, w := range f.left {
		if !in[w.unit] {
			rest = append(rest, w)
		}
	}
	if len(f.left)-len(rest) != len(g.lines) {
		f.Fatalf("%d of the %d lines of a group wait", len(f.left)-len(rest), len(g.lines))
	}
	f.left = rest
	f.enter(g)
	return true
}

// check holds a group to what its vendor takes.
func (f *floor) check(g *group) {
	v, bytes, tokens := f.vendors[g.into.provider], g.into.bytes, g.into.tokens
	for i, w := range g.lines {
		bytes, tokens = bytes+w.size, tokens+w.tokens
		if w.provider != g.into.provider || w.model != g.into.model || i > 0 && w.unit <= g.lines[i-1].unit {
			f.Fatalf("line %d, %+v, is behind %+v", i, w, g.lines[0])
		}
	}

	switch n := g.count(); {
	case bytes != g.into.bytes+g.bytes:
		f.Fatalf("it says that it has %d bytes, and has %d", g.into.bytes+g.bytes, bytes)
	case tokens != g.into.tokens+g.tokens || v.tokens > 0 && tokens > v.tokens && n > 1:
		f.Fatalf("%d lines of %d tokens for a vendor that takes %+v; it says that it has %d", n, tokens, v, g.into.tokens+g.tokens)
	case v.lines > 0 && n > v.lines, v.bytes > 0 && bytes > v.bytes && n > 1:
		f.Fatalf("%d lines of %d bytes for a vendor that takes %+v", n, bytes, v)
	case g.few && n >= v.fewest:
		f.Fatalf("%d lines of a vendor that makes batches of %d are few", n, v.fewest)
	case len(g.lines) == 0 && !g.ends:
		f.Fatal("nothing was done")
	}
}

// enter does to batches what a group says.
func (f *floor) enter(g *group) {
	if g.few {
		f.few += len(g.lines)
		return
	}
	now := g.into
	now.lines, now.bytes, now.tokens = g.count(), g.into.bytes+g.bytes, g.into.tokens+g.tokens
	if now.number == 0 {
		now.number = int64(len(f.open) + len(f.ended) + 1)
	}

	rest := f.open[:0:0]
	for _, b := range f.open {
		if b.number != now.number {
			rest = append(rest, b)
		}
	}
	if f.open = rest; g.ends {
		f.ended = append(f.ended, now)
	} else {
		f.open = append(f.open, now)
	}
}

// A batch has lines of one model, in the order in which they wait, and keeps every limit, however many
// lines are looked at together; and each line is in exactly one batch once all are made.
func TestGroupsKeepLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &floor{T: t, vendors: make(map[string]limited), page: rapid.IntRange(1, 12).Draw(t, "page")}
		for _, name := range []string{"a", "b"} {
			f.vendors[name] = limited{
				rapid.Int64Range(0, 16).Draw(t, "lines"), rapid.Int64Range(0, 200).Draw(t, "bytes"), rapid.Int64Range(0, 100).Draw(t, "tokens"), rapid.Int64Range(0, 3).Draw(t, "fewest"),
			}
		}
		all := rapid.IntRange(0, 60).Draw(t, "waiting")
		for i := range all {
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "provider")
			v := f.vendors[name]
			f.left = append(f.left, waiting{
				unit: mapreduce.UnitID(fmt.Sprintf("u%02d", i)), provider: name, model: rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model"),
				size: rapid.Int64Range(1, 40).Draw(t, "size"), tokens: rapid.Int64Range(0, 30).Draw(t, "of the prompt"),
				mostLines: v.lines, mostBytes: v.bytes, mostTokens: v.tokens, fewest: v.fewest,
			})
			if rapid.IntRange(0, 5).Draw(t, "a look") == 0 {
				f.step(false)
			}
		}

		for f.step(true) {
		}
		in := f.few
		for _, b := range f.ended {
			in += int(b.lines)
		}
		if len(f.left) > 0 || len(f.open) > 0 || in != all {
			t.Fatalf("of %d lines %d are in batches, %d wait, and %d batches are being filled", all, in, len(f.left), len(f.open))
		}
	})
}

// A batch that could take more lines waits for them, whatever waits of other models.
func TestGroupsWaitForMore(t *testing.T) {
	line := func(model string, most int64) waiting {
		return waiting{unit: mapreduce.UnitID(model), provider: "p", model: model, size: 1, mostLines: most}
	}
	if g := nextGroup([]waiting{line("m", 3), line("m", 3)}, false, nil, false); g != nil {
		t.Errorf("two lines of three became a batch of %d", len(g.lines))
	}
	g := nextGroup([]waiting{line("n", 3), line("m", 2), line("m", 2), line("m", 2)}, false, nil, false)
	if g == nil || len(g.lines) != 2 || g.lines[0].model != "m" || !g.ends {
		t.Errorf("the lines that fill a batch became %+v", g)
	}
	if g := nextGroup(nil, false, nil, true); g != nil {
		t.Errorf("no lines became %+v", g)
	}
}

// What waits behind the lines that are looked at is seen: those go to a batch that is not full yet, and it
// is ended once no more are to come, if only then.
func TestGroupsFillBatches(t *testing.T) {
	line := func(i int) waiting {
		return waiting{unit: mapreduce.UnitID(fmt.Sprint(i)), provider: "p", model: "m", size: 1, mostLines: 5}
	}
	g := nextGroup([]waiting{line(1), line(2)}, true, nil, false)
	if g == nil || g.ends || len(g.lines) != 2 {
		t.Fatalf("the first lines became %+v", g)
	}
	open := []filling{{number: 1, provider: "p", model: "m", lines: 2, bytes: 2}}
	if g = nextGroup([]waiting{line(3)}, false, open, false); g != nil {
		t.Errorf("a line that waits alone became %+v", g)
	}
	if g = nextGroup(nil, false, open, true); g == nil || !g.ends || len(g.lines) != 0 {
		t.Errorf("a batch that gets no more lines: %+v", g)
	}
	if g = nextGroup([]waiting{line(3), line(4), line(5), line(6)}, true, open, false); g == nil || !g.ends || len(g.lines) != 3 {
		t.Errorf("the lines that fill a batch: %+v", g)
	}
}
