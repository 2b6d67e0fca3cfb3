package picture_test

import (
	"testing"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/picture"
)

// What headers say is the size at which a page is drawn, turned as a viewer turns it; and headers of
// hostile pictures say something or nothing, and never stop who asks.
func TestMeasure(t *testing.T) {
	for name, data := range sound(t) {
		size, ok := picture.Measure(data)
		var page document.Picture
		err := picture.New(picture.Config{}).Draw(t.Context(), data, []int{1}, document.Within(100), func(p document.Picture) error {
			page = p
			return nil
		})
		if err != nil || !ok || page.Width != float64(size.Width) || page.Height != float64(size.Height) {
			t.Errorf("%s: measured %v (%v), drawn %v by %v, %v", name, size, ok, page.Width, page.Height, err)
		}
		if pages := map[string]int{"pages": 3}[name]; pages > 0 && size.Pages != pages {
			t.Errorf("%s: has %d pages, want %d", name, size.Pages, pages)
		}
	}

	for name, data := range hostile(t) {
		if size, ok := picture.Measure(data); ok && (size.Pages < 1 || size.Width < 1 || size.Height < 1) {
			t.Errorf("%s: measured %v", name, size)
		}
	}
	if _, ok := picture.Measure([]byte("%PDF-1.7")); ok {
		t.Error("a PDF file has the size of a picture")
	}
}
