package ooxml

import (
	"encoding/xml"

	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/xmlread"
)

// A font is what counts of how characters look.
type font struct {
	style    string
	position richtext.Position
	placed   bool // the position is said
	hidden   bool
}

// readFont reads how characters look.
func readFont(d *xmlread.Decoder) (font, error) {
	var f font
	err := d.Each(func(e xml.StartElement) error {
		value := xmlread.Attr(e, "val")
		switch e.Name.Local {
		case "rStyle":
			f.style = value
		case "vertAlign":
			f.position, f.placed = richtext.PositionOf(value), true
		case "vanish":
			f.hidden = xmlread.IsOn(value)
		}
		return d.Skip()
	}, nil)

	return f, err
}

// position returns where characters of a font stand.
func (r *docxReader) position(f font) richtext.Position {
	if f.placed {
		return f.position
	}
	return r.styleOf(f.style).font.position
}
