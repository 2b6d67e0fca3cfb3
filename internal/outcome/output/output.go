// Package output is what a unit comes to, and its encoding: the records that a
// unit found, or what a reduce made of the outputs below it, or a value in JSON.
// A reduce holds what it merged; of the rest it holds at most the names, for the
// records themselves stand in the outputs of the map units.
//
// What a stage reads of another's output is JSON, see Read. A value that was written by
// somebody who has read outputs goes through NewValue, for its references, and through
// check.Value.
//
// What a reducer says goes through Decide, and what it made through check.Reduce: no
// citation is gained, none changed, and each that is lost is listed with a reason.
//
// It is pure and imports nothing of the project but api/mapreduce, api/schema, the stored
// messages and pure packages of the worker.
package output

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/text/refs"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

// An Output is what a unit came to.
type Output struct {
	Entries   []Entry
	Citations map[merge.Citation]Citation
	Open      []Open
	Dropped   []Dropped // by reduces, this one and those below it
	Removed   []Removed // the same
	Decided   []Decided // the same
	Reason    string    // why there are no records

	// Dates counts the dates that tell their order in the text that the unit read. It is 0
	// for units that read outputs.
	Dates calendar.OrderCount
	// Numbers counts what the numbers of that text tell of how they are written.
	Numbers format.NumberCount
	// Judged is what a model found of the claims of a report, beside what can be
	// computed.
	Judged []Judgement

	// Ascent says how the output came about in a cascade; nil of stages without one, and of
	// reduces.
	Ascent *Ascent

	// Value is what the unit came to if it does not make records: canonical JSON,
	// with references in full. Citations has all of them. There are no Entries
	// beside it.
	Value []byte
}

// An Ascent is how an output came about in a cascade.
type Ascent struct {
	Member string // whose output it is
	// Alike says by measure whether the answer of the member before was like that of the last
	// one. It is empty of a unit that was not drawn.
	Alike      []bool
	Tokens     int64 // that the last member took, if the output is its
	CostMicros int64 // likewise, in millionths of a US dollar
	// Found says that a person is asked instead of the last member: by measure, a hash of what was found. Whole says
	// that the one measure is of whole records.
	Found []uint64
	Whole bool
}

// A Judgement is what a model found of a claim and one of its references.
type Judgement struct {
	Claim    string // the sentence, with references in full
	Citation refs.ID
	Grade    string // one of claims.Grades
	Reason   string
}

// A Dropped is a citation that a reducer did not pass on.
type Dropped struct {
	Citation merge.Citation
	Field    string // path
	Reason   string
	Unit     string  // the reduce
	Record   *Member // the first of the entity; nil if that is not known
}

// A Removed is a part of a reducer's answer that was not taken: a reference that
// it made up or took from elsewhere, or a value that does not fit.
type Removed struct {
	Name   string // as the reducer wrote it
	Field  string // path
	Reason string
	Unit   string // the reduce
}

// An Entry is what is known of one entity.
type Entry struct {
	Members []Member // the records it stands for, in order of the input
	merge.Accumulator
	Chunks int // of its document, if it is a document's only record
}

// A Member is a record of a map unit.
type Member struct {
	Unit   int64 // index of the map unit
	Record int64 // which of its records
}

// Compare orders members as they stand in the input.
func (m Member) Compare(n Member) int {
	return merge.Order{Unit: m.Unit, Record: m.Record}.Compare(merge.Order{Unit: n.Unit, Record: n.Record})
}

// An Open is a record that may yet be merged with others of its entity. It
// stands in the output of its map unit.
type Open struct {
	Entity string
	Member
}

// A Citation is where a value rests.
type Citation struct {
	ID                 refs.ID
	Document, Unit     string
	Start, End         int64 // code points of the document's text, half-open
	ByteStart, ByteEnd int64
	Quote              string
	Grade              string

	Outside           bool    // of the chunk that the unit read, elsewhere in its document
	Others            int     // other places where the unit may have meant it, that are as good
	Coverage, Density float64 // of a fuzzy one, see ground.Span; else 0

	// Label describes the document of a passage in one line, see
	// bibliography.Source.Label. It is empty of other citations.
	Label string
}

