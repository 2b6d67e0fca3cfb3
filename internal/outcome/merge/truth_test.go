package merge_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
)

// disputed has a field for each strategy that chooses one of several values. The
// values of plain are those of vote, all with the same confidence.
const disputed = `
properties:
  name: {type: string}
  vote: {type: string}
  plain: {type: string}
  first: {type: string, x-coditect: {merge: first}}
  latest: {type: string, x-coditect: {merge: latest}}
  longest: {type: string, x-coditect: {merge: longest}}
  highest_confidence: {type: string, x-coditect: {merge: highest_confidence}}
  max: {type: number, x-coditect: {merge: max}}
  min: {type: number, x-coditect: {merge: min}}
x-coditect: {key: [name]}
`

// A world is what is true, and what sources say of it: records of entities, each
// with the entity that it is about.
type world struct {
	s       *schema.Schema
	truth   []map[string]string // of entities, by field
	records []merge.Record
	about   []int
}

// reliabilities are how often sources are right. What is wrong is in six of ten
// cases the same for all of them, as where one copied from another.
var reliabilities = []float64{0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.5}

// invent makes a world in which a share of the keys is mistyped.
func invent(t *testing.T, seed uint64, slips float64, match string) *world {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{s: parse(t, strings.Replace(disputed, "key: [name]", "key: [name], match: "+match, 1))}
	for range 300 {
		text, n := invented(r), fmt.Sprint(100+r.IntN(900))
		e := map[string]string{"name": invented(r) + " " + invented(r), "max": n, "min": n}
		for _, field := range []string{"vote", "plain", "first", "latest", "longest", "highest_confidence"} {
			e[field] = text
		}
		w.truth = append(w.truth, e)
	}
	for i, e := range w.truth {
		lies := []string{invented(r), invented(r), invented(r), invented(r)}
		for _, source := range r.Perm(len(reliabilities)) {
			if r.Float64() < 0.3 {
				continue
			}
			w.say(r, i, e, source, lies, slips)
		}
	}
	return w
}

// say adds what a source says of an entity. How sure it is is about how reliable
// it is, as confidences are measured to be.
func (w *world) say(r *rand.Rand, i int, e map[string]string, source int, lies []string, slips float64) {
	unit := int64(len(w.records))
	sure := max(0.05, min(0.99, reliabilities[source]+r.NormFloat64()*0.05))
	name := e["name"]
	if r.Float64() < slips {
		name = slipped(r, name)
	}
	text, number := e["vote"], e["max"]
	if r.Float64() > reliabilities[source] {
		text, number = lies[0], fmt.Sprint(100+r.IntN(900))
		if r.Float64() > 0.6 {
			text = lies[1+r.IntN(3)]
		}
	}
	rec := merge.Record{Document: fmt.Sprintf("s%d/%d", source, unit), Order: merge.Order{Unit: unit}}
	add := func(field string, v any, sure float64) {
		rec.Values = append(rec.Values, merge.Value{Field: field, Value: v, Confidence: sure, Citations: []merge.Citation{merge.Citation(fmt.Sprint(unit, field))}})
	}
	add("name", name, sure)
	add("plain", text, 0.5)
	for _, field := range []string{"vote", "first", "latest", "longest", "highest_confidence"} {
		add(field, text, sure)
	}
	add("max", json.Number(number), sure)
	add("min", json.Number(number), sure)
	w.records, w.about = append(w.records, rec), append(w.about, i)
}

// resolved groups the records, and returns for each group the record of the result
// and which records of the world it is made of.
func (w *world) resolved() (results []merge.Result, of [][]int) {
	var all []merge.Accumulator
	for _, r := range w.records {
		all = append(all, merge.Accumulate(w.s, r))
	}
	all = merge.Rekey(w.s, all)
	if w.s.Near {
		var names []string
		for _, a := range all {
			names = append(names, a.Entity)
		}
		same, _ := merge.Near(w.s, names)
		clusters := merge.Clusters(same)
		for i := range all {
			if name, ok := clusters[all[i].Entity]; ok {
				all[i].Entity = name
			}
		}
		all = merge.Group(all)
	}
	for _, a := range all {
		results = append(results, merge.Resolve(w.s, a))
		var units []int
		for _, source := range a.Sources {
			units = append(units, int(source.First.Unit))
		}
		of = append(of, units)
	}
	return results, of
}

// accuracy is the share of entities of which a field is right, by field.
func (w *world) accuracy() map[string]float64 {
	results, of := w.resolved()
	right, total := make(map[string]float64), 0.0
	for i, res := range results {
		e := w.truth[w.about[of[i][0]]]
		total++
		for field, want := range e {
			if fmt.Sprint(res.Values[field]) == want {
				right[field]++
			}
		}
	}
	for field := range right {
		right[field] /= total
	}
	return right
}

// pairs compares which records became one with which should have.
func (w *world) pairs() (precision, recall float64, entities int) {
	_, of := w.resolved()
	joined, right, should := 0, 0, 0
	for _, units := range of {
		for k, a := range units {
			for _, b := range units[k+1:] {
				joined++
				if w.about[a] == w.about[b] {
					right++
				}
			}
		}
	}
	for i, a := range w.about {
		for _, b := range w.about[i+1:] {
			if a == b {
				should++
			}
		}
	}
	return float64(right) / float64(joined), float64(right) / float64(should), len(of)
}

// TestStrategiesOnKnownTruth prints how often each strategy is right where seven
// sources of known reliability disagree. A vote by confidence is at least as good
// as one that counts heads.
func TestStrategiesOnKnownTruth(t *testing.T) {
	fields := []string{"vote", "plain", "highest_confidence", "first", "latest", "longest", "max", "min"}
	sum := make(map[string]float64)
	const seeds = 10
	t.Logf("%-6s %s", "seed", strings.Join(fields, "  "))
	for seed := range uint64(seeds) {
		got := invent(t, seed, 0, "exact").accuracy()
		var row []string
		for _, field := range fields {
			row = append(row, fmt.Sprintf("%.3f", got[field]))
			sum[field] += got[field] / seeds
		}
		t.Logf("%-6d %s", seed, strings.Join(row, "  "))
		if got["vote"] < got["plain"] {
			t.Errorf("seed %d: a weighted vote is right in %.3f, a plain one in %.3f", seed, got["vote"], got["plain"])
		}
	}
	for _, field := range fields {
		t.Logf("%-20s %.3f", field, sum[field])
	}
	for _, field := range fields[3:] {
		if sum["vote"] <= sum[field] {
			t.Errorf("a weighted vote is right in %.3f, %s in %.3f", sum["vote"], field, sum[field])
		}
	}
}

// TestDuplicatesWithSlips prints how well records of the same entity are brought
// together when a share of the keys is mistyped, by equal keys and by near ones.
func TestDuplicatesWithSlips(t *testing.T) {
	t.Logf("%-6s %-6s %-6s %9s %9s %9s", "slips", "match", "seed", "precision", "recall", "entities")
	for _, slips := range []float64{0, 0.1, 0.3} {
		for _, match := range []string{"exact", "near"} {
			for seed := range uint64(3) {
				w := invent(t, seed, slips, match)
				precision, recall, entities := w.pairs()
				t.Logf("%-6.1f %-6s %-6d %9.4f %9.4f %9d", slips, match, seed, precision, recall, entities)
				if match == "near" && (precision < 0.99 || recall < 0.97) {
					t.Errorf("slips %.1f, seed %d: precision %.4f, recall %.4f, want 0.99 and 0.97", slips, seed, precision, recall)
				}
			}
		}
	}
}
