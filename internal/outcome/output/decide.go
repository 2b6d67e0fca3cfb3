package output

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// Issued are the ids that a reducer is given, as they are spelled to it.
type Issued struct {
	names map[merge.Citation]string
	ids   map[string]merge.Citation
}

// Issue spells the citations of the output's entries, as short as they can be
// told apart.
func (o *Output) Issue() *Issued {
	return issueNames(func(yield func(refs.ID) bool) {
		for n := range o.Entries {
			for _, m := range o.Entries[n].Mentions() {
				for _, id := range m.Citations {
					if !yield(refs.ID([]byte(id))) {
						return
					}
				}
			}
		}
	})
}

func issueNames(ids iter.Seq[refs.ID]) *Issued {
	i := &Issued{names: make(map[merge.Citation]string), ids: make(map[string]merge.Citation)}
	for _, n := range refs.All(ids) {
		id := merge.Citation(n.ID[:])
		i.names[id], i.ids[n.Name] = n.Name, id
	}
	return i
}

// Name returns how a citation is spelled, or "" if it was not issued.
func (i *Issued) Name(id merge.Citation) string { return i.names[id] }

// wasIssued reports whether a canonical name was issued.
func (i *Issued) wasIssued(name string) bool {
	_, ok := i.ids[name]
	return ok
}

// Names returns all spellings, sorted.
func (i *Issued) Names() []string { return slices.Sorted(maps.Keys(i.ids)) }

// Show returns a text that holds ids in full as the reducer is to read it.
func (i *Issued) Show(text string) string {
	return refs.RespellFull(text, func(id refs.ID) string {
		return cmp.Or(i.names[merge.Citation(id[:])], refs.Unknown)
	})
}

// Spelled returns a value with the ids in its texts, which are spelled in full
// inside, as spell says. Of ids there are those that the value cites; any other
// text is as it was found.
func Spelled(value any, ids []merge.Citation, spell func(refs.ID) string) any {
	switch v := value.(type) {
	case string:
		if !strings.Contains(v, refs.Mark) {
			return v
		}

		// An id stands in full inside, so it can be replaced wherever it stands.
		for _, id := range ids {
			full := refs.ID([]byte(id))
			v = strings.ReplaceAll(v, full.Full(), spell(full))
		}
		return v

	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = Spelled(item, ids, spell)
		}
		return list
	default:
		return value
	}
}

// A Decision is what a reducer says about one field of one entity. Nothing in it
// is believed.
type Decision struct {
	Entry int    // index in the entries it was given
	Field string // path
	Value any    // nil: there is none
	Refs  []string
	Said  float64 // how sure it is, of [0,1]; 0 if it does not say
	Why   string  // in its words; a reason of what it does not pass on
}

// Decide applies what a reducer said to the output of a typed reduce.
//
//  1. A value that one of the inputs had is chosen: it keeps the places that the
//     reducer cites for it, all of them if it cites none.
//  2. A value in the reducer's own words is taken if it follows from quotes of
//     this field of this entity that it cites.
//  3. Any other is removed, and the field stays as the typed reduce left it.
//
// Ids in refs and in texts that were not issued, or that are about another field or entity,
// are removed. What is removed is reported, and so is each citation that is not passed on,
// and each conflict that is decided, with all its values. Fields that no decision is about
// stay as they are.
func (o *Output) Decide(s *schema.Schema, unit string, issued *Issued, decisions []Decision) {
	d := &decider{out: o, schema: s, unit: unit, issued: issued}
	for _, x := range decisions {
		d.applyDecision(x)
	}
}

type decider struct {
	out    *Output
	schema *schema.Schema
	unit   string
	issued *Issued
}

func (d *decider) addRemoved(field, name, reason string) {
	r := Removed{Name: clipText(name), Field: field, Reason: reason, Unit: d.unit}
	if !slices.Contains(d.out.Removed, r) {
		d.out.Removed = append(d.out.Removed, r)
	}
}

func (d *decider) applyDecision(x Decision) {
	p := d.schema.Field(x.Field)

	switch {
	case p == nil:
		d.addRemoved(clipText(x.Field), fmt.Sprint(x.Value), "the schema has no such field")
		return
	case x.Entry < 0 || x.Entry >= len(d.out.Entries):
		d.addRemoved(x.Field, fmt.Sprint(x.Value), "there is no such record")
		return
	}

	e := &d.out.Entries[x.Entry]
	e.Fields = slices.Clone(e.Fields) // they may be an input's
	i := slices.IndexFunc(e.Fields, func(f merge.Field) bool { return f.Path == x.Field })
	if i < 0 {
		d.addRemoved(x.Field, fmt.Sprint(x.Value), "no input says anything about this field")
		return
	}

	c := &choice{
		decider: d, p: p, field: &e.Fields[i], record: e.Members[0], said: x.Said, why: x.Why,
		allowed: citationSet(e.Fields[i].Candidates), open: d.openConflict(e, x.Field),
	}

	if c.isReviewed() {
		d.addRemoved(x.Field, fmt.Sprint(x.Value), "a person has decided about this field")
		return
	}
	c.citeNames(x.Refs)
	c.applyValue(x.Value)
}