// Key returns the name by which values refer to the citation.
func (c *Citation) Key() merge.Citation { return merge.Citation(c.ID[:]) }

// Cite adds a citation to the output and returns its key. Of several findings of
// one place the best is kept.
func (o *Output) Cite(c Citation) merge.Citation {
	if o.Citations == nil {
		o.Citations = make(map[merge.Citation]Citation)
	}

	if had, ok := o.Citations[c.Key()]; !ok || c.isBetter(&had) {
		o.Citations[c.Key()] = c
	}
	return c.Key()
}

// HashDocument identifies a document by its name and the SHA-256 of its text, so
// that equal texts under two names are cited apart.
func HashDocument(name string, text []byte) refs.DocumentHash {
	h := sha256.New()
	h.Write([]byte(strconv.Itoa(len(name)) + ":" + name))
	h.Write(text)
	return refs.DocumentHash(h.Sum(nil))
}

// Encode returns the output's stored form, the same for equal outputs.
func (o *Output) Encode() ([]byte, error) {
	e := &encoder{output: o, at: make(map[merge.Citation]uint32), m: &storagev1.Output{
		Reason: o.Reason, Value: o.Value, DayFirst: o.Dates.DayFirst, MonthFirst: o.Dates.MonthFirst,
		Numbers: encodeNumbers(o.Numbers),
	}}

	if a := o.Ascent; a != nil {
		e.m.Ascent = &storagev1.Ascent{Member: a.Member, Alike: a.Alike, Tokens: a.Tokens, CostMicros: a.CostMicros, Found: a.Found, Whole: a.Whole}
	}
	for _, j := range o.Judged {
		e.m.Judged = append(e.m.Judged, &storagev1.Judgement{Claim: j.Claim, Citation: j.Citation[:], Grade: j.Grade, Reason: j.Reason})
	}
	// Citations come first: what follows refers to them by their places.
	if err := e.encodeCitations(); err != nil {
		return nil, err
	}

	for i := range o.Entries {
		if err := e.encodeEntry(&o.Entries[i]); err != nil {
			return nil, err
		}
	}

	for _, op := range o.Open {
		e.m.Open = append(e.m.Open, &storagev1.Open{Entity: op.Entity, Unit: op.Unit, Record: op.Record})
	}

	for _, d := range o.Dropped {
		if _, ok := o.Citations[d.Citation]; !ok {
			return nil, ErrUncited
		}
		m := &storagev1.Dropped{Citation: e.at[d.Citation], Field: d.Field, Reason: d.Reason, Unit: d.Unit}
		if d.Record != nil {
			m.Record = &storagev1.Member{Unit: d.Record.Unit, Record: d.Record.Record}
		}
		e.m.Dropped = append(e.m.Dropped, m)
	}

	for _, r := range o.Removed {
		e.m.Removed = append(e.m.Removed, &storagev1.Removed{Name: r.Name, Field: r.Field, Reason: r.Reason, Unit: r.Unit})
	}
	for i := range o.Decided {
		if err := e.encodeDecided(&o.Decided[i]); err != nil {
			return nil, err
		}
	}

	return proto.MarshalOptions{Deterministic: true}.Marshal(e.m)
}

type encoder struct {
	output *Output
	at     map[merge.Citation]uint32 // indexes in m.Citations
	m      *storagev1.Output
}

// encodeCitations stores the citations that entries and the value refer to, and those
// that were dropped, by id.
func (e *encoder) encodeCitations() error {
	for _, id := range slices.Sorted(maps.Keys(e.output.UsedCitations())) {
		c, ok := e.output.Citations[id]
		if !ok {
			return ErrUncited
		}
		e.at[id] = uint32(len(e.m.Citations))
		e.m.Citations = append(e.m.Citations, &storagev1.Citation{
			Id: c.ID[:], Document: c.Document, Unit: c.Unit, Start: c.Start, End: c.End,
			ByteStart: c.ByteStart, ByteEnd: c.ByteEnd, Quote: c.Quote, Grade: c.Grade,
			Outside: c.Outside, Others: int64(c.Others), Coverage: c.Coverage, Density: c.Density, Label: c.Label,
		})
	}
	return nil
}

