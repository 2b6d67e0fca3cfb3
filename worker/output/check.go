package output

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/worker/ground"
	"github.com/coditect/mapreduce/worker/merge"
	"github.com/coditect/mapreduce/worker/output/jsonvalue"
	"github.com/coditect/mapreduce/worker/output/payload"
	"github.com/coditect/mapreduce/worker/refs"
)

// ErrBreach is what outputs are refused with that cite what they must not, or
// lose what they must list. It is never the document's fault.
var ErrBreach = errors.New("output: a citation is not true")

func breachError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBreach, fmt.Sprintf(format, args...))
}

// A Text is what a map unit read.
type Text struct {
	Document, Unit         string
	Index                  int64 // of the unit
	Hash                   refs.DocumentHash
	Content                []byte
	Length                 int64 // of what the unit read in bytes, if Content is left out because nothing of it is cited
	ByteOffset, CharOffset int64 // of Content in the text of the document

	// Whole is the text of the document, if the unit cites it outside of
	// Content; else it may be nil.
	Whole *ground.Text

	Metadata map[string]string // of the document, which labels of citations follow from
}

// CheckMap checks the output of a map unit: that every quote is the text at its
// offsets, in bytes and in characters, that every id is that of what it cites, and
// that its records are its own and of no other document. A unit with tools may have
// evidence, which it may cite as well, and have records of; of any other it is nil.
func CheckMap(t Text, evidence EvidenceFinder, o *Output) error {
	if len(o.Dropped)+len(o.Removed)+len(o.Decided)+len(o.Open) > 0 {
		return breachError("a map unit reports what only a reduce can")
	}
	if err := o.checkDates(t.Unit, max(int64(len(t.Content)), t.Length)); err != nil {
		return err
	}
	cited, err := o.listCitations()
	if err != nil {
		return err
	}
	if err := checkCited(t.Unit, MapTexts(t, evidence), cited); err != nil {
		return err
	}
	return CheckRecords(t, o)
}

// checkDates refuses more dates than a text of so many bytes can have: those of all
// documents of a job are added up.
func (o *Output) checkDates(unit string, length int64) error {
	const shortest = 6 // bytes of a date
	d, most := o.Dates, length/shortest
	if d.DayFirst < 0 || d.MonthFirst < 0 || d.DayFirst > most || d.MonthFirst > most-d.DayFirst {
		return breachError("%s counts %d and %d dates in a text of %d bytes", unit, d.DayFirst, d.MonthFirst, length)
	}
	return nil
}

// CheckRecords checks that the records of a map unit are its own and of no other
// document than the one that it read, or of evidence that they cite.
func CheckRecords(t Text, o *Output) error {
	found := o.evidenceOf(t.Unit)
	return ownRecords(t.Unit, t.Index, func(document string) bool { return document == t.Document || found[document] }, o)
}

// CheckPassages checks the passages that a unit chose out of the texts that it may cite:
// that each stands there and is described as its document is, and that each element names
// one of them.
func CheckPassages(unit string, texts Texts, f *jsonvalue.Form, o *Output) error {
	if len(o.Entries)+len(o.Open)+len(o.Dropped)+len(o.Removed)+len(o.Decided)+len(o.Judged) > 0 {
		return breachError("a unit that chooses passages reports more than these")
	}
	if err := f.CheckValue(o.Value); err != nil {
		return err
	}
	chosen, err := Passages(nil, []*Output{o})
	if err != nil {
		return fmt.Errorf("%w: %w", jsonvalue.ErrForm, err)
	}
	if len(chosen) != len(o.Citations) {
		return breachError("%s has %d passages and %d citations", unit, len(chosen), len(o.Citations))
	}
	cited := make([]Citation, len(chosen))
	for i, p := range chosen {
		if cited[i] = p.Citation; p.Label == "" {
			return breachError("%s does not describe the document of a passage", unit)
		}
	}
	return checkCited(unit, texts, cited)
}

