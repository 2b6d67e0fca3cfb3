package picture

import (
	"context"
	"image"

	"github.com/coditect/mapreduce/internal/document"
)

// A Size is how many pages a picture has, and how large the first one is as a viewer shows it.
type Size struct {
	Pages         int
	Width, Height int // pixels
}

// Measure returns the size of a picture by its headers; false of what is none, or says nothing that can be.
// It decodes no pixel.
func Measure(data []byte) (s Size, ok bool) {
	for i := range codecs {
		c := &codecs[i]
		if c.sniff(data[:min(len(data), document.SniffBytes)]) != document.Certain {
			continue
		}

		pages, err := c.pages(data, document.Limits{}.WithDefaults().Pages)
		if err != nil || len(pages) == 0 {
			return Size{}, false
		}
		config, err := runGuarded(func() (image.Config, error) { return c.config(pages[0].reader(context.Background())) })
		if err != nil || config.Width <= 0 || config.Height <= 0 {
			return Size{}, false
		}

		s = Size{Pages: len(pages), Width: config.Width, Height: config.Height}
		if quarters, _ := turnsOf(c.orientation(pages[0])); quarters&1 == 1 {
			s.Width, s.Height = s.Height, s.Width
		}
		return s, true
	}
	return Size{}, false
}