// CitesOutside reports whether the output of a map unit cites what the unit did
// not read.
func (o *Output) CitesOutside() bool {
	if len(o.Citations) == 0 {
		return false
	}
	for id := range o.UsedCitations() {
		if o.Citations[id].Outside {
			return true
		}
	}
	return false
}

// UsedCitations returns the citations that the output refers to.
func (o *Output) UsedCitations() map[merge.Citation]bool {
	used := make(map[merge.Citation]bool)
	for i := range o.Entries {
		for _, m := range o.Entries[i].Mentions() {
			for _, id := range m.Citations {
				used[id] = true
			}
		}
	}

	// What was dropped or compared stays among the citations, so that people can look at
	// it.
	for _, d := range o.Dropped {
		used[d.Citation] = true
	}

	for i := range o.Decided {
		for _, c := range o.Decided[i].Candidates {
			for _, id := range c.Citations {
				used[id] = true
			}
		}
	}

	citesOf(o.Value, func(id merge.Citation) { used[id] = true })
	return used
}

// Mentions visits the mentions of an entry with their fields.
func (e *Entry) Mentions() iter.Seq2[string, *merge.Mention] {
	return func(yield func(string, *merge.Mention) bool) {
		for i := range e.Fields {
			f := &e.Fields[i]
			for j := range f.Candidates {
				for k := range f.Candidates[j].Mentions {
					if !yield(f.Path, &f.Candidates[j].Mentions[k]) {
						return
					}
				}
			}
		}
	}
}

// ErrUncited is the error of an output that refers to a citation which it does not have.
var ErrUncited = errors.New("output: a value refers to a citation that the output lacks")

func (e *encoder) encodeEntry(entry *Entry) error {
	m := &storagev1.Entry{Entity: entry.Entity, Chunks: int64(entry.Chunks)}
	for _, b := range entry.Members {
		m.Members = append(m.Members, &storagev1.Member{Unit: b.Unit, Record: b.Record})
	}
	for _, s := range entry.Sources {
		m.Sources = append(m.Sources, &storagev1.SourceOf{Document: s.Document, Unit: s.First.Unit, Record: s.First.Record})
	}

	for _, f := range entry.Fields {
		field := &storagev1.Field{Path: f.Path}
		// A field may be missing in one record of the entity, and have values in others.
		if f.Missing != nil {
			field.Missing, field.MissingAt = f.Missing.Reason, toPosition(f.Missing.Order)
		}
		for _, c := range f.Candidates {
			candidate, err := e.encodeCandidate(&c)
			if err != nil {
				return err
			}
			field.Candidates = append(field.Candidates, candidate)
		}
		m.Fields = append(m.Fields, field)
	}

	e.m.Entries = append(e.m.Entries, m)
	return nil
}

func (e *encoder) encodeCandidate(c *merge.Candidate) (*storagev1.Candidate, error) {
	value, err := json.Marshal(c.Value)
	if err != nil {
		return nil, fmt.Errorf("output: value: %w", err)
	}

	m := &storagev1.Candidate{Key: c.Key, Value: value}
	for _, mention := range c.Mentions {
		stored := &storagev1.Mention{Confidence: mention.Confidence, Said: mention.Said, First: toPosition(mention.First), Formula: mention.Formula, Reviewed: mention.Reviewed}
		if s := mention.Seen; s != nil {
			stored.Seen = &storagev1.Sighting{Document: s.Document, Page: int64(s.Page), Quote: s.Quote, Read: s.Read}
		}
		for _, id := range mention.Citations {
			if _, ok := e.output.Citations[id]; !ok {
				return nil, ErrUncited
			}
			stored.Citations = append(stored.Citations, e.at[id])
		}

		// Nearly all mentions have one reading, their own unit's, which is left out to save
		// room.
		if len(mention.Readings) != 1 || mention.Readings[0] != singleReading(mention.First) {
			for _, r := range mention.Readings {
				stored.Readings = append(stored.Readings, &storagev1.Reading{Unit: r.Unit, Found: r.Found, Of: r.Of})
			}
		}

		m.Mentions = append(m.Mentions, stored)
	}
	return m, nil
}

