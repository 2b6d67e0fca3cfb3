package pdf

import "github.com/coditect/mapreduce/internal/document/pdf/arrange"

// onPage returns the words of a page that it shows, and how many stand outside of it. (Text that
// stands on itself, PDFium reads once.)
func (p *page) onPage(words []arrange.Word) (shown []arrange.Word, outside int) {
	shown = words[:0]
	for _, w := range words {
		if b := w.Box; b.Right < 0 || b.Bottom < 0 || b.Left > p.width || b.Top > p.height {
			outside++
			continue
		}
		shown = append(shown, w)
	}
	return shown, outside
}