// A Reader checks citations of a text one by one. It is for one goroutine.
type Reader struct {
	text      Text
	at, point int64 // how far its characters were counted: byte of Content, character of the document
}

// NewReader returns a Reader of what a map unit read, or of one of the documents
// that a direct unit did.
func NewReader(t Text) *Reader { return &Reader{text: t, point: t.CharOffset} }

// Check checks a citation as CheckMap does. Those in the order of the text take the
// least time.
func (r *Reader) Check(c Citation) error {
	start, err := r.citationStart(&c)
	if err != nil {
		return err
	}
	return r.text.checkCitation(&c, start)
}

// listCitations are the citations of an output.
func (o *Output) listCitations() ([]Citation, error) {
	var cited []Citation
	for id := range o.usedCitations() {
		c, ok := o.Citations[id]
		if !ok {
			return nil, errUncited
		}
		cited = append(cited, c)
	}
	return cited, nil
}

// checkCitations checks citations of the text.
func (t *Text) checkCitations(cited []Citation) error {
	slices.SortFunc(cited, func(a, b Citation) int { return cmp.Compare(a.ByteStart, b.ByteStart) })
	r := NewReader(*t)
	for _, c := range cited {
		if err := r.Check(c); err != nil {
			return err
		}
	}
	return nil
}

// CheckDirect checks the output of a direct unit, of some index, as CheckMap does
// that of a map unit, against all the documents that it read; and that its records
// are its own and name no other documents.
func CheckDirect(unit string, index int64, docs []payload.Document, evidence EvidenceFinder, o *Output) error {
	if len(o.Dropped)+len(o.Removed)+len(o.Open) > 0 {
		return breachError("a direct unit reports what only a reduce can")
	}
	cited, err := o.listCitations()
	if err != nil {
		return err
	}
	if err := checkCited(unit, BundleTexts(unit, docs, evidence), cited); err != nil {
		return err
	}
	read, length := o.evidenceOf(unit), int64(0)
	if read == nil {
		read = make(map[string]bool, len(docs))
	}
	for _, d := range docs {
		read[d.Document] = true
		length += int64(len(d.Text))
	}
	if err := o.checkDates(unit, length); err != nil {
		return err
	}
	return ownRecords(unit, index, func(document string) bool { return read[document] }, o)
}

// ownRecords checks that the records of a unit that reads documents are numbered as
// its own, each once, and are of documents that it read.
func ownRecords(unit string, index int64, read func(document string) bool, o *Output) error {
	seen := make(map[Member]bool, len(o.Entries))
	for i := range o.Entries {
		e := &o.Entries[i]
		for _, m := range e.Members {
			if m.Unit != index || m.Record < 0 || seen[m] {
				return breachError("%s has record %d of unit %d, which is not its own or there twice", unit, m.Record, m.Unit)
			}
			seen[m] = true
		}
		for _, s := range e.Sources {
			if !read(s.Document) {
				return breachError("%s names the source %s, which it did not read", unit, s.Document)
			}
		}
	}
	return nil
}

// CitesOutside reports whether the output of a map unit cites what the unit did
// not read.
func (o *Output) CitesOutside() bool {
	for id := range o.usedCitations() {
		if o.Citations[id].Outside {
			return true
		}
	}
	return false
}

// citationStart returns the character of the document at which a citation has to begin,
// once its quote was found to be the text.
func (r *Reader) citationStart(c *Citation) (int64, error) {
	t := &r.text
	from, to := c.ByteStart-t.ByteOffset, c.ByteEnd-t.ByteOffset
	read := from >= 0 && to > from && to <= int64(len(t.Content))
	switch {
	case c.Outside && read:
		return 0, breachError("%s cites bytes %d to %d, which it read, as if it had not", t.Unit, c.ByteStart, c.ByteEnd)
	case c.Outside:
		return t.startOutside(c)
	case !read:
		return 0, breachError("%s cites bytes %d to %d, which it did not read", t.Unit, c.ByteStart, c.ByteEnd)
	case string(t.Content[from:to]) != c.Quote:
		return 0, t.otherText(c)
	}
	if from >= r.at {
		r.point += int64(utf8.RuneCount(t.Content[r.at:from]))
	} else {
		r.point -= int64(utf8.RuneCount(t.Content[from:r.at]))
	}
	r.at = from
	return r.point, nil
}

