// Package review orders the values of a result by what a person's minute at each is worth, and says
// what those who reviewed some of them found: how many of a random sample are right, and how well two
// people agree.
//
// It is pure but for Read, which asks the service. What a decision means, and whether it fits, the service
// knows.
package review

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
)

// Why a value is in the queue: what may be wrong with it.
const (
	Unverified = "unverified" // it was found and is no value of the record
	Conflict   = "conflict"   // others were found for the same record
	Fuzzy      = "fuzzy"      // its quote is not quite what was looked for
	Doubtful   = "doubtful"   // its confidence is low
	Missing    = "missing"    // the record has none, and others do
	Sample     = "sample"     // chance has chosen it
	All        = "all"        // its job has a person look at each value
)

// How likely a value is wrong that has no better estimate, and from when on it is worth a look.
const (
	wrongUnverified = 0.9
	wrongConflict   = 0.5
	wrongFuzzy      = 0.4
	wrongMissing    = 0.5 // if every other record has a value
	wrongUnknown    = 0.3 // no confidence is known
	worthwhile      = 0.2
)

// errEnough ends the reading of a result of which no more is needed.
var errEnough = errors.New("no more is needed")

// MaxItems bounds a queue.
const MaxItems = 5_000

// An Item is a value that somebody may decide about.
type Item struct {
	Record     mapreduce.RecordID   `json:"record"`
	Number     int                  `json:"number"` // of the record in the result, from 1
	Field      string               `json:"field"`
	Value      json.RawMessage      `json:"-"`     // that the job found; null if there is none
	Model      string               `json:"model"` // Value as it is written: numbers of scripts are not exact
	Texts      bool                 `json:"texts"` // the values of the field are texts
	Why        string               `json:"why"`
	Gain       float64              `json:"gain"` // how likely it is wrong, as far as that is known
	Sampled    bool                 `json:"sampled"`
	Confidence *float64             `json:"confidence,omitempty"`
	Document   mapreduce.DocumentID `json:"document"`
	Unit       mapreduce.UnitID     `json:"unit"`
	Start      int64                `json:"start"` // bytes of the passage that it rests on, half-open; both 0 if there is none
	End        int64                `json:"end"`
	Page       int                  `json:"page,omitempty"`    // on which the passage begins, from 1; 0 of a document without pages
	Boxes      []float64            `json:"boxes,omitempty"`   // of the passage on that page: left, top, right and bottom of each
	Quote      string               `json:"quote,omitempty"`   // what stands in the boxes; empty if there are none
	Verdict    string               `json:"verdict,omitempty"` // that counts; empty if there is none
	By         string               `json:"by,omitempty"`
	Right      string               `json:"right,omitempty"` // of a correction, as it is written

	// Waits says that its unit goes on once somebody has decided about it and the others like it.
	Waits bool `json:"waits,omitempty"`

	order uint64 // by chance
}

// A Choice says which values a queue has.
type Choice struct {
	Seed        uint64 // of the sample
	Sample      int    // values that chance chooses
	Part, Parts int    // records of this part, from 1, of so many; 0 has all: so two people do not meet
	Records     int    // the first so many records alone, of a result; 0 has all
}

// ParsePart reads a part of the records, such as 1/3; an empty text is all of them.
func ParsePart(text string) (part, parts int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	i, n, found := strings.Cut(text, "/")
	part, e1 := strconv.Atoi(i)
	parts, e2 := strconv.Atoi(n)
	if !found || e1 != nil || e2 != nil || part < 1 || part > parts || parts > 1000 {
		return 0, 0, errs.Field("part", "%q is no part such as 1/3", text)
	}
	return part, parts, nil
}

