package review

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/orchestrator/outputs"
)

// cite finds a marked passage in the text of its document, and returns it as a citation. Nothing of it
// is believed but where it is.
func (r *Reviewer) cite(ctx context.Context, by mapreduce.Principal, d *mapreduce.NewDecision, found *foundRecord) (*mapreduce.Citation, error) {
	p := d.Passage
	size := p.ByteEnd - p.ByteStart
	switch {
	case !slices.Contains(found.sources(), p.Document):
		return nil, errs.Field("passage.document_id", "the record is of no document %q", p.Document)
	case p.ByteStart < 0 || size < 1:
		return nil, errs.Field("passage", "must be the bytes from start_byte to before end_byte, at least one")
	case size > mapreduce.MaxReviewPassage:
		return nil, errs.Field("passage", "has %d bytes; at most %d are marked", size, mapreduce.MaxReviewPassage)
	}

	unit, err := r.unitOf(ctx, d, found)
	if err != nil {
		return nil, err
	}
	cut := passageCutter{from: p.ByteStart, to: p.ByteEnd}
	err = r.sources.Text(ctx, by, d.Job, unit, p.Document, cut.take)
	switch {
	case errs.KindOf(err) == errs.NotFound && err != nil && !errors.Is(err, errFound):
		return nil, errs.Field("passage.unit_id", "unit %q did not read document %q: name one that did", unit, p.Document)
	case err != nil && !errors.Is(err, errFound):
		return nil, err
	}
	return r.citation(ctx, d, found, unit, &cut)
}

// unitOf returns a unit that read the document of a passage, as far as the caller or the record tell.
func (r *Reviewer) unitOf(ctx context.Context, d *mapreduce.NewDecision, found *foundRecord) (mapreduce.UnitID, error) {
	if d.Passage.Unit != "" {
		return d.Passage.Unit, nil
	}
	if c := found.of(d.Passage.Document); c != nil {
		return c.Unit, nil
	}

	// A record without a value has no citation. Its id names the unit that made it.
	index, _, _ := d.Record.Parse()
	units, err := r.jobs.View.UnitsFrom(ctx, d.Job, 0, index, 1)
	if err != nil {
		return "", err
	}
	if len(units) == 0 || units[0].Index != index {
		return "", errs.Field("passage.unit_id", "is missing: name a unit that read document %q", d.Passage.Document)
	}
	return units[0].ID, nil
}

// citation returns what was cut out of a text as a citation.
func (r *Reviewer) citation(ctx context.Context, d *mapreduce.NewDecision, found *foundRecord, unit mapreduce.UnitID, cut *passageCutter) (*mapreduce.Citation, error) {
	p, quote := d.Passage, string(cut.quote)
	switch {
	case int64(len(quote)) != p.ByteEnd-p.ByteStart:
		return nil, errs.Field("passage", "the text of %q has %d bytes, and the passage ends at %d", p.Document, cut.at, p.ByteEnd)
	case !utf8.ValidString(quote):
		return nil, errs.Field("passage", "begins or ends within a character")
	case len(bytes.TrimSpace(cut.quote)) == 0:
		return nil, errs.Field("passage", "has nothing but white space")
	}

	location, err := outputs.NewLocator(r.jobs.Reader(), d.Job).Locate(ctx, string(p.Document), p.ByteStart, p.ByteEnd)
	if err != nil {
		return nil, err
	}
	start := cut.points
	c := &mapreduce.Citation{
		Ref: refOf(p, quote), Document: p.Document, Unit: unit,
		Start: start, End: start + int64(utf8.RuneCountInString(quote)), ByteStart: p.ByteStart, ByteEnd: p.ByteEnd,
		Quote: quote, Grade: "exact", Before: lastPoints(cut.before), After: firstPoints(cut.after), Location: location,
	}

	// What is said of the document is said of it here as well.
	if like := found.of(p.Document); like != nil {
		c.Via, c.Label, c.URI = like.Via, like.Label, like.URI
	}
	return c, nil
}

// refDigits is how many digits the reference of a passage has. The job spells its own as short as they
// can be told apart among themselves, so this one has to be longer than any of them.
const refDigits = 32

// refOf returns the reference of a marked passage. It follows from the passage.
func refOf(p *mapreduce.Passage, quote string) string {
	id := refs.New(refs.DocumentHash(sha256.Sum256([]byte(p.Document))), int(p.ByteStart), int(p.ByteEnd), quote)
	return refs.Mark + id.String()[:refDigits]
}

// A passageCutter cuts a passage out of a text that comes in parts, with what stands around it.
type passageCutter struct {
	from, to int64 // bytes

	at                   int64 // bytes that have come
	points               int64 // code points before the passage
	before, quote, after []byte
}

const (
	contextPoints = 60 // code points on either side
	contextBytes  = contextPoints * utf8.UTFMax
)

// take takes the next part of the text. It returns errFound when it needs no more.
func (c *passageCutter) take(part []byte) error {
	start := c.at
	c.at += int64(len(part))
	within := func(from, to int64) []byte {
		from, to = max(from, start)-start, min(to, c.at)-start
		if from >= to {
			return nil
		}
		return part[from:to]
	}

	// Of a character only the first byte is counted.
	before := within(0, c.from)
	for _, b := range before {
		if utf8.RuneStart(b) {
			c.points++
		}
	}

	c.before = append(c.before, before...)
	c.before = append(c.before[:0], c.before[max(0, len(c.before)-contextBytes):]...)
	c.quote = append(c.quote, within(c.from, c.to)...)
	c.after = append(c.after, within(c.to, c.to+contextBytes)...)
	if c.at >= c.to+contextBytes {
		return errFound
	}
	return nil
}

// lastPoints returns the last code points of a text that may begin within one.
func lastPoints(b []byte) string {
	at := len(b)
	for range contextPoints {
		r, n := utf8.DecodeLastRune(b[:at])
		if r == utf8.RuneError && n < 2 {
			break
		}
		at -= n
	}
	return string(b[at:])
}

// firstPoints returns the first code points of a text that may end within one.
func firstPoints(b []byte) string {
	at := 0
	for range contextPoints {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n < 2 {
			break
		}
		at += n
	}
	return string(b[:at])
}