// startOutside is start for what only the document has.
func (t *Text) startOutside(c *Citation) (int64, error) {
	if t.Whole == nil {
		return 0, breachError("%s cites bytes %d to %d outside of its chunk, and the document is not there to look", t.Unit, c.ByteStart, c.ByteEnd)
	}
	whole := t.Whole.String()
	if c.ByteStart < 0 || c.ByteEnd <= c.ByteStart || c.ByteEnd > int64(len(whole)) || whole[c.ByteStart:c.ByteEnd] != c.Quote {
		return 0, t.otherText(c)
	}
	return int64(t.Whole.Point(int(c.ByteStart))), nil
}

func (t *Text) otherText(c *Citation) error {
	return breachError("%s: quote %.80q is not the text of bytes %d to %d", t.Unit, c.Quote, c.ByteStart, c.ByteEnd)
}

// checkCitation checks what a citation says beside its quote and its place in bytes.
func (t *Text) checkCitation(c *Citation, start int64) error {
	switch end := start + int64(utf8.RuneCountInString(c.Quote)); {
	case c.Document != t.Document || c.Unit != t.Unit:
		return breachError("%s cites %s as found by %s", t.Unit, c.Document, c.Unit)
	case c.ID != refs.New(t.Hash, int(c.ByteStart), int(c.ByteEnd), c.Quote):
		return breachError("%s: the id of quote %.80q is of another citation", t.Unit, c.Quote)
	case c.Label != "" && c.Label != labelOf(t.Document, t.Metadata):
		return breachError("%s describes %s as %.80q, which is %.80q", t.Unit, t.Document, c.Label, labelOf(t.Document, t.Metadata))
	case gradeRank(c.Grade) == 0:
		return breachError("%s: quote %.80q has the grade %.20q", t.Unit, c.Quote, c.Grade)
	case c.Others < 0 || !isShare(c.Coverage) || !isShare(c.Density):
		return breachError("%s: quote %.80q stands at %d other places, with a coverage of %v and a density of %v", t.Unit, c.Quote, c.Others, c.Coverage, c.Density)
	case (ground.Grade(c.Grade) == ground.Fuzzy) != (c.Coverage > 0 && c.Density > 0):
		return breachError("%s: quote %.80q, of the grade %s, has a coverage of %v and a density of %v", t.Unit, c.Quote, c.Grade, c.Coverage, c.Density)
	case c.Start != start || c.End != end:
		return breachError("%s: quote %.80q stands at characters %d to %d, not %d to %d", t.Unit, c.Quote, start, end, c.Start, c.End)
	}
	return nil
}

// isShare reports whether x is in [0,1], which what is no number is not.
func isShare(x float64) bool { return x >= 0 && x <= 1 }

// gradeRank orders grades, the best highest; 0 is none.
func gradeRank(grade string) int {
	switch ground.Grade(grade) {
	case ground.Exact:
		return 3
	case ground.Normalised:
		return 2
	case ground.Fuzzy:
		return 1
	default:
		return 0
	}
}

// CheckReduce checks the output of a reduce against all that it was given: that
// each citation is one of theirs, unchanged, and stands for the field and the
// entity that it stood for; that each one that is gone is listed with a reason;
// that records and their sources are neither made up nor lost; and that what
// reduces below have reported is reported still.
func CheckReduce(inputs []*Output, o *Output) error {
	if err := o.checkDates("a reduce", 0); err != nil {
		return err
	}
	c := &reduceCheck{
		given: make(map[merge.Citation][]Citation), entryOf: make(map[Member]*Entry), dropped: make(map[drop]bool),
		named: make(map[Member]bool),
	}
	for _, in := range inputs {
		c.addInput(in)
	}
	for _, check := range []func(*Output) error{c.checkCitations, c.checkReports, c.checkEntries, c.checkNames} {
		if err := check(o); err != nil {
			return err
		}
	}
	if err := c.findUnnamed(inputs); err != nil {
		return err
	}
	return c.findLost()
}

