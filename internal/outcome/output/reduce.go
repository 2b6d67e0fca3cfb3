package output

import (
	"cmp"
	"slices"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/text/ground"
)

// A Reduction says how outputs are reduced.
type Reduction struct {
	Schema *schema.Schema
	// Last says that nothing comes after: pieces of documents that are still
	// missing have failed.
	Last bool
	// Room is about how many bytes what was merged may take. Entities beyond it go
	// on as the names of their records, and are merged when the result is read:
	// merging them here would change nothing in it. 0 is no bound. What somebody
	// has decided must not be left to that.
	Room int
	// Judge decides where the rules leave open whether entities are one. Without
	// one they stay apart.
	Judge Judge
}

// A Judge says of pairs of entities whether they are one. It is asked only about
// pairs that the rules leave open, once for all of a reduce. An error ends the
// reduce.
type Judge func(pairs []merge.Pair, entries map[string]*Entry) ([]bool, error)

// Reduce is a Reduction without bounds and without a judge.
func Reduce(s *schema.Schema, inputs, referred []*Output, last bool) *Output {
	out, _ := Reduction{Schema: s, Last: last}.Of(inputs, referred) // there is nobody whose error it could be
	return out
}

// Of merges what outputs say about the same entities, as far as the schema
// decides it. The result holds what was merged, and what later outputs may add
// to; all other records pass on as they stand in the outputs of their units.
//
// inputs are in order of the input, map outputs or reduced ones. referred hold
// the records that Wanted named.
//
// Entities whose keys are near, see schema.Schema.Near, are joined by the last
// reduce, which alone knows all of them, so that it does not matter in which
// groups the others saw them.
func (n Reduction) Of(inputs, referred []*Output) (*Output, error) {
	r := n.newReducer(inputs, referred)
	r.groupEntries()
	if err := r.joinNear(); err != nil {
		return nil, err
	}
	r.keepOpen()
	r.pruneCitations()
	return r.out, nil
}

// Whole merges outputs as Reduce does after which nothing comes, and holds every
// record, be it merged with others or not: nobody else holds them.
func Whole(s *schema.Schema, inputs []*Output) *Output {
	r := Reduction{Schema: s, Last: true}.newReducer(inputs, nil)
	r.groupEntries()
	_ = r.joinNear() // there is nobody whose error it could be
	r.out.Entries, r.out.Open = r.entries, nil
	r.pruneCitations()
	return r.out
}

// newReducer returns what is to be reduced, as it was given.
func (n Reduction) newReducer(inputs, referred []*Output) *reducer {
	r := &reducer{Reduction: n, out: &Output{Citations: make(map[merge.Citation]Citation)}}
	for _, in := range slices.Concat(inputs, referred) {
		for id, c := range in.Citations {
			if had, ok := r.out.Citations[id]; !ok || c.isBetter(&had) {
				r.out.Citations[id] = c
			}
		}
		r.entries = append(r.entries, in.Entries...)
	}

	have := make(map[Member]bool, len(r.entries))
	for _, e := range r.entries {
		for _, m := range e.Members {
			have[m] = true
		}
	}

	// A record that an input names is at hand if another input, or what was referred to,
	// holds it.
	for _, in := range inputs {
		r.out.Dropped = append(r.out.Dropped, in.Dropped...)
		r.out.Removed = append(r.out.Removed, in.Removed...)
		r.out.Decided = append(r.out.Decided, in.Decided...)
		for _, op := range in.Open {
			if !have[op.Member] {
				r.out.Open = append(r.out.Open, op)
			}
		}
	}

	return r
}

// isBetter reports whether c is to be kept of two findings of the same place: the
// better grade, then that of a unit that read the place, then that of the earlier
// chunk, then what is more certain.
func (c *Citation) isBetter(than *Citation) bool {
	return cmp.Or(
		cmp.Compare(gradeRank(c.Grade), gradeRank(than.Grade)),
		compareBool(than.Outside, c.Outside),
		cmp.Compare(len(than.Unit), len(c.Unit)), // chunk 2 before chunk 10
		cmp.Compare(than.Unit, c.Unit),
		cmp.Compare(than.Others, c.Others),
		cmp.Compare(c.Coverage, than.Coverage),
		cmp.Compare(c.Density, than.Density),
	) > 0
}

