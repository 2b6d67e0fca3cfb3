// Package result makes the result of a job of what its units came to: records with
// their citations, what became of conflicts, and which documents are in it. Whatever
// it shows was checked against the texts once more.
//
// It imports the records of store/jobs, which it only reads, and of the workers' side
// pure packages.
package result

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/review"
)

// A Job is a job as its result is assembled.
type Job struct {
	ID      mapreduce.JobID
	Schema  *schema.Schema   // of the records that it makes of its documents; an empty one if it makes none
	Records []bool           // by level from 0 on that is planned: whether its units make records
	Last    mapreduce.UnitID // whose output the result is; "" if it is not planned yet

	// Room is how many bytes the result may have for whom it is assembled; 0 for any number.
	// Result returns ErrNoRoom as soon as it is sure that they do not suffice.
	Room int

	// Decisions are those that were taken while units waited for them, by the index of the unit. Nil if
	// there are none.
	Decisions map[int64][]*review.Decision

	Passages bool         // level 0 chooses passages, whose references are followed
	Values   []ValueLevel // like Records; of levels of records without meaning
	Report   *Report      // of a job that ends with a report; else nil
}

// ErrNoRoom is the error of a result that is larger than its room.
var ErrNoRoom = errors.New("the result has more bytes than there is room for")

// levels returns how many levels are planned.
func (j *Job) levels() int64 { return int64(len(j.Records)) }

// makesRecords reports whether the units of a level make records.
func (j *Job) makesRecords(level int64) bool {
	return level >= 0 && level < j.levels() && j.Records[level]
}

// Result assembles the result of a job, and calls sink with its parts in the order
// of mapreduce.ResultPart, but for the job. If the last unit is not complete, the
// result is of the units that are. It returns errs.DataLoss, which names the unit,
// if something that it would show is not so.
//
// It goes through the map units in order, twice: for the ids of all citations, which
// are spelled as short as they can be told apart; and for the records with their
// citations. So it holds the output of the last unit, a page of units, and some
// bytes a citation, however many records there are.
func Result(ctx context.Context, s jobs.Reader, job Job, sink func(*mapreduce.ResultPart) error) error {
	r, err := newResult(ctx, s, job, sink)
	if err != nil {
		return err
	}
	return r.streamResult(ctx)
}

// A result is one that is being assembled.
type result struct {
	*reading
	value     bool // it is last.Value, and not records
	sink      func(*mapreduce.ResultPart) error
	names     speller
	locations *outputs.Locator
	shown     map[mapreduce.DocumentID]bool // evidence that was told of
	places    map[string]string             // of the quotes of citations in their documents, by name, for a report

	reviewed   mapreduce.ReviewCount
	single     bool // of a value
	statistics *merge.Statistics
	duplicates map[string]int64
	broken     map[constraint]int64
	notes      []mapreduce.DocumentNote // of documents that were parsed
	moreNotes  int64
}

func newResult(ctx context.Context, s jobs.Reader, job Job, sink func(*mapreduce.ResultPart) error) (*result, error) {
	r := &result{
		reading: newReading(s, job), sink: sink, locations: outputs.NewLocator(s, job.ID),
		shown: make(map[mapreduce.DocumentID]bool), places: make(map[string]string),
		statistics: merge.NewStatistics(job.Schema), duplicates: make(map[string]int64), broken: make(map[constraint]int64),
	}

	final, err := r.finalUnit(ctx)
	if err != nil {
		return nil, err
	}

	if final == nil || final.State != mapreduce.UnitComplete {
		if !job.makesRecords(0) {
			r.value = true // nothing of which is there yet
			return r, nil
		}
		return r, r.mergePartial(ctx)
	}

	last, err := outputs.Of(ctx, s, job.ID, final)
	if err != nil {
		return nil, err
	}

	if !job.makesRecords(final.Level) {
		r.last, r.value = last, true
		return r, nil
	}

	r.reduceTo(last)
	r.dropped, err = r.units.FindDropped(ctx, job.levels())
	return r, err
}