// isReviewed reports whether a person has decided that a value of the field is right: no reducer
// decides otherwise.
func (c *choice) isReviewed() bool {
	return slices.ContainsFunc(c.field.Candidates, func(one merge.Candidate) bool { return one.IsReviewed() })
}

// citationSet returns the citations of candidates.
func citationSet(all []merge.Candidate) map[merge.Citation]bool {
	ids := make(map[merge.Citation]bool)
	for _, c := range all {
		for _, m := range c.Mentions {
			for _, id := range m.Citations {
				ids[id] = true
			}
		}
	}
	return ids
}

// A choice is one decision being applied.
type choice struct {
	*decider
	p       *schema.Property
	field   *merge.Field
	record  Member // the first of the entity
	said    float64
	why     string
	allowed map[merge.Citation]bool // by the inputs, for this field
	open    *merge.Conflict         // between its values; nil if there is none
	refs    []merge.Citation        // that the reducer cites, of those
}

// citeNames takes the references that may be passed on.
func (c *choice) citeNames(names []string) {
	for _, text := range names {
		listed := refs.Mentioned(text, c.issued.wasIssued)
		if len(listed) == 0 {
			listed = []string{text} // nothing that looks like an id
		}

		for _, name := range listed {
			if id, ok := c.lookupCitation(name); ok && !slices.Contains(c.refs, id) {
				c.refs = append(c.refs, id)
			}
		}
	}
}

// lookupCitation returns the citation that a name stands for here.
func (c *choice) lookupCitation(name string) (merge.Citation, bool) {
	id, ok := c.issued.ids[refs.Canonical(name)]
	switch {
	case !ok:
		c.addRemoved(c.field.Path, name, "the reference was never issued")
	case !c.allowed[id]:
		c.addRemoved(c.field.Path, name, "the reference is about another field or record")
	default:
		return id, true
	}
	return "", false
}

// applyValue applies a value.
func (c *choice) applyValue(value any) {
	said := fmt.Sprint(value)
	value, err := c.p.Normalize(c.citeProse(value))
	if err != nil {
		c.addRemoved(c.field.Path, said, "the value does not fit the schema: "+err.Error())
		return
	}

	if value == nil {
		c.keepCandidates(nil, c.addReason("the reducer found no value"))
		c.field.Missing = &merge.Absence{Reason: "the reducer found no value"}
		c.listDecided(nil)
		return
	}

	// Of a list each element has to stand for itself; those that cannot be taken are left
	// out.
	var kept []merge.Candidate
	for _, one := range merge.Elements(c.p, value) {
		candidate, reason := c.findCandidate(one)
		if reason != "" {
			c.addRemoved(c.field.Path, said, reason)
			continue
		}
		kept = append(kept, candidate)
	}

	if len(kept) > 0 {
		c.keepCandidates(merge.Union(kept), c.addReason("the reducer did not pass it on"))
		c.listDecided(value)
	}
}

// addReason adds the reducer's words to a reason. They are words, and name nothing:
// ids in them are taken out.
func (c *choice) addReason(reason string) string {
	if c.why == "" {
		return reason
	}
	words := refs.Respell(clipText(c.why), func(string) (string, bool) { return "", true }).Text
	return reason + ": " + strings.TrimSpace(strings.ReplaceAll(words, "[]", ""))
}

// Join makes values of a field one, which a reducer says mean the same: what
// speaks for the others speaks for the one that is kept. Values are named by
// their keys. It reports whether all of them are there.
func (o *Output) Join(entry int, path, kept string, others ...string) bool {
	if entry < 0 || entry >= len(o.Entries) {
		return false
	}
	e := &o.Entries[entry]
	i := slices.IndexFunc(e.Fields, func(f merge.Field) bool { return f.Path == path })
	if i < 0 {
		return false
	}

	var one *merge.Candidate
	var rest, same []merge.Candidate
	for _, c := range e.Fields[i].Candidates {
		switch {
		case c.Key == kept:
			one = &c
		case slices.Contains(others, c.Key):
			c.Key = kept
			same = append(same, c)
		default:
			rest = append(rest, c)
		}
	}

	if one == nil || len(same) != len(others) {
		return false
	}
	if one.IsReviewed() || slices.ContainsFunc(same, func(c merge.Candidate) bool { return c.IsReviewed() }) {
		return false // a person has decided which one it is
	}

	// The kept value stays as it was written, whichever of the joined ones Union would put
	// first.
	value := one.Value
	joined := merge.Union(append(same, *one))
	joined[0].Value = value

	e.Fields = slices.Clone(e.Fields) // they may be an input's
	e.Fields[i].Candidates = merge.Union(append(rest, joined...))
	return true
}

