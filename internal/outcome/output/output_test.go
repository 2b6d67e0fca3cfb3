package output_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/text/refs"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

func parse(t testing.TB, tail string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("schema.yaml", []byte(`
title: thing
type: object
properties:
  id: {type: string}
  n: {type: number, x-coditect: {merge: max}}
  tags: {type: array, items: {type: string}}
`+tail))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mapped draws the outputs of map units over documents of one or more chunks.
func mapped(t *rapid.T, s *schema.Schema) []*output.Output {
	var all []*output.Output
	for doc := range rapid.IntRange(1, 12).Draw(t, "documents") {
		chunks := rapid.SampledFrom([]int{1, 1, 1, 2, 5}).Draw(t, "chunks")
		for chunk := range chunks {
			out := &output.Output{}
			index := int64(doc)<<20 | int64(chunk)
			r := merge.Record{Document: fmt.Sprint("d", doc), Order: merge.Order{Unit: index}}
			for _, field := range []string{"id", "n", "tags"} {
				if rapid.Bool().Draw(t, "has "+field) {
					r.Values = append(r.Values, value(t, out, field, r.Document, index))
				} else {
					r.Missing = append(r.Missing, merge.Missing{Field: field, Reason: "not there"})
				}
			}
			out.Entries = []output.Entry{{
				Members: []output.Member{{Unit: index}}, Accumulator: merge.Accumulate(s, r), Chunks: chunks,
			}}
			all = append(all, out)
		}
	}
	return all
}

func value(t *rapid.T, out *output.Output, field, document string, unit int64) merge.Value {
	v := merge.Value{Field: field, Confidence: rapid.Float64Range(0, 1).Draw(t, "confidence")}
	switch field {
	case "id":
		v.Value = rapid.SampledFrom([]string{"k1", "k2", "k3", "marin foods", "martin foods", "martin fodos", "marvin foods"}).Draw(t, "id")
	case "n":
		v.Value = json.Number(fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "n")))
	default:
		v.Value = []any{rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "tag")}
	}
	start := rapid.IntRange(0, 99).Draw(t, "start")
	v.Citations = []merge.Citation{out.Cite(output.Citation{
		ID: refs.New(refs.DocumentHash{}, int(unit)+start, start+1, field), Document: document, Unit: fmt.Sprint(unit),
		Start: int64(start), End: int64(start + 1), ByteStart: int64(start), ByteEnd: int64(start + 1),
		Quote: field, Grade: "fuzzy", Outside: rapid.Bool().Draw(t, "outside"), Others: rapid.IntRange(0, 2).Draw(t, "others"),
		Coverage: 0.75, Density: 0.5,
	})}
	return v
}