func (r *result) streamResult(ctx context.Context) error {
	if r.value {
		return r.streamValue(ctx)
	}

	var err error
	r.names = speller{Spelling: refs.NewSpelling(r.citationIDs(ctx, &err))}
	if err == nil {
		err = r.trueMembers()
	}
	if err != nil {
		return err
	}

	// All outputs were checked when they were read for the ids.
	r.seen = nil
	if err := r.writeUnparsed(ctx); err != nil {
		return err
	}

	texts := &contexts{r: r.reading}
	err = r.visitEntities(ctx, texts.beginPage, func(e *output.Entry, in *output.Output) error {
		f := r.resolveEntity(e, in)
		if err := r.weighRecognition(ctx, &f); err != nil {
			return err
		}
		decided, err := r.decisionsOf(e, &f)
		if err != nil {
			return err
		}
		if err := r.writeEntity(&f.Result, mapreduce.NewRecordID(e.Members[0].Unit, e.Members[0].Record), decided); err != nil {
			return err
		}
		if err := r.writeCitations(ctx, texts, &f); err != nil {
			return err
		}
		if err := r.writeFound(decided); err != nil {
			return err
		}
		return r.writeDecision(&f.Result)
	}, r.writeUnitStatus)
	if err != nil {
		return err
	}

	return r.writeSummary(ctx)
}

// streamValue streams the value that the last unit came to: each element of a list
// as a record, or any other value as a single one. Behind it come its citations.
func (r *result) streamValue(ctx context.Context) error {
	ids := slices.Sorted(maps.Keys(r.last.Citations))

	var lost *flow
	if r.job.Passages {
		var err error
		if lost, err = r.followReferences(ctx); err != nil {
			return err
		}
	}

	r.names = speller{Spelling: refs.NewSpelling(func(yield func(refs.ID) bool) {
		for _, id := range ids {
			if !yield(refs.ID([]byte(id))) {
				return
			}
		}

		// Passages that were left out are shown as well.
		if lost == nil {
			return
		}
		for _, id := range lost.ids() {
			if !yield(id) {
				return
			}
		}
	})}

	if err := r.writeUnparsed(ctx); err != nil {
		return err
	}

	records, single, err := r.valueRecords()
	if err != nil {
		return err
	}
	for _, record := range records {
		if err := r.sink(&mapreduce.ResultPart{Record: record}); err != nil {
			return err
		}
	}

	texts := &contexts{r: r.reading}
	sources := make(map[string]refs.Source, len(ids))
	for _, id := range ids {
		c := r.last.Citations[id]
		if err := r.writeCitation(ctx, texts, c); err != nil {
			return err
		}
		sources[r.names.Spell(c.ID)] = texts.sourceOf(c.Document)
	}

	if err := r.units.VisitLevel(ctx, 0, r.writeUnitStatus); err != nil {
		return err
	}

	if lost != nil {
		if err := lost.writeLosses(ctx, texts); err != nil {
			return err
		}
	}

	if r.job.Report != nil && len(r.last.Value) > 0 {
		if err := r.writeReport(ctx, sources); err != nil {
			return err
		}
	}

	r.single = single
	return r.writeSummary(ctx)
}

// valueRecords returns the last unit's value as records, with references spelled as
// this result spells them, and whether it is a single one.
func (r *result) valueRecords() (records []json.RawMessage, single bool, err error) {
	if len(r.last.Value) == 0 {
		return nil, false, nil
	}
	value := output.Respelled(r.last.Value, r.names.Spell)
	if value[0] != '[' {
		return []json.RawMessage{value}, true, nil
	}
	return records, false, json.Unmarshal(value, &records)
}

// writeEntity takes an entity into the result, under the id of its first record.
func (r *result) writeEntity(f *merge.Result, id mapreduce.RecordID, decided map[string]*review.Decision) error {
	r.names.RespellEntity(f)
	r.statistics.Add(f.Values)
	for field, n := range f.Duplicates {
		r.duplicates[field] += n
	}
	r.countBroken(f)

	b, err := r.encodeRecord(f, decided)
	if err != nil {
		return err
	}
	return r.sink(&mapreduce.ResultPart{Record: b, RecordID: id})
}

