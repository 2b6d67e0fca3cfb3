package unit_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
)

func named(t *testing.T) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte("properties: {name: {}, note: {}}"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// chunk is a task with bytes [from, to) of a document, that can have all of it.
func chunk(document string, index int64, from, to int) *agent.Task {
	sum := sha256.Sum256([]byte(document))
	return &agent.Task{
		Assignment: protocol.Assignment{Unit: mapreduce.ChunkUnit("d", int(index)), Kind: mapreduce.KindMap, Index: index, Text: &protocol.Text{
			Document: "d", SHA256: sum[:], Content: []byte(document[from:to]), CoreEnd: to - from,
			ByteOffset: int64(from), CharOffset: int64(utf8.RuneCountInString(document[:from])), Chunks: 3, Length: int64(len(document)),
		}},
		Whole: func(_ context.Context, use func(*ground.Text)) error {
			use(ground.New(document))
			return nil
		},
	}
}

// textOf is what the task reads, with its document.
func textOf(task *agent.Task, document string) check.Text {
	t := task.Text
	return check.Text{
		Index:    1,
		Document: string(t.Document), Unit: string(task.Unit), Hash: output.HashDocument(string(t.Document), t.SHA256),
		Content: t.Content, ByteOffset: t.ByteOffset, CharOffset: t.CharOffset, Whole: ground.New(document),
	}
}

// fatal is what tests and properties have in common.
type fatal interface {
	Helper()
	Fatal(args ...any)
}

// made runs a task whose extractor claims quotes for the fields name and note by
// turns, in stretch [from, to) of its text.
func made(t fatal, s *schema.Schema, task *agent.Task, from, to int, quotes ...string) *output.Output {
	t.Helper()
	places, note, err := unit.Find(context.Background(), task, unit.Aligner(task.Text, from, to), quotes)
	if err != nil || note != "" {
		t.Fatal(note, err)
	}
	m := unit.NewMapper(task, s)
	var values []unit.Value
	for i, at := range places {
		v := unit.Value{Field: []string{"name", "note"}[i%2], Value: quotes[i]}
		if at.Verified() {
			v.Places = []unit.Place{at}
		}
		values = append(values, v)
	}
	m.Add(0, m.Accumulate(0, values, nil))
	res, err := m.Result("")
	if err != nil {
		t.Fatal(err)
	}
	out, err := output.Decode(res.Output)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// cut draws a range of a text that begins and ends between characters.
func cut(t *rapid.T, text, label string) (from, to int) {
	var at []int
	for i := range text {
		at = append(at, i)
	}
	at = append(at, len(text))
	i := rapid.IntRange(0, len(at)-1).Draw(t, label+" from")
	return at[i], at[rapid.IntRange(i, len(at)-1).Draw(t, label+" to")]
}

// TestCitesWhatIsThere: whatever is claimed of a stretch of a chunk, what the
// output cites passes the check, is marked if and only if the unit did not read
// it, and without the document is in the chunk.
func TestCitesWhatIsThere(t *testing.T) {
	s := named(t)
	rapid.Check(t, func(t *rapid.T) {
		document := rapid.StringOf(rapid.SampledFrom([]rune("ab ö.\n-…漢ß1"))).Draw(t, "document")
		from, to := cut(t, document, "chunk")
		task := chunk(document, 1, from, to)
		start, end := cut(t, document[from:to], "stretch")
		quotes := make([]string, rapid.IntRange(1, 5).Draw(t, "quotes"))
		for i := range quotes {
			j, k := cut(t, document, "quote")
			quotes[i] = document[j:k]
			if rapid.Bool().Draw(t, "changed") {
				quotes[i] = strings.ToUpper(quotes[i]) + rapid.StringN(0, 2, -1).Draw(t, "tail")
			}
		}
		whole := task.Whole
		for _, task.Whole = range []func(context.Context, func(*ground.Text)) error{whole, nil} {
			out := made(t, s, task, start, end, quotes...)
			text := textOf(task, document)
			if err := check.Map(text, nil, out); err != nil {
				t.Fatal(err)
			}
			for _, c := range out.Citations {
				read := from <= int(c.ByteStart) && int(c.ByteEnd) <= to
				if read == c.Outside || !read && task.Whole == nil {
					t.Fatalf("citation of bytes %d to %d, outside %v; the unit read %d to %d", c.ByteStart, c.ByteEnd, c.Outside, from, to)
				}
			}
		}
	})
}

const sides = "The buyer is Köln. | The seller is Bonn. | Disputes go to Kiel."

func TestCheckMapOutside(t *testing.T) {
	s := named(t)
	first, last := strings.Index(sides, "|"), strings.LastIndex(sides, "|")
	change := func(quote string, by func(*output.Citation)) func(*check.Text, *output.Output) {
		return func(_ *check.Text, o *output.Output) {
			for id, c := range o.Citations {
				if c.Quote == quote {
					by(&c)
					o.Citations[id] = c
				}
			}
		}
	}
	for _, tt := range []struct {
		name  string
		spoil func(*check.Text, *output.Output)
		want  string
	}{
		{"as it is", func(*check.Text, *output.Output) {}, ""},
		{"no document", func(x *check.Text, _ *output.Output) { x.Whole = nil }, "is not there to look"},
		{"another document", func(x *check.Text, _ *output.Output) { x.Whole = ground.New(strings.ToUpper(sides)) }, "is not the text"},
		{"a shorter document", func(x *check.Text, _ *output.Output) { x.Whole = ground.New("The") }, "is not the text"},
		{"not marked", change("Köln", func(c *output.Citation) { c.Outside = false }), "did not read"},
		{"marked wrongly", change("Bonn", func(c *output.Citation) { c.Outside = true }), "as if it had not"},
		{"other characters", change("Köln", func(c *output.Citation) { c.Start++; c.End++ }), "stands at characters"},
		{"a coverage that is no number", change("Köln", func(c *output.Citation) { c.Coverage = math.NaN() }), "a coverage of NaN"},
		{"fewer places than none", change("Köln", func(c *output.Citation) { c.Others = -1 }), "other places"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			task := chunk(sides, 1, first, last)
			out, text := made(t, s, task, 0, last-first, "Köln", "Bonn"), textOf(task, sides)
			tt.spoil(&text, out)
			err := check.Map(text, nil, out)
			if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, check.ErrBreach) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want a breach: %s", err, tt.want)
			}
		})
	}
}

