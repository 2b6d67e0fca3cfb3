package result

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// contexts reads the text around quotes. When a map unit cites something, its text and
// those of the units that come next are read together; citations of a unit come together
// too, so of all others it keeps the text of the latest.
type contexts struct {
	r     *reading
	page  []*records.Unit     // that come next
	ahead map[string]unitText // of those that were read together, by name; empty where that takes much
	name  string
	unitText
	bundle mapreduce.UnitID    // the unit over several documents that was read last
	of     map[string]unitText // of its documents, by name
	// The document that was needed last, for what was cited outside of its chunks.
	document    *ground.Text
	documentSum []byte

	evidence evidenceTexts
}

// A unitText is what a map unit read, or a document that the direct unit did.
type unitText struct {
	unit   *records.Unit // nil if there is none
	text   []byte        // from the start of its source on
	reader *check.Reader
	whole  *check.Reader // for what is cited outside of it; nil before it is needed

	evidence *mapreduce.Evidence  // that the text is; nil if it is a document
	pictures []mapreduce.Evidence // of the same place, which the same unit has
}

// beginPage tells which units come next.
func (c *contexts) beginPage(page []*records.Unit) {
	c.page, c.ahead = page, make(map[string]unitText)
}

// readAhead reads the text of a unit of the page and those of the units behind it, as far
// as that takes little, once. Of units in front of it that cite nothing, none is read.
func (c *contexts) readAhead(ctx context.Context, name string) error {
	if _, asked := c.ahead[name]; asked {
		return nil
	}

	at := slices.IndexFunc(c.page, func(u *records.Unit) bool { return string(u.ID) == name })
	if at < 0 {
		return nil
	}

	some := c.page[at:min(at+content.MaxTexts, len(c.page))]
	spans := make([]content.TextRange, len(some))
	for i, u := range some {
		_, asked := c.ahead[string(u.ID)]
		if s := u.Source; s != nil && !asked && !outputs.IsBundle(u) && c.r.includesUnit(u) {
			spans[i] = content.TextRange{SHA256: s.SHA256, Start: s.Start, End: s.End}
		}
	}

	texts, err := c.r.source.Texts(ctx, c.r.job.ID, spans)
	if err != nil {
		return err
	}

	for i, text := range texts {
		name := string(some[i].ID)
		if text != nil {
			c.ahead[name] = unitText{unit: some[i], text: text}
		} else if _, asked := c.ahead[name]; !asked {
			// The empty text notes that it was asked for: it is read by itself if it is
			// needed.
			c.ahead[name] = unitText{}
		}
	}
	return nil
}

const contextPoints = 60 // code points on either side

// quoteContext returns what stands around a quote. Whatever the citation says is checked
// once more: nothing is shown that is not so.
func (c *contexts) quoteContext(ctx context.Context, cite *output.Citation) (before, after string, err error) {
	if err := c.loadUnitText(ctx, cite); err != nil {
		return "", "", err
	}
	if c.unit == nil {
		return "", "", untrueQuoteError(c.r.job.ID, cite, errNoUnit)
	}

	reader, text, start := c.reader, c.text, c.unit.Reads().Start
	if cite.Outside {
		if err := c.openDocument(ctx); err != nil {
			return "", "", err
		}
		reader = c.whole
	}

	if why := reader.Check(*cite); why != nil {
		return "", "", untrueQuoteError(c.r.job.ID, cite, why)
	}

	if cite.Outside {
		if text, start, err = c.readOutsideText(ctx, cite); err != nil {
			return "", "", err
		}
	}

	return c.cutContext(cite, text, start)
}

// errNoUnit is what a citation is refused with that no unit of the job found.
var errNoUnit = errors.New("no unit that reads documents has that name")

// openDocument makes the document of the unit ready, for what it cites outside of its text.
func (c *contexts) openDocument(ctx context.Context) error {
	if c.whole != nil {
		return nil
	}
	t := outputs.CitedText(c.unit, c.text)
	var err error
	if t.Whole, err = c.wholeText(ctx, c.unit.Source); err != nil {
		return err
	}
	c.whole = check.NewReader(t)
	return nil
}