// writeDecision tells how an entity's conflicts were resolved, and which citations
// values lost by it.
func (r *result) writeDecision(f *merge.Result) error {
	for _, c := range f.Conflicts {
		b, err := marshalJSON(r.names.ConflictView(c))
		if err == nil {
			err = r.sink(&mapreduce.ResultPart{Conflict: b})
		}
		if err != nil {
			return err
		}
	}

	for _, d := range f.Dropped {
		err := r.writeDroppedCitation(droppedCitation{Ref: r.names.Spell(refs.ID([]byte(d.Citation))), Field: d.Field, Key: f.Key, Reason: d.Reason})
		if err != nil {
			return err
		}
	}
	return nil
}

// encodeRecord is an entry of aggregated_data: its values as the schema nests and
// orders them, null where there is none, and what they rest on.
func (r *result) encodeRecord(f *merge.Result, decided map[string]*review.Decision) ([]byte, error) {
	values := r.schema.Nest(f.Values)
	citations, derived := output.CitedOf(r.schema, f, r.names.Spell)

	var b object
	for _, name := range r.schema.Names(values) {
		b.addField(name, values[name])
	}

	b.addField("_sources", f.Sources)
	b.addField("_citations", citations)
	if len(derived) > 0 {
		b.addField("_derived", derived)
	}
	b.addField("_confidence", f.Confidence)
	if len(f.Said) > 0 {
		b.addField("_said", f.Said)
	}
	b.addField("_missing", f.Missing)
	b.addField("_unverified", r.unverified(f))
	if all := seen(f); len(all) > 0 {
		b.addField("_seen", all)
	}
	if len(f.Lacking) > 0 {
		b.addField("_warnings", f.Warnings())
	}
	if len(decided) > 0 {
		b.addField("_reviewed", entriesOf(decided))
	}

	return b.closeObject()
}

// An object writes a JSON object whose members keep their order.
type object struct {
	b    bytes.Buffer
	json *json.Encoder // into b; nil before the first member
	err  error
}

func (o *object) addField(name string, value any) {
	if o.json == nil {
		o.json = plainEncoder(&o.b)
		o.b.WriteByte('{')
	} else {
		o.b.WriteByte(',')
	}

	o.encode(name)
	o.b.WriteByte(':')
	o.encode(value)
}

// encode writes a name or a value, without the line break behind it.
func (o *object) encode(v any) {
	before := o.b.Len()
	o.err = cmp.Or(o.err, o.json.Encode(v))
	if o.b.Len() > before {
		o.b.Truncate(o.b.Len() - 1)
	}
}

func (o *object) closeObject() ([]byte, error) {
	o.b.WriteByte('}')
	return o.b.Bytes(), o.err
}

// marshalJSON writes JSON as it stands, without the escapes that pages would need.
func marshalJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	err := plainEncoder(&b).Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func plainEncoder(b *bytes.Buffer) *json.Encoder {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return e
}

func (r *result) writeCitations(ctx context.Context, texts *contexts, f *found) error {
	var err error
	f.visitCitations(func(id merge.Citation) {
		if err == nil {
			err = r.writeCitation(ctx, texts, f.in.Citations[id])
		}
	})
	return err
}

// placeOf says where in its document a quote stands, as people look for it: by its page, slide or cell,
// or else by its characters.
func placeOf(c *mapreduce.Citation) string {
	if c.Location != nil {
		if place := c.Location.String(); place != "" {
			return place
		}
	}
	return fmt.Sprintf("characters %d to %d", c.Start, c.End)
}