type reduceCheck struct {
	given   map[merge.Citation][]Citation
	inputs  []*Entry          // entries of the inputs
	entryOf map[Member]*Entry // of the inputs
	dropped map[drop]bool     // by the reduces below, then by this one too
	removed []Removed         // by the reduces below
	named   map[Member]bool   // by the inputs, without what it says
	decided []Decided         // the same
	seen    map[Member]bool   // in the output
	passed  map[Member]string // named by the output: its entity
}

// A drop is a citation of a field.
type drop struct {
	field    string
	citation merge.Citation
}

func (c *reduceCheck) addInput(in *Output) {
	for id, cite := range in.Citations {
		c.given[id] = append(c.given[id], cite)
	}
	for i := range in.Entries {
		e := &in.Entries[i]
		c.inputs = append(c.inputs, e)
		for _, m := range e.Members {
			c.entryOf[m] = e
		}
	}
	for _, op := range in.Open {
		c.named[op.Member] = true
	}
	for _, d := range in.Dropped {
		c.dropped[drop{d.Field, d.Citation}] = true
	}
	c.removed = append(c.removed, in.Removed...)
	c.decided = append(c.decided, in.Decided...)
}

// checkCitations checks that each is as it was given.
func (c *reduceCheck) checkCitations(o *Output) error { return c.checkGiven(o, o.usedCitations()) }

// checkGiven checks that some citations are as they were given.
func (c *reduceCheck) checkGiven(o *Output, some map[merge.Citation]bool) error {
	for id := range some {
		cite, ok := o.Citations[id]
		switch {
		case !ok || cite.Key() != id:
			return errUncited
		case len(c.given[id]) == 0:
			return breachError("a reduce cites %.80q of %s, which it was not given", cite.Quote, cite.Document)
		case !slices.Contains(c.given[id], cite):
			return breachError("a reduce changed the citation of %.80q of %s", c.given[id][0].Quote, c.given[id][0].Document)
		}
	}
	return nil
}

// checkReports checks that what was reported is reported still, with reasons.
func (c *reduceCheck) checkReports(o *Output) error {
	now := make(map[drop]bool, len(o.Dropped))
	for _, d := range o.Dropped {
		if strings.TrimSpace(d.Reason) == "" {
			return breachError("%s: a citation was dropped without a reason", d.Field)
		}
		now[drop{d.Field, d.Citation}] = true
	}
	for d := range c.dropped {
		if !now[d] {
			return breachError("%s: a citation that was dropped below is not listed any more", d.field)
		}
	}
	c.dropped = now
	still := make(map[Removed]bool, len(o.Removed))
	for _, r := range o.Removed {
		still[r] = true
	}
	for _, r := range c.removed {
		if !still[r] {
			return breachError("%s: %.80q, which was removed below, is not listed any more", r.Field, r.Name)
		}
	}
	return c.checkDecisions(o)
}

// checkDecisions checks that what was decided below is listed still, and that what was
// decided here is between several values, each cited, with a reason.
func (c *reduceCheck) checkDecisions(o *Output) error {
	below := make(map[string]int)
	for i := range c.decided {
		below[c.decided[i].identityKey()]++
	}
	for i := range o.Decided {
		d := &o.Decided[i]
		if below[d.identityKey()]--; below[d.identityKey()] >= 0 {
			continue
		}
		if strings.TrimSpace(d.Rationale) == "" || len(d.Candidates) < 2 {
			return breachError("%s: a conflict was decided without a reason, or between fewer than two values", d.Field)
		}
		for _, one := range d.Candidates {
			if len(one.Citations) == 0 {
				return breachError("%s: a value was compared that cites nothing", d.Field)
			}
		}
	}
	for _, d := range c.decided {
		if below[d.identityKey()] > 0 {
			return breachError("%s: a conflict that was decided below is not listed any more", d.Field)
		}
	}
	return nil
}