// singleReading is the reading that needs not be stored.
func singleReading(first merge.Order) merge.Reading {
	return merge.Reading{Unit: first.Unit, Found: 1, Of: 1}
}

func toPosition(o merge.Order) *storagev1.Position {
	return &storagev1.Position{Unit: o.Unit, Record: o.Record, Item: o.Item}
}

func toOrder(p *storagev1.Position) merge.Order {
	return merge.Order{Unit: p.GetUnit(), Record: p.GetRecord(), Item: p.GetItem()}
}

func encodeNumbers(c format.NumberCount) *storagev1.NumberCount {
	if c == (format.NumberCount{}) {
		return nil
	}
	return &storagev1.NumberCount{
		Points: c.Points, Commas: c.Commas, Blanks: c.Blanks, Marks: c.Marks,
		Minuses: c.Minuses, Trailing: c.Trailing, Brackets: c.Brackets,
	}
}

func decodeNumbers(m *storagev1.NumberCount) format.NumberCount {
	return format.NumberCount{
		Points: m.GetPoints(), Commas: m.GetCommas(), Blanks: m.GetBlanks(), Marks: m.GetMarks(),
		Minuses: m.GetMinuses(), Trailing: m.GetTrailing(), Brackets: m.GetBrackets(),
	}
}

// Decode reads an output's stored form.
func Decode(data []byte) (*Output, error) {
	m := new(storagev1.Output)
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}

	dates := calendar.OrderCount{DayFirst: m.DayFirst, MonthFirst: m.MonthFirst}
	o := &Output{Reason: m.Reason, Value: m.Value, Dates: dates, Numbers: decodeNumbers(m.Numbers), Citations: make(map[merge.Citation]Citation, len(m.Citations))}

	for _, j := range m.Judged {
		if len(j.Citation) != len(refs.ID{}) {
			return nil, fmt.Errorf("output: the citation of a judgement has an id of %d bytes", len(j.Citation))
		}
		o.Judged = append(o.Judged, Judgement{Claim: j.Claim, Citation: refs.ID(j.Citation), Grade: j.Grade, Reason: j.Reason})
	}

	if a := m.Ascent; a != nil {
		o.Ascent = &Ascent{Member: a.Member, Alike: a.Alike, Tokens: a.Tokens, CostMicros: a.CostMicros, Found: a.Found, Whole: a.Whole}
	}

	// Everything after this names citations by their places in keys.
	keys := make([]merge.Citation, len(m.Citations))
	for i, c := range m.Citations {
		if len(c.Id) != len(refs.ID{}) {
			return nil, fmt.Errorf("output: a citation's id has %d bytes", len(c.Id))
		}
		keys[i] = o.Cite(Citation{
			ID: refs.ID(c.Id), Document: c.Document, Unit: c.Unit, Start: c.Start, End: c.End,
			ByteStart: c.ByteStart, ByteEnd: c.ByteEnd, Quote: c.Quote, Grade: c.Grade,
			Outside: c.Outside, Others: int(c.Others), Coverage: c.Coverage, Density: c.Density, Label: c.Label,
		})
	}

	for _, e := range m.Entries {
		entry, err := decodeEntry(e, keys)
		if err != nil {
			return nil, err
		}
		o.Entries = append(o.Entries, entry)
	}

	if err := o.decodeReports(m, keys); err != nil {
		return nil, err
	}
	for _, op := range m.Open {
		o.Open = append(o.Open, Open{Entity: op.Entity, Member: Member{Unit: op.Unit, Record: op.Record}})
	}

	return o, nil
}

func decodeEntry(m *storagev1.Entry, keys []merge.Citation) (Entry, error) {
	entry := Entry{Chunks: int(m.Chunks), Accumulator: merge.Accumulator{Entity: m.Entity}}

	if len(m.Members) == 0 {
		return entry, errNoMember // an entity is named by its first record
	}

	for _, b := range m.Members {
		entry.Members = append(entry.Members, Member{Unit: b.Unit, Record: b.Record})
	}
	for _, s := range m.Sources {
		entry.Sources = append(entry.Sources, merge.Source{Document: s.Document, First: merge.Order{Unit: s.Unit, Record: s.Record}})
	}

	for _, f := range m.Fields {
		field := merge.Field{Path: f.Path}
		if f.MissingAt != nil {
			field.Missing = &merge.Absence{Order: toOrder(f.MissingAt), Reason: f.Missing}
		}
		for _, c := range f.Candidates {
			candidate, err := decodeCandidate(c, keys)
			if err != nil {
				return entry, err
			}
			field.Candidates = append(field.Candidates, candidate)
		}

		entry.Fields = append(entry.Fields, field)
	}
	return entry, nil
}

