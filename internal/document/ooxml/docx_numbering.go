package ooxml

import (
	"encoding/xml"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/xmlread"
)

// A listRef is the list and level of a paragraph or style; empty fields are not said.
type listRef struct{ id, level string }

// numbering has the lists of a document and how far they have been counted.
type numbering struct {
	abstract map[string]*abstractList // by id
	lists    map[string]*list         // by id
}

// maxLevels is the number of levels of a list.
const maxLevels = 9

// An abstractList says how the items of lists are marked. Lists of one share its counters.
type abstractList struct {
	levels  [maxLevels]richtext.ListLevel
	counter richtext.ListCounter
}

// A list is one that paragraphs refer to.
type list struct {
	of     *abstractList
	starts map[int]int // by level; where it begins anew
	used   bool
}

// readNumbering reads the lists.
func (r *docxReader) readNumbering() error {
	r.numbering = numbering{abstract: map[string]*abstractList{}, lists: map[string]*list{}}
	return r.readOptional("numbering.xml", func(d *xmlread.Decoder) error {
		return d.Each(func(e xml.StartElement) error {
			switch e.Name.Local {
			case "abstractNum":
				return r.numbering.readAbstract(d, xmlread.Attr(e, "abstractNumId"))
			case "num":
				return r.numbering.readList(d, xmlread.Attr(e, "numId"))
			}
			return d.Skip()
		}, nil)
	})
}

func (n *numbering) readAbstract(d *xmlread.Decoder, id string) error {
	a := new(abstractList)
	n.abstract[id] = a

	return d.Each(func(e xml.StartElement) error {
		at, ok := levelNumber(xmlread.Attr(e, "ilvl"))
		if e.Name.Local != "lvl" || !ok {
			return d.Skip()
		}

		level := richtext.ListLevel{Start: 1}

		err := d.Each(func(e xml.StartElement) error {
			value := xmlread.Attr(e, "val")
			switch e.Name.Local {
			case "start":
				level.Start, _ = strconv.Atoi(value) // 0 is a start, too
			case "numFmt":
				level.Format = listFormat(value)
			case "lvlText":
				level.Text = value
			}
			return d.Skip()
		}, nil)

		a.levels[at] = level
		return err
	}, nil)
}

func (n *numbering) readList(d *xmlread.Decoder, id string) error {
	l := &list{starts: map[int]int{}}
	n.lists[id] = l

	return d.Each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "abstractNumId":
			l.of = n.abstract[xmlread.Attr(e, "val")]
		case "lvlOverride":
			at, ok := levelNumber(xmlread.Attr(e, "ilvl"))
			return d.Each(func(e xml.StartElement) error {
				// The list may begin anew though it shares the counters of others.
				if start, err := strconv.Atoi(xmlread.Attr(e, "val")); e.Name.Local == "startOverride" && ok && err == nil {
					l.starts[at] = start
				}
				return d.Skip()
			}, nil)
		}
		return d.Skip()
	}, nil)
}

func levelNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && 0 <= n && n < maxLevels
}

// listFormat returns how numbers of one of Word's formats are written.
func listFormat(name string) richtext.NumberFormat {
	switch name {
	case "bullet":
		return richtext.Bullet
	case "none":
		return richtext.NoNumber
	case "lowerLetter":
		return richtext.LowerLetter
	case "upperLetter":
		return richtext.UpperLetter
	case "lowerRoman":
		return richtext.LowerRoman
	case "upperRoman":
		return richtext.UpperRoman
	case "decimalZero":
		return richtext.DecimalZero
	}
	return richtext.Decimal
}

// next returns the mark of the next item of a list and its level; ok is false if the
// docxParagraph is in none.
func (n *numbering) next(ref listRef) (mark string, level int, ok bool) {
	l := n.lists[ref.id]
	if l == nil || l.of == nil || ref.id == "0" {
		return "", 0, false
	}

	level, _ = levelNumber(ref.level)
	if level < 0 || level >= maxLevels {
		level = 0
	}

	// A list that begins anew sets the counters that it shares back.
	if !l.used {
		l.used = true
		for at, start := range l.starts {
			l.of.counter.Restart(at, start)
		}
	}

	return strings.TrimSpace(l.of.counter.Next(l.of.levels[:], level)), level, true
}
