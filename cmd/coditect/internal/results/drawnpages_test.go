package results_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
	"github.com/coditect/mapreduce/internal/document"
)

// A hurriedStore refuses to read texts in little time, as services do.
type hurriedStore struct{ *store }

func (s hurriedStore) ReadText(ctx context.Context, id mapreduce.JobID, unit mapreduce.UnitID, name mapreduce.DocumentID, sink func([]byte) error) error {
	if by, bounded := ctx.Deadline(); bounded {
		return errs.New(errs.Unavailable, "little time is left until %s", by)
	}
	return s.store.ReadText(ctx, id, unit, name, sink)
}

// A slowDrawer draws one page and has no time for the next.
type slowDrawer struct{ left int }

func (d *slowDrawer) Draw(_ context.Context, _ []byte, pages []int, _ document.Fit, drawn func(document.Picture) error) error {
	if d.left--; d.left < 0 {
		return context.DeadlineExceeded
	}
	return drawn(document.Picture{Page: pages[0], Width: 600, Height: 800, MediaType: "image/png", Data: []byte("a picture")})
}

// The results are written whole where there is no time to draw all pages.
func TestNoTimeForPictures(t *testing.T) {
	parts := records(3)
	for i, p := range parts[3:] {
		p.Citation.Document = mapreduce.DocumentID(fmt.Sprintf("d%d.pdf", i))
		p.Citation.Location = &mapreduce.Location{Page: 1, Boxes: []mapreduce.Box{{Page: 1, Left: 10, Top: 10, Right: 90, Bottom: 20}}}
	}
	s := complete(parts...)
	dir := write(t, hurriedStore{s}, results.Config{Pages: &slowDrawer{left: 1}})
	if n := strings.Count(readFile(t, dir, "report.html"), `"data:image/png;base64,`); n != 1 {
		t.Errorf("%d pictures are in report.html, want that of the one page that was drawn", n)
	}
}