// gradeRank orders grades, the best highest; 0 is none.
func gradeRank(grade string) int {
	switch ground.Grade(grade) {
	case ground.Exact:
		return 4
	case ground.Normalised:
		return 3
	case ground.Fuzzy:
		return 2
	case ground.Lookalike:
		return 1
	default:
		return 0
	}
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

type reducer struct {
	Reduction
	entries []Entry
	out     *Output
	held    int // bytes of what was merged, about
}

// groupEntries joins the entries of each entity: first the pieces of a document, any
// of which may hold its key, then what has the same key.
func (r *reducer) groupEntries() {
	r.entries = joinEntries(r.entries)
	if r.Schema.Entities() != schema.ByKey {
		return
	}

	// An entry of a whole document has all that its key is made of.
	for i, e := range r.entries {
		if r.isWhole(&e) {
			r.entries[i].Accumulator = merge.Rekey(r.Schema, []merge.Accumulator{e.Accumulator})[0]
		}
	}

	r.entries = joinEntries(r.entries)
}

// joinNear joins entities whose keys are near.
func (r *reducer) joinNear() error {
	if !r.Last || !r.Schema.Near {
		return nil
	}

	same, open := merge.Near(r.Schema, r.entityNames(r.out.Open))
	// The judge is asked once, with all pairs, as a model may answer many in one call.
	if r.Judge != nil && len(open) > 0 {
		byName := make(map[string]*Entry, len(r.entries))
		for i := range r.entries {
			byName[r.entries[i].Entity] = &r.entries[i]
		}
		verdicts, err := r.Judge(open, byName)
		if err != nil {
			return err
		}
		for i, yes := range verdicts[:min(len(verdicts), len(open))] {
			if yes {
				same = append(same, open[i])
			}
		}
	}

	clusters := merge.Clusters(same)
	for i, e := range r.entries {
		if name, ok := clusters[e.Entity]; ok {
			r.entries[i].Entity = name
		}
	}
	for i, op := range r.out.Open {
		if name, ok := clusters[op.Entity]; ok {
			r.out.Open[i].Entity = name
		}
	}

	r.entries = joinEntries(r.entries)
	return nil
}

// entityNames returns those of all entities, held and open.
func (r *reducer) entityNames(open []Open) []string {
	names := make([]string, 0, len(r.entries)+len(open))
	for _, e := range r.entries {
		names = append(names, e.Entity)
	}
	for _, op := range open {
		names = append(names, op.Entity)
	}
	return names
}

// isWhole reports whether no more pieces of the entry's document are to come.
func (r *reducer) isWhole(e *Entry) bool { return r.Last || e.Chunks <= len(e.Members) }

// joinEntries merges entries of the same entity, and returns one for each in the order
// of the input.
func joinEntries(entries []Entry) []Entry {
	at := make(map[string][]Entry)
	for _, e := range entries {
		at[e.Entity] = append(at[e.Entity], e)
	}

	joined := make([]Entry, 0, len(at))
	for _, same := range at {
		// A single entry is passed on as it is.
		one := same[0]
		if len(same) > 1 {
			parts := make([]merge.Accumulator, len(same))
			one.Members = nil
			for i, e := range same {
				parts[i] = e.Accumulator
				one.Members = append(one.Members, e.Members...)
				one.Chunks = max(one.Chunks, e.Chunks)
			}
			one.Accumulator = merge.Group(parts)[0]
			slices.SortFunc(one.Members, Member.Compare)
		}

		joined = append(joined, one)
	}

	slices.SortFunc(joined, func(a, b Entry) int { return a.Members[0].Compare(b.Members[0]) })
	return joined
}

// keepOpen puts into the output what has to go on: entries that were merged, pieces
// of documents that are not whole, and the names of records that are of entities
// for which there was no room, or, where records of different documents may be of
// one entity, of all others.
func (r *reducer) keepOpen() {
	for _, e := range r.entries {
		switch {
		case !r.isWhole(&e) || len(e.Members) > 1 && r.takeRoom(&e):
			r.out.Entries = append(r.out.Entries, e)
		case len(e.Members) > 1 || merge.MayMeet(e.Entity):
			for _, m := range e.Members {
				r.out.Open = append(r.out.Open, Open{e.Entity, m})
			}
		}
	}

	// Nobody comes after the last reduce, so a name is of use only to what is merged when
	// the result is read.
	if r.Last {
		r.out.Open = r.out.unmergedRecords()
	}

	slices.SortFunc(r.out.Open, func(a, b Open) int { return a.Compare(b.Member) })
}

// pruneCitations leaves out the citations of records that pass on elsewhere.
func (r *reducer) pruneCitations() {
	used := make(map[merge.Citation]Citation)
	for id := range r.out.UsedCitations() {
		used[id] = r.out.Citations[id]
	}
	r.out.Citations = used
}

// Wanted returns the records that a Reduce of inputs needs beside them: those
// that inputs only name, of entities that something else in them belongs to. It
// leaves out the entities for which a reduce below had no room: there is none
// here either.
func Wanted(s *schema.Schema, inputs []*Output, last bool) []Open {
	r := &reducer{Reduction: Reduction{Schema: s, Last: last}}
	count := make(map[string]int)
	for _, in := range inputs {
		r.entries = append(r.entries, in.Entries...)
		for _, op := range in.Open {
			count[op.Entity]++
		}
	}

	r.groupEntries() // pieces of a document may tell only together which entity it is
	for _, e := range r.entries {
		count[e.Entity]++
	}

	// Entities with near keys may be joined by the last reduce; each counts for the other.
	if last && s.Near {
		var open []Open
		for _, in := range inputs {
			open = append(open, in.Open...)
		}
		same, doubtful := merge.Near(s, r.entityNames(open))
		for _, p := range slices.Concat(same, doubtful) {
			count[p.A]++
			count[p.B]++
		}
	}

	var wanted []Open
	late := Deferred(inputs)
	for _, in := range inputs {
		for _, op := range in.Open {
			if count[op.Entity] > 1 && !late[op.Entity] {
				wanted = append(wanted, op)
			}
		}
	}

	slices.SortFunc(wanted, func(a, b Open) int { return a.Compare(b.Member) })
	return wanted
}

// Only returns an output with just the given records of a map unit's output,
// named as their entities are now.
func (o *Output) Only(wanted []Open) *Output {
	out := &Output{Citations: o.Citations}
	for _, w := range wanted {
		for _, e := range o.Entries {
			if e.Members[0] == w.Member {
				e.Entity = w.Entity
				out.Entries = append(out.Entries, e)
			}
		}
	}
	return out
}
