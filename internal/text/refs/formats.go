package refs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ListMarkdown returns the entries as a list in Markdown, one source a line in the order of their first
// numbers, behind all of its numbers and with the place of each. Nothing of a source is read as
// Markdown.
func ListMarkdown(entries []Entry) string {
	var b strings.Builder
	for _, all := range bySource(entries) {
		var numbers, places []string
		for _, e := range all {
			numbers = append(numbers, strconv.Itoa(e.Number))
			switch {
			case e.Place == "":
			case len(all) == 1:
				places = append(places, e.Place)
			default:
				places = append(places, fmt.Sprintf("%s (%d)", e.Place, e.Number))
			}
		}

		// Several numbers of one source need to be told apart only by their places.
		fmt.Fprintf(&b, "- **%s.** %s", strings.Join(numbers, ", "), all[0].asMarkdown())

		if len(places) > 0 {
			b.WriteString(" " + capitalised(escapeMarkdown(strings.Join(places, ", "))) + ".")
		}

		b.WriteByte('\n')
	}
	return b.String()
}

// bySource returns the entries of each source together, in the order of the first of each.
func bySource(entries []Entry) [][]Entry {
	var all [][]Entry
	at := make(map[string]int) // by document
	for _, e := range entries {
		i, seen := at[e.ID]
		if !seen {
			i, all = len(all), append(all, nil)
			at[e.ID] = i
		}
		all[i] = append(all[i], e)
	}

	return all
}

func capitalised(text string) string {
	first, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[n:]
}

func (s *Source) asMarkdown() string {
	var parts []string
	if len(s.Authors) > 0 {
		parts = append(parts, escapeMarkdown(s.authorList())+".")
	}

	title := s.Title
	if title == "" {
		title = s.ID
	}
	parts = append(parts, "*"+escapeMarkdown(strings.TrimRight(title, "."))+"*.")

	if s.Year != "" {
		parts = append(parts, escapeMarkdown(s.Year)+".")
	}
	if s.URL != "" {
		parts = append(parts, "<"+s.URL+">.")
	}

	// Without a title the id stands in its place already.
	if s.Title != "" {
		parts = append(parts, "Document "+escapeMarkdown(s.ID)+".")
	}

	return strings.Join(parts, " ")
}

// shownAuthors is how many authors a reader is shown; of more the first are.
const shownAuthors = 6

func (s *Source) authorList() string {
	if len(s.Authors) > shownAuthors {
		return strings.Join(s.Authors[:shownAuthors], "; ") + "; et al"
	}
	return strings.Join(s.Authors, "; ")
}

// markdownMarks are characters that mean something in Markdown or HTML.
const markdownMarks = "\\`*_{}[]()<>#+-!|~&$^="

