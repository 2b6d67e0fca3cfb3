package outputs

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/text/layout"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Parsed returns the document that a unit parsed. Its text is empty if it has none. The
// error is errs.DataLoss if the output is not one of such a unit.
func Parsed(ctx context.Context, s jobs.Reader, id mapreduce.JobID, u *records.Unit) (*payload.Parsed, error) {
	data, err := s.Output(ctx, id, u)
	if err != nil {
		return nil, err
	}
	p, err := payload.DecodeParsed(data)
	if err != nil {
		return nil, errs.New(errs.DataLoss, "job %s: output of unit %s: %v", id, u.ID, err)
	}
	return p, nil
}

// ParsedTextLength returns how many bytes of text the document has that a unit parsed.
func ParsedTextLength(ctx context.Context, s jobs.Reader, id mapreduce.JobID, u *records.Unit) (int64, error) {
	if u.Published().Length == 0 {
		return 0, nil
	}
	h, err := parsedHead(ctx, s, id, u)
	if err != nil {
		return 0, err
	}
	return h.TextLength, nil
}

// ParsedNotes returns what the parser of a document notes on it.
func ParsedNotes(ctx context.Context, s jobs.Reader, id mapreduce.JobID, u *records.Unit) ([]string, error) {
	if u.Published().Length == 0 {
		return nil, nil
	}
	h, err := parsedHead(ctx, s, id, u)
	if err != nil {
		return nil, err
	}
	return h.Notes, nil
}

func parsedHead(ctx context.Context, s jobs.Reader, id mapreduce.JobID, u *records.Unit) (*payload.ParsedHead, error) {
	h, err := payload.ReadParsedHead(u.Published().Length, func(from, to int64) ([]byte, error) {
		return s.OutputRange(ctx, id, u, from, to)
	})
	if errors.Is(err, payload.ErrParsed) {
		err = errs.New(errs.DataLoss, "job %s: output of unit %s: %v", id, u.ID, err)
	}
	return h, err
}

// A Locator finds where citations of one job are in their documents, by the layouts that
// are stored: whatever a worker or a model says of places is not looked at. It is for one
// goroutine.
type Locator struct {
	source jobs.Reader
	job    mapreduce.JobID
	known  bool // whether the job parses documents at all
	parses bool
	of     map[string]*openLayout // by document; nil of one without a layout
}

// An openLayout is the layout of a document, in the output of the unit that parsed it.
type openLayout struct {
	*layout.Reader
	unit *records.Unit
	at   int64 // byte of the output at which it begins
}

// maxReaders is how many layouts a Locator holds open. Each holds one block.
const maxReaders = 64

// NewLocator returns a locator of a job.
func NewLocator(s jobs.Reader, job mapreduce.JobID) *Locator {
	return &Locator{source: s, job: job, of: make(map[string]*openLayout)}
}

// Locate returns where a reader of a document would look for bytes [start, end) of its
// text. It returns nil if they have no place, and errs.DataLoss if what is stored is no
// layout of the document.
func (l *Locator) Locate(ctx context.Context, document string, start, end int64) (*mapreduce.Location, error) {
	r, err := l.layoutOf(ctx, document)
	if err != nil || r == nil {
		return nil, err
	}

	at, err := r.Locate(l.fetch(ctx, r), int(start), int(end))
	return at, l.layoutError(document, err)
}

// IsRecognised reports whether some text of a document may have been recognised in pictures: it says so
// itself, as nobody is certain of that.
func (l *Locator) IsRecognised(ctx context.Context, document string) (bool, error) {
	r, err := l.layoutOf(ctx, document)
	if err != nil || r == nil || r.unit.Result == nil {
		return false, err
	}
	return r.unit.Result.Confidence < 1, nil
}

// Pages returns pages of a document that a model may be shown beside bytes [start, end) of its text:
// those whose text was recognised in a picture, and those between that have no text. They are in their
// order, and no more than most.
func (l *Locator) Pages(ctx context.Context, document string, start, end int64, most int) ([]int, error) {
	r, err := l.layoutOf(ctx, document)
	if err != nil || r == nil {
		return nil, err
	}

	var pages []int
	add := func(page int) {
		if n := len(pages); n < most && (n == 0 || pages[n-1] < page) {
			pages = append(pages, page)
		}
	}

	// What stands before the first text of a document is its own; of a later piece nobody knows.
	covered := 0
	if start > 0 {
		covered = -1
	}
	err = r.Visit(l.fetch(ctx, r), int(start), int(end), func(at *mapreduce.Location) {
		if at.Page == 0 {
			return
		}
		if covered < 0 {
			covered = at.Page - 1
		}
		for page := covered + 1; page < at.Page && len(pages) < most; page++ {
			add(page)
		}
		if at.Recognised > 0 {
			add(at.Page)
		}
		covered = max(covered, at.Page)
	})
	return pages, l.layoutError(document, err)
}