// part reports whether a record is of the chosen part.
func (c Choice) part(id mapreduce.RecordID) bool {
	if c.Parts < 2 {
		return true
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return int(h.Sum64()%uint64(c.Parts)) == c.Part-1
}

// chance returns a number of a value that follows from the seed and the value alone.
func (c Choice) chance(record mapreduce.RecordID, field string) uint64 {
	h := fnv.New64a()
	var seed [8]byte
	binary.BigEndian.PutUint64(seed[:], c.Seed)
	_, _ = h.Write(seed[:])
	_, _ = h.Write([]byte(string(record) + "\x00" + field))

	// The last bytes that FNV hashes hardly reach its first bits.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// A Builder makes a queue of a result whose parts come in order.
type Builder struct {
	schema    *schema.Schema
	choice    Choice
	decisions map[valueOf][]*mapreduce.Decision

	records   int
	last      *pending
	has       map[string]int // records with a value, by field
	conflicts map[valueOf]bool
	waits     map[valueOf]string // why values wait, of a unit that does; nil of a result
	items     []Item
	cut       bool // there are records beyond those of the choice

	// Of a large result most values are forgotten as they come, and counted.
	room      int            // items that are kept before some are forgotten
	forgotten int            // of all fields
	worthy    int            // of these, that were worth a look whatever else is in the result
	missing   map[string]int // of these, that are missing, by field
}

type valueOf struct {
	record mapreduce.RecordID
	field  string
}

// A pending is a record whose citations have not all come.
type pending struct {
	id    mapreduce.RecordID
	data  []byte
	cited map[string]*mapreduce.Citation
}

// NewBuilder returns what makes a queue of a result of records of a schema, about which some decisions
// were taken.
func NewBuilder(s *schema.Schema, decisions []*mapreduce.Decision, c Choice) *Builder {
	b := &Builder{
		schema: s, choice: c, decisions: make(map[valueOf][]*mapreduce.Decision), has: make(map[string]int), conflicts: make(map[valueOf]bool),
		room: leastRoom, missing: make(map[string]int),
	}
	for _, d := range decisions {
		at := valueOf{d.Record, d.Field}
		b.decisions[at] = append(b.decisions[at], d)
	}
	return b
}

// Take takes the next part of the result.
func (b *Builder) Take(p *mapreduce.ResultPart) error {
	switch {
	case p.Record != nil:
		if err := b.finish(); err != nil {
			return err
		}
		if b.choice.Records > 0 && b.records == b.choice.Records {
			b.cut = true
			return errEnough
		}
		b.records++
		if p.RecordID != "" {
			b.last = &pending{p.RecordID, bytes.Clone(p.Record), make(map[string]*mapreduce.Citation)}
		}

	case p.Citation != nil && b.last != nil:
		b.last.cited[p.Citation.Ref] = p.Citation

	case p.Conflict != nil && b.last != nil:
		var c struct {
			Field string `json:"field"`
		}
		if json.Unmarshal(p.Conflict, &c) == nil {
			b.conflicts[valueOf{b.last.id, c.Field}] = true
		}
	}
	return nil
}

// Read takes all values of a job that can be decided about: those of its result if it is complete, or else
// those that its units wait for.
func (b *Builder) Read(ctx context.Context, jobs mapreduce.Client, j *mapreduce.Job) error {
	if j.State == mapreduce.JobComplete {
		if err := jobs.GetResult(ctx, j.ID, false, b.Take); !errors.Is(err, errEnough) {
			return err
		}
		return nil
	}
	return mapreduce.EachWaiting(ctx, jobs, j.ID, b.TakeWaiting)
}

// TakeWaiting takes the values that a unit waits for.
func (b *Builder) TakeWaiting(u *mapreduce.WaitingUnit) error {
	b.waits = make(map[valueOf]string, len(u.Values))
	for _, v := range u.Values {
		b.waits[valueOf{v.Record, v.Field}] = v.Why
	}
	for _, p := range u.Parts {
		if err := b.Take(p); err != nil {
			return err
		}
	}
	return b.finish()
}

// marks are what a record says of its values.
type marks struct {
	Sources    []mapreduce.DocumentID     `json:"_sources"`
	Citations  map[string][]string        `json:"_citations"`
	Confidence map[string]float64         `json:"_confidence"`
	Unverified map[string]json.RawMessage `json:"_unverified"`
	Reviewed   map[string]struct {
		Model      json.RawMessage `json:"model"`
		Unverified bool            `json:"unverified"`
		Citations  []string        `json:"citations"`
		Confidence *float64        `json:"confidence"`
	} `json:"_reviewed"`
}

// finish takes the values of the last record.
func (b *Builder) finish() error {
	p := b.last
	b.last = nil
	if p == nil {
		return nil
	}

	var m marks
	if err := json.Unmarshal(p.data, &m); err != nil {
		return err
	}
	var all map[string]any
	d := json.NewDecoder(bytes.NewReader(p.data))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return err
	}
	values := b.schema.Flatten(all)

	for _, f := range b.schema.Fields() {
		item := Item{Record: p.id, Number: b.records, Field: f.Path, Texts: f.Property.Type == schema.String, order: b.choice.chance(p.id, f.Path)}
		b.fill(&item, p, &m, values[f.Path])
		if string(item.Value) != "null" {
			b.has[f.Path]++
		}
		if b.waits != nil {
			why, waits := b.waits[valueOf{p.id, f.Path}]
			if !waits {
				continue
			}
			item.Waits, item.Why, item.Gain = true, why, max(item.Gain, worthwhile)
		}
		if b.choice.part(p.id) {
			b.decided(&item)
			b.items = append(b.items, item)
		}
	}
	if b.waits == nil && len(b.items) > b.room {
		b.forget()
	}
	clear(b.conflicts) // they come with their record
	return nil
}

// fill says what the job found for a value, where, and how likely it is wrong.
func (b *Builder) fill(item *Item, p *pending, m *marks, value any) {
	item.Value, _ = json.Marshal(value) // it was decoded from JSON
	refs, unverified := m.Citations[item.Field], false
	if c, known := m.Confidence[item.Field]; known {
		item.Confidence = &c
	}
	if value == nil {
		if raw, held := m.Unverified[item.Field]; held {
			item.Value, refs, unverified = refused(raw)
		}
	}

	// Whatever was decided, the queue is about what the job found.
	if r, known := m.Reviewed[item.Field]; known {
		item.Value, unverified = r.Model, r.Unverified
		if r.Citations != nil {
			refs = r.Citations
		}
		if r.Confidence != nil {
			item.Confidence = r.Confidence
		}
	}

	var cite *mapreduce.Citation
	for _, ref := range refs {
		if c := p.cited[ref]; c != nil {
			cite = c
			break
		}
	}
	b.place(item, p, m, cite)
	b.doubt(item, unverified, cite)
}

// refused returns the value of an entry of _unverified, with its references.
func refused(raw json.RawMessage) (value json.RawMessage, refs []string, unverified bool) {
	var one struct {
		Value      json.RawMessage `json:"value"`
		Constraint string          `json:"constraint"`
		Citations  []string        `json:"citations"`
	}
	if json.Unmarshal(raw, &one) == nil && one.Constraint != "" && one.Value != nil {
		return one.Value, one.Citations, true
	}
	return raw, nil, true
}

// place says where the value stands, or where one should look for it.
func (b *Builder) place(item *Item, p *pending, m *marks, cite *mapreduce.Citation) {
	if cite != nil {
		item.Document, item.Unit, item.Start, item.End = cite.Document, cite.Unit, cite.ByteStart, cite.ByteEnd
		if item.Page, item.Boxes = cite.Location.FirstBoxes(); item.Page > 0 {
			item.Quote = cite.Quote
		}
		return
	}
	if len(m.Sources) == 0 {
		return
	}

	item.Document = m.Sources[0]
	item.Unit = mapreduce.MapUnit(item.Document)
	for _, c := range p.cited {
		if c.Document == item.Document {
			item.Unit = c.Unit
		}
	}
}

// doubt says how likely the value is wrong, and why.
func (b *Builder) doubt(item *Item, unverified bool, cite *mapreduce.Citation) {
	wrong := wrongUnknown
	if item.Confidence != nil {
		wrong = 1 - *item.Confidence
	}

	item.Why, item.Gain = Doubtful, wrong
	switch {
	case unverified:
		item.Why, item.Gain = Unverified, wrongUnverified
	case b.conflicts[valueOf{item.Record, item.Field}] && (wrong < wrongConflict || string(item.Value) == "null"):
		item.Why, item.Gain = Conflict, wrongConflict
	case string(item.Value) == "null":
		item.Why, item.Gain = Missing, 0 // how many others have one is known at the end
	case cite != nil && cite.Grade == "fuzzy" && wrong < wrongFuzzy:
		item.Why, item.Gain = Fuzzy, wrongFuzzy
	}
}

// decided says what was decided about the value.
func (b *Builder) decided(item *Item) {
	var last *mapreduce.Decision
	for _, d := range b.decisions[valueOf{item.Record, item.Field}] {
		if last == nil || d.Number > last.Number {
			last = d
		}
	}
	if last != nil && last.Verdict != mapreduce.ReviewWithdraw {
		item.Verdict, item.By, item.Right = last.Verdict.String(), last.By, string(last.Value)
	}
}

// A Queue is the values that are worth a look, those first that are most likely wrong, and behind them
// what chance has chosen.
type Queue struct {
	Items  []Item `json:"items"`
	More   int    `json:"more"`   // that were worth a look and are left out
	Values int    `json:"values"` // of the part, whether they are in the queue or not
	Cut    bool   `json:"cut"`    // there are records beyond those that were asked for

	Sample    Share     `json:"sample"`
	Agreement Agreement `json:"agreement"`
}

// Queue returns the queue, once all parts have come.
func (b *Builder) Queue() (*Queue, error) {
	if err := b.finish(); err != nil {
		return nil, err
	}
	for i := range b.items {
		item := &b.items[i]
		if item.Waits {
			continue
		}
		if item.Why == Missing {
			item.Gain = b.gainOfMissing(item.Field)
		}
	}

	q := &Queue{Values: len(b.items) + b.forgotten, Cut: b.cut, More: b.worthy, Agreement: agreementOf(b.decisions)}
	for field, n := range b.missing {
		if b.gainOfMissing(field) >= worthwhile {
			q.More += n
		}
	}
	byChance := slices.Clone(b.items)
	slices.SortFunc(byChance, func(x, y Item) int { return cmp.Compare(x.order, y.order) })
	sampled := make(map[valueOf]bool)
	for _, item := range byChance[:min(b.choice.Sample, len(byChance))] {
		sampled[valueOf{item.Record, item.Field}] = true
		q.Sample.add(&item)
	}
	q.Sample.bound()

	for _, item := range b.items {
		item.Model = string(item.Value)
		item.Sampled = sampled[valueOf{item.Record, item.Field}]
		switch {
		case item.Gain >= worthwhile:
			q.Items = append(q.Items, item)
		case item.Sampled || item.Verdict != "":
			if item.Sampled {
				item.Why = Sample
			}
			item.Gain = min(item.Gain, worthwhile/2)
			q.Items = append(q.Items, item)
		}
	}
	slices.SortStableFunc(q.Items, func(x, y Item) int {
		if x.Why == Sample && y.Why == Sample { // their order must not tell how sure the job was
			return cmp.Compare(x.order, y.order)
		}
		return cmp.Or(cmp.Compare(y.Gain, x.Gain), strings.Compare(x.Why, y.Why))
	})
	if n := len(q.Items) - MaxItems; n > 0 {
		q.Items, q.More = q.Items[:MaxItems], q.More+n
	}
	return q, nil
}