// wholeText returns the text of the document that a unit is a chunk of, and keeps the
// latest; nil if that is too long to be handed to units, which then can cite no more
// than their chunks.
func (c *contexts) wholeText(ctx context.Context, src *records.Source) (*ground.Text, error) {
	if src.Length > protocol.MaxWholeText {
		return nil, nil
	}

	if c.document == nil || !bytes.Equal(c.documentSum, src.SHA256) {
		text, err := c.r.source.Text(ctx, c.r.job.ID, src.SHA256, 0, src.Length)
		if err != nil {
			return nil, err
		}
		c.document, c.documentSum = ground.New(string(text)), src.SHA256
	}
	return c.document, nil
}

// openBundle gets the texts of the documents of a unit that works on several.
func (c *contexts) openBundle(ctx context.Context, u *records.Unit) error {
	if c.bundle != u.ID {
		docs, err := outputs.Documents(ctx, c.r.source, c.r.job.ID, u)
		if err != nil {
			return err
		}

		c.bundle, c.of = u.ID, make(map[string]unitText, len(docs))
		for _, d := range docs {
			sum := sha256.Sum256(d.Text)
			one := &records.Unit{ID: u.ID, Index: u.Index, Document: mapreduce.DocumentID(d.Document), Source: &records.Source{SHA256: sum[:], Metadata: d.Metadata}}
			c.of[d.Document] = unitText{unit: one, text: d.Text, reader: check.NewReader(outputs.CitedText(one, d.Text))}
		}
	}
	return nil
}

// cutContext returns the text around a quote. text begins at byte start of the document.
func (c *contexts) cutContext(cite *output.Citation, text []byte, start int64) (before, after string, err error) {
	from, to := cite.ByteStart-start, cite.ByteEnd-start
	if from < 0 || to > int64(len(text)) || from > to || string(text[from:to]) != cite.Quote {
		return "", "", untrueQuoteError(c.r.job.ID, cite, errOtherText)
	}
	return lastPoints(text[:from]), firstPoints(text[to:]), nil
}

// errOtherText is the error for a citation whose quote is not the text at its place.
var errOtherText = errors.New("the text is another")

// loadUnitText gets the text of the unit that found a citation.
func (c *contexts) loadUnitText(ctx context.Context, cite *output.Citation) error {
	if mapreduce.DocumentID(cite.Document).IsEvidence() {
		return c.loadEvidence(ctx, cite)
	}
	if c.bundle == mapreduce.UnitID(cite.Unit) {
		c.name, c.unitText = "", c.of[cite.Document]
		return nil
	}

	// Citations of a unit come together, so its text may be there already.
	if c.name == cite.Unit && c.unit != nil && c.unitText.evidence == nil {
		return nil
	}

	if err := c.readAhead(ctx, cite.Unit); err != nil {
		return err
	}
	c.name, c.unitText = cite.Unit, c.ahead[cite.Unit]

	// A text that was not read ahead is read by itself.
	if c.unit == nil {
		u, err := c.r.source.Unit(ctx, c.r.job.ID, mapreduce.UnitID(cite.Unit))
		if err == nil && outputs.IsBundle(u) {
			err = c.openBundle(ctx, u)
			c.name, c.unitText = "", c.of[cite.Document]
			return err
		}
		if err != nil || u == nil || u.Source == nil || u.Kind != mapreduce.KindMap {
			return err
		}

		text, err := c.r.source.Text(ctx, c.r.job.ID, u.Source.SHA256, u.Source.Start, u.Source.End)
		if err != nil {
			return err
		}
		c.unit, c.text = u, text
	}

	c.reader = check.NewReader(outputs.CitedText(c.unit, c.text))
	return nil
}

// readOutsideText reads what is about a quote that its unit did not read, as whole
// characters, and returns the byte of the document at which that begins.
func (c *contexts) readOutsideText(ctx context.Context, cite *output.Citation) ([]byte, int64, error) {
	const about = contextPoints * utf8.UTFMax
	if cite.ByteStart < 0 || cite.ByteEnd < cite.ByteStart || cite.ByteEnd > c.unit.Source.Length {
		return nil, 0, untrueQuoteError(c.r.job.ID, cite, errOtherText)
	}

	from := max(0, cite.ByteStart-about)
	text, err := c.r.source.Text(ctx, c.r.job.ID, c.unit.Source.SHA256, from, min(c.unit.Source.Length, cite.ByteEnd+about))
	if err != nil {
		return nil, 0, err
	}

	// The text is cut to whole characters, at its beginning and at its end.
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