// Submitted returns the unit that parsed a document, whose source is the document as it was submitted;
// nil if no unit did.
func (l *Locator) Submitted(ctx context.Context, document string) (*records.Unit, error) {
	r, err := l.layoutOf(ctx, document)
	if err != nil || r == nil {
		return nil, err
	}
	return r.unit, nil
}

// layoutOf returns the layout of a document, which stays open for a while; nil if it has none.
func (l *Locator) layoutOf(ctx context.Context, document string) (*openLayout, error) {
	if parses, err := l.jobParses(ctx); err != nil || !parses {
		return nil, err
	}

	r, ok := l.of[document]
	if !ok {
		var err error
		if r, err = l.open(ctx, document); err != nil {
			return nil, err
		}
		if len(l.of) >= maxReaders {
			clear(l.of)
		}
		l.of[document] = r
	}
	return r, nil
}

// OfOutput returns where the citations of the output of a unit are, by their ids; those
// without a place are left out.
func (l *Locator) OfOutput(ctx context.Context, u *records.Unit, data []byte) (map[string]*mapreduce.Location, error) {
	if parses, err := l.jobParses(ctx); err != nil || !parses || u.Level < 0 || u.Kind == mapreduce.KindResult {
		return nil, err
	}

	out, err := output.Decode(data)
	if err != nil {
		return nil, errs.New(errs.DataLoss, "job %s: output of unit %s: %v", l.job, u.ID, err)
	}

	of := make(map[string]*mapreduce.Location)
	for _, c := range inOrder(out.Citations) {
		at, err := l.Locate(ctx, c.Document, c.ByteStart, c.ByteEnd)
		if err != nil {
			return nil, err
		}
		if at != nil {
			of[string(c.Key())] = at
		}
	}
	return of, nil
}

// inOrder returns citations in the order of their documents and texts: a layout is read
// block by block, and in any other order each citation reads a block again.
func inOrder(citations map[merge.Citation]output.Citation) []*output.Citation {
	all := make([]*output.Citation, 0, len(citations))
	for _, c := range citations {
		all = append(all, &c)
	}
	slices.SortFunc(all, func(a, b *output.Citation) int {
		return cmp.Or(cmp.Compare(a.Document, b.Document), cmp.Compare(a.ByteStart, b.ByteStart))
	})
	return all
}

// jobParses reports whether the job parses any document: else none has a layout.
func (l *Locator) jobParses(ctx context.Context) (bool, error) {
	if l.known {
		return l.parses, nil
	}
	first, err := l.source.UnitsFrom(ctx, l.job, -1, 0, 1)
	if err != nil {
		return false, err
	}
	l.known, l.parses = true, len(first) > 0
	return l.parses, nil
}

// layoutError makes the error of a stored layout that is none one of the store.
func (l *Locator) layoutError(document string, err error) error {
	if errors.Is(err, layout.ErrInvalid) {
		return errs.New(errs.DataLoss, "job %s: layout of document %.80q: %v", l.job, document, err)
	}
	return err
}

// fetch returns what reads a layout.
func (l *Locator) fetch(ctx context.Context, o *openLayout) layout.Fetch {
	return func(from, to int64) ([]byte, error) {
		return l.source.OutputRange(ctx, l.job, o.unit, o.at+from, o.at+to)
	}
}

// open returns the layout of a document; nil if it has none.
func (l *Locator) open(ctx context.Context, document string) (*openLayout, error) {
	u, err := l.source.Unit(ctx, l.job, mapreduce.ParseUnit(mapreduce.DocumentID(document)))
	if err != nil || u == nil || u.State != mapreduce.UnitComplete || u.Published().Length == 0 {
		return nil, err
	}

	h, err := parsedHead(ctx, l.source, l.job, u)
	if err != nil || h.LayoutLength == 0 {
		return nil, err
	}

	o := &openLayout{unit: u, at: h.LayoutAt}
	o.Reader, err = layout.NewReader(h.LayoutLength, int(h.TextLength), l.fetch(ctx, o))
	return o, l.layoutError(document, err)
}