// stored sends an output through its stored form.
func stored(t *rapid.T, o *output.Output) *output.Output {
	data, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := output.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func TestStoredFormLosesNothing(t *testing.T) {
	s := parse(t, "")
	rapid.Check(t, func(t *rapid.T) {
		for _, o := range mapped(t, s) {
			if diff := cmp.Diff(o, stored(t, o), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("after a round trip (-want +got):\n%s", diff)
			}
		}
	})
}

// final returns the entities of a result as a tree of reductions leaves them:
// those the last output tells of, and the records that nothing merged.
func final(s *schema.Schema, last *output.Output, maps []*output.Output) []merge.Result {
	shared, within := make(map[output.Member]*output.Shared), make(map[output.Member]bool)
	for _, one := range last.Shared() {
		shared[one.Members[0]] = one
		for _, m := range one.Members[1:] {
			within[m] = true
		}
	}
	byUnit := unitsOf(maps)
	var all []merge.Result
	for _, o := range maps {
		for _, e := range o.Entries {
			if within[e.Members[0]] {
				continue
			}
			if one := shared[e.Members[0]]; one != nil {
				var parts []*output.Output
				for _, op := range one.Open {
					parts = append(parts, byUnit[op.Unit].Only([]output.Open{op}))
				}
				e = one.Together(last, parts).Entries[0]
			}
			all = append(all, merge.Resolve(s, e.Accumulator))
		}
	}
	return all
}

// unitsOf returns the outputs of map units by their index.
func unitsOf(maps []*output.Output) map[int64]*output.Output {
	byUnit := make(map[int64]*output.Output)
	for _, m := range maps {
		byUnit[m.Entries[0].Members[0].Unit] = m
	}
	return byUnit
}

// tree reduces outputs in groups of the given size until one is left, taking the
// records that reduced outputs only name from the map outputs, as an
// orchestrator does. Reduces have the room that is drawn for them, and are given
// as many records.
func tree(t *rapid.T, s *schema.Schema, maps []*output.Output, group int, rooms *rapid.Generator[int]) *output.Output {
	byUnit := unitsOf(maps)
	level := maps
	for first := true; first || len(level) > 1; first = false {
		var next []*output.Output
		for part := range slices.Chunk(level, group) {
			var referred []*output.Output
			last := len(level) <= group
			if !first {
				wanted := output.Wanted(s, part, last)
				if most := rooms.Draw(t, "referred"); most > 0 {
					wanted = wanted[:min(most, len(wanted))]
				}
				for _, w := range wanted {
					referred = append(referred, stored(t, byUnit[w.Unit].Only([]output.Open{w})))
				}
			}
			out, err := output.Reduction{Schema: s, Last: last, Room: rooms.Draw(t, "room")}.Of(part, referred)
			if err != nil {
				t.Fatal(err)
			}
			reduced := stored(t, out)
			if err := check.Reduce(slices.Concat(part, referred), reduced); err != nil {
				t.Fatalf("a typed reduce was refused: %v", err)
			}
			next = append(next, reduced)
		}
		level = next
	}
	return level[0]
}

func TestResultDoesNotDependOnTheTree(t *testing.T) {
	for _, tail := range []string{"", "x-coditect: {key: [id]}\n", "x-coditect: {key: [id], match: near}\n", "x-coditect: {key: []}\n"} {
		s := parse(t, tail)
		t.Run(fmt.Sprint(s.Entities(), s.Near), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				maps := mapped(t, s)
				want := final(s, tree(t, s, maps, len(maps), rapid.Just(0)), maps)
				rooms := rapid.SampledFrom([]int{0, 1, 2, 200, 600, 2000})
				got := final(s, tree(t, s, maps, rapid.IntRange(2, 4).Draw(t, "group"), rooms), maps)
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("a tree gives another result than one reduce (-one +tree):\n%s", diff)
				}
			})
		})
	}
}

func TestReducedOutputHoldsOnlyWhatItMerged(t *testing.T) {
	s := parse(t, "")
	maps := make([]*output.Output, 1000)
	for i := range maps {
		r := merge.Record{Document: fmt.Sprint(i), Order: merge.Order{Unit: int64(i) << 20}}
		maps[i] = &output.Output{Entries: []output.Entry{{
			Members: []output.Member{{Unit: int64(i) << 20}}, Accumulator: merge.Accumulate(s, r), Chunks: 1,
		}}}
	}
	data, err := output.Reduce(s, maps, nil, true).Encode()
	if err != nil || len(data) > 16 {
		t.Errorf("a reduce of 1000 documents that have nothing in common takes %d bytes, %v", len(data), err)
	}
}

func FuzzDecode(f *testing.F) {
	s := parse(f, "")
	r := merge.Record{Document: "d", Values: []merge.Value{{Field: "id", Value: "x", Confidence: rand.Float64()}}}
	o := &output.Output{Entries: []output.Entry{{Members: []output.Member{{}}, Accumulator: merge.Accumulate(s, r)}}}
	data, err := o.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := output.Decode(data)
		if err != nil {
			return
		}
		once, err := o.Encode()
		if err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
		again, err := output.Decode(once)
		if err != nil {
			t.Fatalf("what was encoded cannot be decoded: %v", err)
		}
		if twice, err := again.Encode(); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("what was read is not stored again as it was: %v\n%x\n%x", err, once, twice)
		}
	})
}

