package bench

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A Report is what was found in documents, or in the records of a job.
type Report struct {
	Documents []Tried
	Fields    []Count
	Score     *Score // nil without true values
}

// A Tried is what was found in a document.
type Tried struct {
	Document string
	Skipped  string // why it was not read
	Reason   string // why it has no records
	Records  []Record
	Notes    []string // which tables were taken, which rows left out
}

// A Record is what one record has of each field, in the order of the schema.
type Record struct{ Fields []Field }

// A Field is a field of a record: its values, or why there are none.
type Field struct {
	Name     string
	Values   []Value
	Accepted bool   // a job would take a value of it
	Refused  string // which constraint a value breaks, and how
	Reason   string // why nothing was found
}

// A Value is a value and the words that it was read from, at bytes of the text.
type Value struct {
	Text, Quote string
	Start, End  int
	Basis       string // what it was found by; empty if it is not known
	Rivals      int    // other values that the same rule found
}

// A Count says in how many records a field was found.
type Count struct {
	Field          string
	Found, Records int
	Reasons        []string // why it was not, the most frequent first, with their counts
}

// A Score compares values with true ones.
type Score struct {
	Fields []FieldScore
	All    FieldScore
	Failed string // why nothing could be compared
}

// A FieldScore measures one field, or all together.
type FieldScore struct {
	Field                 string
	Precision, Recall, F1 float64
	Support               int      // true values
	Wrong                 []string // what differs, some of it
}

// A Shown is a document in pieces, of which some are quoted by values.
type Shown struct {
	Name   string
	Pieces []Piece
	Cut    bool // the document is longer than what is shown
	Found  []Mark
}

// A Piece is some text of a document.
type Piece struct {
	Text   string
	Start  int    // byte of the document
	Marks  []int  // the numbers of the values that quote it
	Fields string // the fields of these
}

// A Mark is a value that quotes the document.
type Mark struct {
	Number int // from 1, by its place
	Record int // from 1
	Field  string
	Value  string
	start  int
	end    int
}

const (
	maxShownText = 200_000 // bytes of a document that are shown
	maxMarks     = 1000
)

// Show cuts the document of a sample that is looked at into pieces at the quotes of its values.
func Show(s *Sample, r *Report) *Shown {
	if s.Shown < 0 || s.Shown >= len(s.Documents) {
		return nil
	}
	d := s.Documents[s.Shown]
	out := &Shown{Name: d.Name}
	text := d.Text
	if len(text) > maxShownText {
		text, out.Cut = text[:maxShownText], true
		for !utf8.ValidString(text[max(0, len(text)-utf8.UTFMax):]) && len(text) > 0 {
			text = text[:len(text)-1]
		}
	}

	if r != nil && s.Shown < len(r.Documents) {
		out.Found = marksOf(&r.Documents[s.Shown], len(text))
	}
	out.Pieces = cut(text, out.Found)
	return out
}

// marksOf are the values of a document by their places.
func marksOf(t *Tried, end int) []Mark {
	var all []Mark
	for i, record := range t.Records {
		for _, f := range record.Fields {
			for _, v := range f.Values {
				if v.Start < v.End && v.End <= end && len(all) < maxMarks {
					all = append(all, Mark{Record: i + 1, Field: f.Name, Value: v.Text, start: v.Start, end: v.End})
				}
			}
		}
	}

	slices.SortStableFunc(all, func(a, b Mark) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	for i := range all {
		all[i].Number = i + 1
	}
	return all
}

// cut cuts a text at the edges of marks.
func cut(text string, marks []Mark) []Piece {
	edges := []int{0, len(text)}
	for _, m := range marks {
		edges = append(edges, m.start, m.end)
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)

	var pieces []Piece
	first := 0 // marks before it have ended
	for i := 0; i+1 < len(edges); i++ {
		a, b := edges[i], edges[i+1]
		one := Piece{Text: text[a:b], Start: a}
		for first < len(marks) && marks[first].end <= a && !slices.ContainsFunc(marks[first:], func(m Mark) bool { return m.start < marks[first].start }) {
			first++
		}
		var fields []string
		for _, m := range marks[first:] {
			if m.start > a {
				break
			}
			if m.end < b {
				continue
			}
			one.Marks = append(one.Marks, m.Number)
			if !slices.Contains(fields, m.Field) {
				fields = append(fields, m.Field)
			}
		}
		one.Fields = strings.Join(fields, ", ")
		pieces = append(pieces, one)
	}
	return pieces
}
