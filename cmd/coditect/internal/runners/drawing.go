package runners

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/pdf"
	"github.com/coditect/mapreduce/internal/document/picture"
	"github.com/coditect/mapreduce/worker/agent"
)

// PageDrawer returns what draws pages of documents for reports: of PDF files only if it would not
// take long to begin.
func (r *Runners) PageDrawer() (PageDrawer, error) {
	if _, err := r.DocumentFormats(); err != nil {
		return nil, err
	}
	return drawer{r.pictures, r.pdfs, false}, nil
}

// DrawPages draws pages of documents for models that are shown them: it is a worker.DrawPages.
func (r *Runners) DrawPages(ctx context.Context, data []byte, pages []int, fit func(width, height int) (int, int), drawn func(agent.Picture) error) error {
	if r.pdfs == nil { // a process that reads documents has its readers before any unit runs
		return agent.ErrNoPages
	}
	return drawer{r.pictures, r.pdfs, true}.Draw(ctx, data, pages, fit, func(p document.Picture) error {
		return drawn(agent.Picture{Page: p.Page, Width: p.Across, Height: p.Down, MediaType: p.MediaType, Data: p.Data})
	})
}

// A Drawing is what drawing pages may take, for a process that does nothing else.
type Drawing struct {
	Password string        // of encrypted PDF files
	Bytes    int64         // of a document
	Memory   int64         // bytes that a page takes
	Time     time.Duration // of a processor, for a page of a PDF file
	Pages    int           // of a document
}

// Drawing returns what the flags allow for drawing pages.
func (r *Runners) Drawing() Drawing {
	d := &r.Documents
	return Drawing{Password: d.password, Bytes: d.bytes << 20, Memory: d.memory << 20, Time: d.time, Pages: d.pages}
}

// Drawer returns what draws pages within that.
func (d Drawing) Drawer() PageDrawer {
	return drawer{
		pictures: picture.New(picture.Config{MaxBytes: d.Bytes, MaxMemory: d.Memory}),
		pdfs:     pdf.New(pdf.Config{Password: d.Password, MaxPages: d.Pages, MaxMemory: d.Memory, MaxTime: d.Time, Turns: document.NewTurns(0)}),
		waits:    true,
	}
}

// A PageDrawer draws pages of PDF files and pictures; see pdf.Reader.
type PageDrawer interface {
	Draw(ctx context.Context, data []byte, pages []int, fit document.Fit, drawn func(document.Picture) error) error
}

// A drawer draws pages with the readers that read them.
type drawer struct {
	pictures *picture.Reader
	pdfs     *pdf.Reader
	waits    bool // for what draws PDF files to be compiled
}

// Draw implements PageDrawer. Of a document that is not drawn it draws no page.
func (d drawer) Draw(ctx context.Context, data []byte, pages []int, fit document.Fit, drawn func(document.Picture) error) error {
	switch {
	case picture.Is(data):
		return d.pictures.Draw(ctx, data, pages, fit, drawn)
	case pdf.Is(data) && (d.waits || d.pdfs.CanDraw()):
		return d.pdfs.Draw(ctx, data, pages, fit, drawn)
	}
	return nil
}
