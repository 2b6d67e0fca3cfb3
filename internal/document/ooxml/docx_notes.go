package ooxml

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document/xmlread"
)

// A comment is what somebody wrote in the margin.
type docxComment struct {
	author, date string
	lines        []string
}

// readNotes reads footnotes, endnotes and comments.
func (r *docxReader) readNotes() error {
	r.notes, r.comments = map[string][]string{}, map[string]docxComment{}

	for _, kind := range []string{"footnote", "endnote"} {
		err := r.readNoted(kind+"s.xml", kind, func(e xml.StartElement, lines []string) {
			if t := xmlread.Attr(e, "type"); t == "" || t == "normal" { // others are lines that part notes from the text
				r.notes[noteKey(kind, xmlread.Attr(e, "id"))] = lines
			}
		})
		if err != nil {
			return err
		}
	}

	return r.readNoted("comments.xml", "comment", func(e xml.StartElement, lines []string) {
		r.comments[xmlread.Attr(e, "id")] = docxComment{
			author: xmlread.Attr(e, "author"), date: xmlread.Attr(e, "date"), lines: lines,
		}
	})
}

// readNoted calls take with the elements of a name in an entry, and their lines.
func (r *docxReader) readNoted(entry, name string, take func(xml.StartElement, []string)) error {
	paragraphs := r.paragraphs

	err := r.readOptional(entry, func(d *xmlread.Decoder) error {
		return d.Each(func(e xml.StartElement) error {
			if e.Name.Local != name {
				return d.Skip()
			}

			e = e.Copy()
			p := &docxParser{docxReader: r, xml: d}
			var blocks []block
			err := p.readBlocks(func(b block) error { blocks = append(blocks, b); return nil })
			take(e, strings.Fields(plainText(blocks)))
			return err
		}, nil)
	})

	r.paragraphs = paragraphs // only those of the text count
	return err
}

func noteKey(kind, id string) string { return kind + " " + id }

// writeReference writes the number of a note where the text refers to it.
func (p *docxParser) writeReference(kind, id string) {
	key := noteKey(kind, id)
	if p.notes[key] == nil {
		return
	}

	i := slices.Index(p.noted, key)
	if i < 0 {
		i = len(p.noted)
		p.noted = append(p.noted, key)
	}

	p.text.Insert(fmt.Sprintf("[^%d]", i+1))
}

// writeNotes writes the notes and comments behind the text.
func (r *docxReader) writeNotes() {
	for i, key := range r.noted {
		where := &mapreduce.Location{Place: key[:strings.IndexByte(key, ' ')] + fmt.Sprintf(" %d", i+1)}
		r.writer.Note(fmt.Sprintf("[^%d]:", i+1), strings.Join(r.notes[key], " "), where)
	}
	for i, id := range r.commented {
		c, ok := r.comments[id]
		if !ok {
			continue
		}
		delete(r.comments, id)

		date, _, _ := strings.Cut(c.date, "T")
		mark := "Comment" + strings.TrimRight(" by "+c.author+", "+date, ", ") + ":"
		r.writer.Note(mark, strings.Join(c.lines, " "), &mapreduce.Location{Place: fmt.Sprintf("comment %d", i+1)})
	}
}