func escapeMarkdown(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune(markdownMarks, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// A cslItem is an entry as CSL-JSON has it (citationstyles.org, schema csl-data 1.0).
type cslItem struct {
	ID     string    `json:"id"`
	Type   string    `json:"type"`
	Number string    `json:"citation-number"`
	Title  string    `json:"title,omitempty"`
	Author []cslName `json:"author,omitempty"`
	Issued *cslDate  `json:"issued,omitempty"`
	URL    string    `json:"URL,omitempty"`
	Source string    `json:"source,omitempty"` // the document in the job
	Note   string    `json:"note,omitempty"`   // places in it, by their numbers
	Custom cslCustom `json:"custom"`
}

// cslCustom is what the format leaves to programs.
type cslCustom struct {
	References []string `json:"references"` // ids, in the order of the numbers
}

type cslName struct {
	Family  string `json:"family,omitempty"`
	Given   string `json:"given,omitempty"`
	Literal string `json:"literal,omitempty"` // of a name that has no parts
}

type cslDate struct {
	Parts [][]int `json:"date-parts,omitempty"`
	Raw   string  `json:"raw,omitempty"` // of a date that is no year
}

// CSL returns the sources of the entries as CSL-JSON, each once: under the REF id of its first entry,
// with the numbers of all, the places of those that have one as a note, and all ids.
func CSL(entries []Entry) ([]byte, error) {
	sources := bySource(entries)
	items := make([]cslItem, len(sources))
	for i, all := range sources {
		e := all[0]
		numbers, ids := namesOf(all)

		items[i] = cslItem{
			ID: e.Ref, Type: "document", Number: strings.Join(numbers, ", "), Title: e.Title, URL: e.URL, Source: e.ID,
			Note: placesOf(all), Custom: cslCustom{References: ids},
		}
		if e.Title == "" {
			items[i].Title = e.ID
		}

		for _, author := range e.Authors {
			name := cslName{Literal: author}
			if family, given := splitName(author); given != "" {
				name = cslName{Family: family, Given: given}
			}
			items[i].Author = append(items[i].Author, name)
		}

		if e.Year != "" {
			items[i].Issued = &cslDate{Raw: e.Year}
			if year, err := strconv.Atoi(e.Year); err == nil {
				items[i].Issued = &cslDate{Parts: [][]int{{year}}}
			}
		}
	}

	var b bytes.Buffer
	// Titles with signs of HTML stay readable.
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")

	err := enc.Encode(items)
	return b.Bytes(), err
}

// namesOf returns the numbers and the ids of entries.
func namesOf(all []Entry) (numbers, ids []string) {
	for _, e := range all {
		numbers, ids = append(numbers, strconv.Itoa(e.Number)), append(ids, e.Ref)
	}
	return numbers, ids
}

// placesOf returns where the passages of a source stand, each with its number: [1] page 3.
func placesOf(all []Entry) string {
	var places []string
	for _, e := range all {
		if e.Place != "" {
			places = append(places, fmt.Sprintf("[%d] %s", e.Number, e.Place))
		}
	}
	return strings.Join(places, "; ")
}

// BibTeX returns the sources of the entries as BibTeX, each once: under the REF id of its
// first entry, with the ids of the others as aliases (ids, of biblatex), and the places of
// its passages in the note. Nothing of a source is read as TeX.
func BibTeX(entries []Entry) string {
	var b strings.Builder
	for _, all := range bySource(entries) {
		e := all[0]
		fmt.Fprintf(&b, "@misc{%s,\n", e.Ref)

		numbers, ids := namesOf(all)
		if len(ids) > 1 {
			fmt.Fprintf(&b, "  ids = {%s},\n", strings.Join(ids[1:], ","))
		}

		title := e.Title
		if title == "" {
			title = e.ID
		}

		// Double braces keep the capitals of a title, which BibTeX styles would change.
		fmt.Fprintf(&b, "  title = {{%s}},\n", escapeTeX(title))

		if len(e.Authors) > 0 {
			names := make([]string, len(e.Authors))
			for i, author := range e.Authors {
				names[i] = texName(author)
			}
			fmt.Fprintf(&b, "  author = {%s},\n", strings.Join(names, " and "))
		}

		if e.Year != "" {
			fmt.Fprintf(&b, "  year = {%s},\n", escapeTeX(e.Year))
		}
		if e.URL != "" {
			fmt.Fprintf(&b, "  url = {%s},\n", e.URL)
		}

		note := fmt.Sprintf("[%s] document %s", strings.Join(numbers, ", "), escapeTeX(e.ID))
		if places := placesOf(all); places != "" {
			note += ": " + escapeTeX(places)
		}
		fmt.Fprintf(&b, "  note = {%s}\n}\n", note)
	}

	return b.String()
}

// texName is an author as BibTeX reads names: in braces if it has no parts.
func texName(author string) string {
	family, given := splitName(author)
	if given == "" {
		return "{" + escapeTeX(author) + "}"
	}
	return escapeTeX(family) + ", " + escapeTeX(given)
}

var texMarks = map[rune]string{
	'\\': `\textbackslash{}`, '{': `\{`, '}': `\}`, '$': `\$`, '&': `\&`, '%': `\%`, '#': `\#`, '_': `\_`,
	'~': `\textasciitilde{}`, '^': `\textasciicircum{}`,
}

func escapeTeX(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch to, ok := texMarks[r]; {
		case ok:
			b.WriteString(to)
		case unicode.IsGraphic(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}
