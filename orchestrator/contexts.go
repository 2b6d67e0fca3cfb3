package orchestrator

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/worker/output"
)

// contexts reads the text around quotes. Those of map units that come next are
// read together; citations of a unit come together too, so of all others it keeps
// the text of the latest.
type contexts struct {
	r     *result
	ahead map[string]unitText // of some units, by name
	unit  string
	unitText
	direct map[string][]byte // texts of the documents of the direct unit
}

// A unitText is what a map unit read.
type unitText struct {
	source *storagev1.Source
	text   []byte // from source.Start on
}

// read reads the texts of units that come next, as far as that takes little.
func (c *contexts) read(ctx context.Context, page []*storagev1.Unit) error {
	c.ahead = make(map[string]unitText, len(page))
	for some := range slices.Chunk(page, jobs.MaxTexts) {
		spans := make([]jobs.TextRange, len(some))
		for i, u := range some {
			if s := u.Source; s != nil && c.r.has(u) {
				spans[i] = jobs.TextRange{SHA256: s.Sha256, Start: s.Start, End: s.End}
			}
		}
		texts, err := c.r.o.jobs.Texts(ctx, c.r.job.ID, spans)
		if err != nil {
			return err
		}
		for i, text := range texts {
			if text != nil {
				c.ahead[some[i].UnitId] = unitText{some[i].Source, text}
			}
		}
	}
	return nil
}

const contextPoints = 60 // code points on either side

func (c *contexts) around(ctx context.Context, cite *output.Citation) (before, after string, err error) {
	if cite.Unit == string(mapreduce.DirectUnit) {
		return c.aroundDirect(ctx, cite)
	}
	if err := c.turn(ctx, cite.Unit); err != nil || c.source == nil {
		return "", "", err
	}
	text, start := c.text, c.source.Start
	if cite.Outside {
		if text, start, err = c.outside(ctx, cite); err != nil {
			return "", "", err
		}
	}
	return c.cut(cite, text, start)
}

// aroundDirect is around for a citation of the direct unit, whose text is that of
// several documents.
func (c *contexts) aroundDirect(ctx context.Context, cite *output.Citation) (before, after string, err error) {
	if c.direct == nil {
		u, err := c.r.o.jobs.Unit(ctx, c.r.job.ID, mapreduce.DirectUnit)
		if err != nil {
			return "", "", err
		}
		docs, err := c.r.o.bundled(ctx, c.r.job.ID, u)
		if err != nil {
			return "", "", err
		}
		c.direct = make(map[string][]byte, len(docs))
		for _, d := range docs {
			c.direct[d.Document] = d.Text
		}
	}
	return c.cut(cite, c.direct[cite.Document], 0)
}

// cut returns what stands around a quote in a text that begins at a byte of the
// document.
func (c *contexts) cut(cite *output.Citation, text []byte, start int64) (before, after string, err error) {
	from, to := cite.ByteStart-start, cite.ByteEnd-start
	if from < 0 || to > int64(len(text)) || from > to || string(text[from:to]) != cite.Quote {
		return "", "", untrue(c.r.job.ID, cite)
	}
	return lastPoints(text[:from]), firstPoints(text[to:]), nil
}

// turn gets the text of a unit.
func (c *contexts) turn(ctx context.Context, unit string) error {
	if c.unit == unit && c.text != nil {
		return nil
	}
	c.unit, c.unitText = unit, c.ahead[unit]
	if c.text != nil {
		return nil
	}
	u, err := c.r.o.jobs.Unit(ctx, c.r.job.ID, mapreduce.UnitID(unit))
	if err != nil || u.GetSource() == nil {
		return err
	}
	c.source = u.Source
	c.text, err = c.r.o.jobs.Text(ctx, c.r.job.ID, c.source.Sha256, c.source.Start, c.source.End)
	return err
}

// outside reads what is about a quote that its unit did not read, as whole
// characters, and returns the byte of the document at which that begins.
func (c *contexts) outside(ctx context.Context, cite *output.Citation) ([]byte, int64, error) {
	const about = contextPoints * utf8.UTFMax
	if cite.ByteStart < 0 || cite.ByteEnd < cite.ByteStart || cite.ByteEnd > c.source.Length {
		return nil, 0, untrue(c.r.job.ID, cite)
	}
	from := max(0, cite.ByteStart-about)
	text, err := c.r.o.jobs.Text(ctx, c.r.job.ID, c.source.Sha256, from, min(c.source.Length, cite.ByteEnd+about))
	if err != nil {
		return nil, 0, err
	}
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text, from = text[1:], from+1
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				text = text[:len(text)-n]
			}
			break
		}
	}
	return text, from, nil
}

func lastPoints(b []byte) string {
	at := len(b)
	for range contextPoints {
		_, n := utf8.DecodeLastRune(b[:at])
		at -= n
	}
	return string(b[at:])
}

func firstPoints(b []byte) string {
	at := 0
	for range contextPoints {
		_, n := utf8.DecodeRune(b[at:])
		at += n
	}
	return string(b[:at])
}