func decodeCandidate(m *storagev1.Candidate, keys []merge.Citation) (merge.Candidate, error) {
	c := merge.Candidate{Key: m.Key}
	var err error
	if c.Value, err = decodeValue(m.Value); err != nil {
		return c, err
	}
	if len(m.Mentions) == 0 {
		return c, errUnsaid
	}

	for _, stored := range m.Mentions {
		mention := merge.Mention{Confidence: stored.Confidence, Said: stored.Said, First: toOrder(stored.First), Formula: stored.Formula, Reviewed: stored.Reviewed}
		if s := stored.Seen; s != nil {
			mention.Seen = &merge.Sighting{Document: s.Document, Page: int(s.Page), Quote: s.Quote, Read: s.Read}
		}

		for _, i := range stored.Citations {
			if int(i) >= len(keys) {
				return c, ErrUncited
			}
			mention.Citations = append(mention.Citations, keys[i])
		}

		// See encodeCandidate, which leaves the usual reading out.
		for _, r := range stored.Readings {
			mention.Readings = append(mention.Readings, merge.Reading{Unit: r.Unit, Found: r.Found, Of: r.Of})
		}
		if len(mention.Readings) == 0 {
			mention.Readings = []merge.Reading{singleReading(mention.First)}
		}

		c.Mentions = append(c.Mentions, mention)
	}
	return c, nil
}

// decodeValue reads a value in JSON. Numbers stay json.Number. Most values are short texts or
// numbers. A full decoder of JSON would spend most of an output's decoding time on them.
func decodeValue(data []byte) (value any, err error) {
	if text, ok := plainText(data); ok {
		return text, nil
	}
	if len(data) > 0 && (data[0] == '-' || '0' <= data[0] && data[0] <= '9') && json.Valid(data) {
		return json.Number(bytes.TrimRight(data, " \t\r\n")), nil
	}

	err = decodeJSON(data, &value)
	return value, err
}

// plainText returns a text in JSON that has no escapes.
func plainText(data []byte) (text string, ok bool) {
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return "", false
	}
	inner := data[1 : len(data)-1]
	for _, b := range inner {
		if b < ' ' || b == '"' || b == '\\' {
			return "", false
		}
	}
	return string(inner), utf8.Valid(inner)
}

var errNoMember = errors.New("output: an entry stands for no record")

var errUnsaid = errors.New("output: a value that nobody said")

// decodeReports reads what reduces dropped and removed.
func (o *Output) decodeReports(m *storagev1.Output, keys []merge.Citation) error {
	for _, d := range m.Dropped {
		if int(d.Citation) >= len(keys) {
			return ErrUncited
		}
		one := Dropped{Citation: keys[d.Citation], Field: d.Field, Reason: d.Reason, Unit: d.Unit}
		// The record is not always known.
		if d.Record != nil {
			one.Record = &Member{Unit: d.Record.Unit, Record: d.Record.Record}
		}
		o.Dropped = append(o.Dropped, one)
	}

	for _, r := range m.Removed {
		o.Removed = append(o.Removed, Removed{Name: r.Name, Field: r.Field, Reason: r.Reason, Unit: r.Unit})
	}

	for _, stored := range m.Decided {
		d, err := decodeDecided(stored, keys)
		if err != nil {
			return err
		}
		o.Decided = append(o.Decided, d)
	}
	return nil
}

// Cited visits the citations of an entry, one as often as it is cited.
func (e *Entry) Cited(visit func(merge.Citation)) {
	for _, m := range e.Mentions() {
		for _, id := range m.Citations {
			visit(id)
		}
	}
}