// TestOneOfTwoFindings: of a place that one unit read and another cites without
// having read it, the result shows the first, whichever comes first.
func TestOneOfTwoFindings(t *testing.T) {
	s := named(t)
	at := strings.Index(sides, "|")
	reader, other := chunk(sides, 7, 0, at), chunk(sides, 3, at, len(sides)) // the other has the earlier name
	a, b := made(t, s, reader, 0, at, "Köln"), made(t, s, other, 0, len(sides)-at, "Köln")
	sure := func(o *output.Output) float64 { return merge.Resolve(s, o.Entries[0].Accumulator).Confidence["name"] }
	if sure(b) >= sure(a) {
		t.Errorf("confidence %v of a place that was not read, %v of one that was", sure(b), sure(a))
	}
	for _, inputs := range [][]*output.Output{{a, b}, {b, a}} {
		out := output.Reduce(s, inputs, nil, true)
		if len(out.Citations) != 1 || len(out.Entries) != 1 {
			t.Fatalf("%d citations of %d entries, want one of one", len(out.Citations), len(out.Entries))
		}
		for _, c := range out.Citations {
			if c.Outside || c.Unit != string(reader.Unit) {
				t.Errorf("shown is the citation of %s, outside %v", c.Unit, c.Outside)
			}
		}
		if sure(out) != sure(a) {
			t.Errorf("confidence %v of both, %v of the one that read the place", sure(out), sure(a))
		}
		if err := check.Reduce(inputs, out); err != nil {
			t.Error(err)
		}
	}
}

// TestPartsOfAUnit: what one stretch of a unit lacks, and another has, is not
// outside of what the unit read, whether the unit has a chunk or all there is.
func TestPartsOfAUnit(t *testing.T) {
	s := named(t)
	for _, chunks := range []int{1, 3} {
		task := chunk(sides, 0, 0, len(sides))
		if task.Text.Chunks = chunks; chunks == 1 {
			task.Whole = nil
		}
		out := made(t, s, task, strings.Index(sides, "|"), len(sides), "Köln")
		for _, c := range out.Citations {
			if c.Outside || c.Quote != "Köln" {
				t.Errorf("%d chunks: cites %q, outside %v", chunks, c.Quote, c.Outside)
			}
		}
		if len(out.Citations) != 1 {
			t.Errorf("%d chunks: %d citations", chunks, len(out.Citations))
		}
	}
}

// TestTooLong: of a document that is too long the chunk is looked through, and
// the note says so; any other error is one.
func TestTooLong(t *testing.T) {
	task := chunk(sides, 0, 0, 20)
	broken := errors.New("no connection")
	for _, tt := range []struct {
		err, want error
		note      bool
	}{{fmt.Errorf("%w: 5 bytes", agent.ErrTooLong), nil, true}, {broken, broken, false}} {
		task.Whole = func(context.Context, func(*ground.Text)) error { return tt.err }
		places, note, err := unit.Find(t.Context(), task, unit.Aligner(task.Text, 0, 20), []string{"Köln", "Kiel"})
		if !errors.Is(err, tt.want) || (note != "") != tt.note {
			t.Errorf("after %v: note %q, error %v", tt.err, note, err)
		}
		if tt.want == nil && (!places[0].Verified() || places[1].Verified()) {
			t.Errorf("places %+v", places)
		}
	}
}

// TestNearPlaces tells where a quote that is not there must come from; it is no
// place that may be shown.
func TestNearPlaces(t *testing.T) {
	const text = "Then the firm did not pay the fine."
	task := chunk(text, 0, 0, len(text))
	places, _, err := unit.Find(t.Context(), task, unit.Aligner(task.Text, 0, len(text)), []string{"the firm did pay the fine", "no such words are here"})
	if err != nil || places[0].Verified() || places[0].Quote != "the firm did not pay the fine" || places[1].Found() {
		t.Errorf("places %+v, error %v", places, err)
	}
}