// checkEntries checks that each is made of whole entries that were given.
func (c *reduceCheck) checkEntries(o *Output) error {
	c.seen = make(map[Member]bool)
	for i := range o.Entries {
		e := &o.Entries[i]
		var from []*Entry
		for _, m := range e.Members {
			in := c.entryOf[m]
			if in == nil || c.seen[m] {
				return breachError("a reduce has record %d of unit %d twice, or was not given it", m.Record, m.Unit)
			}
			c.seen[m] = true
			if !slices.Contains(from[max(0, len(from)-1):], in) {
				from = append(from, in)
			}
		}
		if err := c.checkEntry(e, from); err != nil {
			return err
		}
	}
	return nil
}

// checkEntry checks one entry against those that it was made of.
func (c *reduceCheck) checkEntry(e *Entry, from []*Entry) error {
	had, sources := make(map[drop]bool), make(map[string]bool)
	for _, in := range from {
		for _, s := range in.Sources {
			sources[s.Document] = true
		}
		for field, m := range mentionsOf(in) {
			for _, id := range m.Citations {
				had[drop{field, id}] = true
			}
		}
	}
	for _, s := range e.Sources {
		if !sources[s.Document] {
			return breachError("a reduce names the source %s, which is none", s.Document)
		}
		delete(sources, s.Document)
	}
	for document := range sources {
		return breachError("a reduce lost the source %s", document)
	}
	has := make(map[drop]bool)
	for field, m := range mentionsOf(e) {
		for _, id := range m.Citations {
			if !had[drop{field, id}] {
				return breachError("%s cites what is about another field or record", field)
			}
			has[drop{field, id}] = true
		}
	}
	for d := range had {
		if !has[d] && !c.dropped[d] {
			return breachError("%s: a citation is neither passed on nor listed as dropped", d.field)
		}
	}
	return nil
}

// checkNames checks that each record that is named was given, and is not held too.
func (c *reduceCheck) checkNames(o *Output) error {
	c.passed = make(map[Member]string, len(o.Open))
	for _, op := range o.Open {
		_, twice := c.passed[op.Member]
		if twice || c.seen[op.Member] || !c.named[op.Member] && c.entryOf[op.Member] == nil {
			return breachError("a reduce names record %d of unit %d twice, or was not given it", op.Record, op.Unit)
		}
		c.passed[op.Member] = op.Entity
	}
	return nil
}

// findUnnamed looks for records that a reduce below had no room to merge, and that
// are gone.
func (c *reduceCheck) findUnnamed(inputs []*Output) error {
	late := deferredEntities(inputs)
	for _, in := range inputs {
		for _, op := range in.Open {
			if _, ok := c.passed[op.Member]; late[op.Entity] && !ok && !c.seen[op.Member] {
				return breachError("a reduce lost record %d of unit %d, which has yet to be merged", op.Record, op.Unit)
			}
		}
	}
	return nil
}

// findLost looks for entries of the inputs that are in the output in part, or that
// only a reduce held and that are gone. A single record stands in the output of
// its map unit, and so do those of an entity that the output names all of.
func (c *reduceCheck) findLost() error {
	for _, e := range c.inputs {
		held, named := 0, 0
		for _, m := range e.Members {
			if c.seen[m] {
				held++
			}
			if entity, ok := c.passed[m]; ok && entity == c.passed[e.Members[0]] {
				named++
			}
		}
		if n := max(held, named); n < len(e.Members) && (n > 0 || len(e.Members) > 1) {
			return breachError("a reduce lost %d of the %d records of one entity", len(e.Members)-n, len(e.Members))
		}
	}
	return nil
}