// citeProse spells the ids in a text in full, and cites them. Other values are
// returned as they are.
func (c *choice) citeProse(value any) any {
	text, ok := value.(string)
	if !ok {
		return value
	}

	r := refs.Respell(text, func(name string) (string, bool) {
		id, ok := c.issued.ids[name]
		return refs.Mark + refs.ID([]byte(padCitation(id))).String(), ok && c.allowed[id]
	})

	if len(r.Edits) == 0 {
		return text
	}
	c.citeNames([]string{text})
	return r.Text
}

// padCitation makes an id of what may be none; it is not used then.
func padCitation(id merge.Citation) merge.Citation {
	if id == "" {
		return merge.Citation(make([]byte, len(refs.ID{})))
	}
	return id
}

// findCandidate returns what speaks for one value, or why it cannot be taken.
func (c *choice) findCandidate(value any) (merge.Candidate, string) {
	id := merge.Identity(c.p, value)
	for _, had := range c.field.Candidates {
		if merge.Identity(c.p, had.Value) == id {
			return c.narrowCandidate(had), ""
		}
	}
	return c.deriveCandidate(id, value)
}

// narrowCandidate leaves a candidate the places that were cited.
func (c *choice) narrowCandidate(had merge.Candidate) merge.Candidate {
	var kept []merge.Mention
	for _, m := range had.Mentions {
		if slices.ContainsFunc(m.Citations, func(id merge.Citation) bool { return slices.Contains(c.refs, id) }) {
			kept = append(kept, m)
		}
	}

	// A reducer that cites none of the places of a value it chose keeps all of them.
	if len(kept) > 0 {
		had.Mentions = kept
	}
	return had
}

// deriveCandidate makes a candidate of a value that no input had.
func (c *choice) deriveCandidate(key string, value any) (merge.Candidate, string) {
	if c.p.Hints.Derived {
		return merge.Candidate{}, "the field is derived, and the value is none of those that were derived"
	}
	if len(c.refs) == 0 {
		return merge.Candidate{}, "the value is none of those that were found, and cites none of them"
	}

	quotes := make([]string, 0, len(c.refs))
	grade := ground.Exact
	bare := withoutIDs(value)

	support := confidence.Contradicts
	for _, id := range c.refs {
		cite := c.out.Citations[id]
		quotes = append(quotes, cite.Quote)
		support = max(support, confidence.Support(c.p, bare, cite.Quote))
		if gradeRank(cite.Grade) < gradeRank(string(grade)) {
			grade = ground.Grade(cite.Grade)
		}
	}

	// The value must follow from a quote, or from all of them together.
	all := strings.Join(quotes, "\n")
	if support = max(support, confidence.Support(c.p, bare, all)); support == confidence.Contradicts {
		return merge.Candidate{}, "the value does not follow from what it cites"
	}

	sure := confidence.Of(confidence.Evidence{Property: c.p, Value: bare, Quote: all, Grade: grade})
	m := merge.NewMention(c.refs, sure, c.said)

	// The new mention stands for the readings of those whose places it cites.
	for _, had := range c.field.Candidates {
		for _, old := range had.Mentions {
			if slices.ContainsFunc(old.Citations, func(id merge.Citation) bool { return slices.Contains(c.refs, id) }) {
				m = m.ReadAs(old)
			}
		}
	}

	return merge.Candidate{Key: key, Value: value, Mentions: []merge.Mention{m}}, ""
}

// withoutIDs returns a text without the ids in it, to be compared with quotes.
func withoutIDs(value any) any {
	text, ok := value.(string)
	if !ok || !strings.Contains(text, refs.Mark) {
		return value
	}
	text = refs.Respell(text, func(string) (string, bool) { return "", true }).Text
	return format.Text(strings.ReplaceAll(text, "[]", ""))
}

// keepCandidates makes kept the candidates of the field and lists what is not cited any
// more.
func (c *choice) keepCandidates(kept []merge.Candidate, reason string) {
	now := citationSet(kept)
	for _, id := range slices.Sorted(maps.Keys(c.allowed)) {
		if !now[id] {
			c.out.Dropped = append(c.out.Dropped, Dropped{Citation: id, Field: c.field.Path, Reason: reason, Unit: c.unit, Record: &c.record})
		}
	}

	c.field.Candidates = kept
}

// clipText bounds what is repeated of what a reducer said.
func clipText(s string) string { return shorten.Text(strings.ToValidUTF8(s, "\ufffd"), 200) }