func (r *result) writeCitation(ctx context.Context, texts *contexts, c output.Citation) error {
	before, after, err := texts.quoteContext(ctx, &c)
	if err != nil {
		return err
	}

	shown := &mapreduce.Citation{
		Ref: r.names.Spell(c.ID), Document: mapreduce.DocumentID(c.Document), Unit: mapreduce.UnitID(c.Unit),
		Start: c.Start, End: c.End, ByteStart: c.ByteStart, ByteEnd: c.ByteEnd,
		Quote: c.Quote, Grade: c.Grade, Before: before, After: after,
		Outside: c.Outside, Others: c.Others, Coverage: c.Coverage, Density: c.Density,
		Label: c.Label,
	}

	if e := texts.unitText.evidence; e != nil {
		// Evidence is shown with its address: it has no layout to look places up in.
		shown.URI = e.URI
	} else {
		shown.Via = texts.unit.Source.Metadata[mapreduce.MetadataVia]
		if shown.Location, err = r.locations.Locate(ctx, c.Document, c.ByteStart, c.ByteEnd); err != nil {
			return err
		}
	}

	if r.job.Report != nil {
		r.places[shown.Ref] = placeOf(shown)
	}

	if err := r.sink(&mapreduce.ResultPart{Citation: shown}); err != nil {
		return err
	}
	return r.writeEvidence(texts)
}

// writeUnparsed tells of the documents that could not be parsed, by their units. It
// collects the notes on the others.
func (r *result) writeUnparsed(ctx context.Context) error {
	return r.units.VisitLevel(ctx, -1, func(u *records.Unit) error {
		switch u.State {
		case mapreduce.UnitFailed:
			return r.writeUnitStatus(u)
		case mapreduce.UnitComplete:
			return r.addNotes(ctx, u)
		}
		return nil
	})
}

// addNotes adds the notes on the document that a unit parsed.
func (r *result) addNotes(ctx context.Context, u *records.Unit) error {
	notes, err := outputs.ParsedNotes(ctx, r.source, r.job.ID, u)
	if err != nil {
		return err
	}

	for _, note := range notes {
		if len(r.notes) == mapreduce.MaxDocumentNotes {
			r.moreNotes++
			continue
		}
		r.notes = append(r.notes, mapreduce.DocumentNote{Document: u.Document, Note: note})
	}
	return nil
}

// writeUnitStatus tells what became of a unit.
func (r *result) writeUnitStatus(u *records.Unit) error {
	src := &mapreduce.Source{Unit: u.ID}
	switch state := u.State; {
	case state == mapreduce.UnitFailed:
		src.Errors, src.Document, src.Lasting = u.Errors, u.Document, u.Lasting
	case state != mapreduce.UnitComplete || u.Level == 0 && !r.taken.ContainsNumber(u.Index):
		return nil
	case r.dropped.ContainsNumber(u.Index):
		src.Errors = []string{"a reduce over it failed"}
	}
	return r.sink(&mapreduce.ResultPart{Source: src})
}

func (r *result) writeSummary(ctx context.Context) error {
	if err := r.reducedCitations(ctx, &contexts{r: r.reading}); err != nil {
		return err
	}
	if err := r.removedReferences(); err != nil {
		return err
	}
	if err := r.writeDecisions(); err != nil {
		return err
	}

	s := &mapreduce.Summary{Reviewed: r.reviewedCount(), Single: r.single || !r.value && r.schema.Entities() == schema.Single, Broken: r.brokenConstraints(), Notes: r.notes, MoreNotes: r.moreNotes}
	for _, part := range []struct {
		to   *[]byte
		from any
	}{
		{&s.Deduplication, r.duplicates},
		{&s.Statistics, r.statistics.Fields()},
	} {
		b, err := marshalJSON(part.from)
		if err != nil {
			return err
		}
		*part.to = b
	}

	cascades, err := r.cascades(ctx)
	if err != nil {
		return err
	}
	s.Cascades = cascades

	for n := int64(0); ; {
		page, err := r.source.Skipped(ctx, r.job.ID, n, 1000)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			// It comes last: a result without it is not whole.
			return r.sink(&mapreduce.ResultPart{Summary: s})
		}
		for _, skipped := range page {
			s.Skipped = append(s.Skipped, skipped.SkippedDocument)
			n = skipped.N + 1
		}
	}
}
