package result

import (
	"strings"

	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// A speller spells the ids of citations as short as they can be told apart in a result,
// and whatever names them.
type speller struct{ *refs.Spelling }

// SpellAll spells ids of citations.
func (s speller) SpellAll(ids []merge.Citation) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = s.Spell(refs.ID([]byte(id)))
	}
	return names
}

// A conflict is an entry of conflict_resolutions.
type conflict struct {
	Field      string         `json:"field"`
	Key        map[string]any `json:"key"`
	Candidates []choice       `json:"candidates"`
	Chosen     any            `json:"chosen"`
	Strategy   string         `json:"strategy"`
	Unit       string         `json:"unit_id,omitempty"` // the reduce, if a model decided
	Rationale  string         `json:"rationale"`
}

type choice struct {
	Value      any      `json:"value"`
	Citations  []string `json:"citations"`
	Confidence float64  `json:"confidence"`
	Count      int64    `json:"count"`
}

// ConflictView returns a conflict as a result tells of it.
func (s speller) ConflictView(c merge.Conflict) conflict {
	out := conflict{
		Field: c.Field, Key: c.Key, Chosen: c.Chosen, Strategy: string(c.Strategy), Rationale: c.Rationale,
		Candidates: make([]choice, len(c.Candidates)),
	}
	for i, one := range c.Candidates {
		out.Candidates[i] = choice{one.Value, s.SpellAll(one.Citations), one.Confidence, one.Count}
	}
	return out
}

// RespellEntity spells the ids that reducers wrote into the texts of an entity.
func (s speller) RespellEntity(f *merge.Result) {
	for field, v := range f.Values {
		f.Values[field] = output.Spelled(v, f.Citations[field], s.Spell)
	}
	for field, v := range f.Key {
		f.Key[field] = output.Spelled(v, f.Citations[field], s.Spell)
	}
	for i := range f.Conflicts {
		c := &f.Conflicts[i]
		s.RespellConflict(c, f.Citations[c.Field])
	}
}

// RespellConflict does the same with the values of a conflict, of which that which
// was chosen has the given citations.
func (s speller) RespellConflict(c *merge.Conflict, chosen []merge.Citation) {
	for j := range c.Candidates {
		one := &c.Candidates[j]
		one.Value = output.Spelled(one.Value, one.Citations, s.Spell)
	}
	c.Chosen = output.Spelled(c.Chosen, chosen, s.Spell)
}

// refersToOther reports whether a text has a reference, or the mark of one that was removed. A
// text with a reference is a claim, however short it is and whatever sign ends it: it says
// that something stands in the passage.
func refersToOther(text string) bool {
	isNone := func(string) bool { return false }
	return len(refs.Mentioned(text, isNone)) > 0 || strings.Contains(text, "["+refs.Unknown+"]")
}

// aboutSource returns what a claim may say of a source that its passage does not.
func aboutSource(s refs.Source) string {
	return s.Title + ". " + strings.Join(s.Authors, ", ") + ", " + s.Year + "."
}