// TestValuesAreReadAsJSON: Decode reads or refuses each stored value as encoding/json does.
func TestValuesAreReadAsJSON(t *testing.T) {
	parts := []string{
		`"`, `\`, `\n`, `\u00e9`, `\ud83d`, "\n", "\t", "\r", "\x01", "\x7f", "\x80", "\u2028", "é", "a", "0", "7", "12", "-", "+",
		".", "e", "1.5e3", " ", "[", "]", "{", "}", ":", ",", "null", "true", `"text"`,
	}
	for _, raw := range []string{
		"", " ", `""`, `"`, `"a" `, ` "a"`, `"a"b"`, "\"\x00\"", "\"\x7f\"", "\"\u2028\"", "\"\x80\"", "\"\xed\xa0\x80\"",
		"1", "1 ", "1\t", "1\r\n", " 1", "1 2", "-", "-0", "-1.5E+7", "01", "1e400", "1.", "0x1", strings.Repeat("9", 400), "1\v",
	} {
		compareValue(t, []byte(raw))
	}
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 6).Draw(t, "parts"), ""))
		if rapid.Bool().Draw(t, "quoted") {
			raw = fmt.Appendf(nil, `"%s"`, raw)
		}
		compareValue(t, raw)
	})
}

func compareValue(t rapid.TB, raw []byte) {
	t.Helper()
	var want any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	wrong := d.Decode(&want)
	data, err := proto.Marshal(&storagev1.Output{Entries: []*storagev1.Entry{{
		Members: []*storagev1.Member{{}},
		Fields:  []*storagev1.Field{{Path: "id", Candidates: []*storagev1.Candidate{{Value: raw, Mentions: []*storagev1.Mention{{}}}}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := output.Decode(data)
	if (err == nil) != (wrong == nil) {
		t.Fatalf("%q: error %v, want %v", raw, err, wrong)
	}
	if err != nil {
		return
	}
	if got := out.Entries[0].Fields[0].Candidates[0].Value; !reflect.DeepEqual(got, want) {
		t.Errorf("%q is read as %#v, want %#v", raw, got, want)
	}
}

func judged(s *schema.Schema, maps []*output.Output, judge output.Judge) (*output.Output, error) {
	return output.Reduction{Schema: s, Last: true, Judge: judge}.Of(maps, nil)
}

// TestJudge: who is asked gets the pairs that the rules leave open, all at once,
// with what is known of both, and decides; without anybody they stay apart. An
// error ends the reduce.
func TestJudge(t *testing.T) {
	s := parse(t, "x-coditect: {key: [id], match: near}\n")
	var maps []*output.Output
	for i, id := range []string{"Martin Foods", "Marvin Foods", "Martin Fodos", "Kiel Trading", "Kiel"} {
		r := merge.Record{Document: fmt.Sprint("d", i), Order: merge.Order{Unit: int64(i)}, Values: []merge.Value{{Field: "id", Value: id, Confidence: 0.5, Citations: []merge.Citation{"c"}}}}
		out := &output.Output{Entries: []output.Entry{{Members: []output.Member{{Unit: int64(i)}}, Accumulator: merge.Accumulate(s, r), Chunks: 1}}}
		maps = append(maps, out)
	}
	members := func(out *output.Output) []int {
		var all []int
		for _, e := range out.Entries {
			all = append(all, len(e.Members))
		}
		return all
	}
	if got := members(output.Reduce(s, maps, nil, true)); !slices.Equal(got, []int{2}) {
		t.Errorf("without a judge entities of %v records, want one of 2", got)
	}
	for _, verdict := range []bool{true, false} {
		asked := 0
		out, err := judged(s, maps, func(pairs []merge.Pair, entries map[string]*output.Entry) ([]bool, error) {
			asked++
			yes := make([]bool, len(pairs))
			for i, p := range pairs {
				if entries[p.A] == nil || entries[p.B] == nil {
					t.Errorf("nothing is known of %+v", p)
				}
				yes[i] = verdict
			}
			return yes, nil
		})
		want := map[bool][]int{true: {3, 2}, false: {2}}[verdict]
		if got := members(out); err != nil || asked != 1 || !slices.Equal(got, want) {
			t.Errorf("verdict %v, asked %d times: entities of %v records, want %v; %v", verdict, asked, got, want, err)
		}
	}
	broken := errors.New("no answer")
	if _, err := judged(s, maps, func([]merge.Pair, map[string]*output.Entry) ([]bool, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want the judge's", err)
	}
}
