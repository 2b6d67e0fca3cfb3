// Package page writes report.html: the result of a job as one file that a browser shows
// without a network. The reader filters, sorts and searches the records, opens the quotes of
// each value, highlighted in their documents, and goes through all values of a document in
// its text.
//
// Texts of documents and models are data here. They stand in a JSON block that no browser
// runs, and the page's script puts them into text nodes alone. A content security policy
// allows the page's own script and style by their hashes, pictures that stand in the page,
// and nothing else.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
)

// A Page is what report.html shows.
type Page struct {
	Title  string
	Job    string
	Status string
	// Facts are shown above everything else, in their order: tokens, cost, time.
	Facts []Fact
	// Coverage accounts for the documents and characters of the job.
	Coverage []Ledger
	// Levels tell what ran when.
	Levels []Level
	// Tree is a picture of the job's units, as SVG; empty for none.
	Tree string
	// Data is shown by the page's script.
	Data Data
}

// A Fact is a name with a value, such as "cost" with "$1.20".
type Fact struct{ Name, Value string }

// A Ledger counts documents or characters by their outcome.
type Ledger struct {
	Name                           string
	Total, Mapped, Failed, Skipped int64
}

// A Level sums up the units of a level.
type Level struct {
	Name                   string // such as "map", or the name of a stage
	Units, Failed          int64
	Tokens                 int64
	Cost                   string  // such as "$0.10"; empty if it is not known
	Busy                   float64 // seconds in which its units ran, all together
	Begin, End, JobSeconds float64 // seconds after the beginning of the job; zero if they are not known
}

// Data is what the script of the page shows. Names of members are short where there are
// many of them.
type Data struct {
	// Fields are the names of the columns of the table, in their order.
	Fields  []string `json:"fields"`
	Records []Record `json:"records"`
	// More counts the records that are left out of the page.
	More int `json:"more"`
	// Documents are the ids of documents. Records and citations refer to their positions.
	Documents []string `json:"documents"`
	// Texts are the texts of some documents, whole, by the position of the document.
	Texts     map[int]string `json:"texts,omitempty"`
	Citations []Citation     `json:"citations"`
	// Pages are pages of documents, on which the places of citations are marked.
	Pages     []DrawnPage `json:"pages,omitempty"`
	Conflicts []Conflict  `json:"conflicts"`
	// MoreConflicts counts those that are left out of the page.
	MoreConflicts int `json:"more_conflicts,omitempty"`
	// Pictures are those that agents took of what is cited.
	Pictures []Picture `json:"pictures,omitempty"`
	// Report is the report that the job wrote; nil if it wrote none.
	Report *Report `json:"report,omitempty"`
	// Lists are shown below the records, each in a table of its own.
	Lists []List `json:"lists"`
}

// A Record is a row of the table.
type Record struct {
	// Sources are positions of documents.
	Sources []int `json:"s,omitempty"`
	// Values are the values by field, as people read them. A field without one is missing
	// or not verified.
	Values map[string]string `json:"v,omitempty"`
	// Citations are positions of citations, by field.
	Citations map[string][]int `json:"c,omitempty"`
	// Confidence is in [0, 1], by field.
	Confidence map[string]float64 `json:"k,omitempty"`
	// Said is the confidence that the extractor itself states, by field.
	Said map[string]float64 `json:"w,omitempty"`
	// Missing says why there is no value, by field.
	Missing map[string]string `json:"m,omitempty"`
	// Unverified are the values that no quote supports, or that break their schema, by
	// field.
	Unverified map[string]string `json:"u,omitempty"`
	// Seen are the values that a model saw in pictures and recognition did not read, by field, with the
	// pages where they stand.
	Seen map[string]Seen `json:"l,omitempty"`
	// Derived says of values that stand in no quote how they follow from some, by field.
	Derived map[string]Derived `json:"d,omitempty"`
	// Reviewed says what somebody has decided about values, by field.
	Reviewed map[string]string `json:"x,omitempty"`
}

// Seen is a value that a model saw in a picture.
type Seen struct {
	Value string `json:"v"`
	Where string `json:"w"` // the page, what the model read there, and what recognition has next to it
}

// Derived is how a value follows from quotes.
type Derived struct {
	Text      string `json:"t"` // in words, with the formula and what it gives
	Citations []int  `json:"c"` // positions
}

// A Citation is a quote and where it stands in its document.
type Citation struct {
	Ref      string  `json:"r"`
	Document int     `json:"d"` // position of the document
	Start    int64   `json:"s"` // code points of the document's text, half-open
	End      int64   `json:"e"`
	Quote    string  `json:"q"`
	Grade    string  `json:"g"` // exact, normalised, fuzzy or lookalike
	Before   string  `json:"b,omitempty"`
	After    string  `json:"a,omitempty"`
	Place    string  `json:"p,omitempty"` // where a reader would look, such as "page 3"
	Outside  bool    `json:"x,omitempty"` // it is not in the chunk that was read
	Others   int     `json:"o,omitempty"` // other places that the unit may have meant
	Coverage float64 `json:"y,omitempty"` // of fuzzy ones: share of the words looked for
	// Boxes are what the quote covers of pages: the page's number, left, top, right and
	// bottom, in points.
	Boxes [][]float64 `json:"z,omitempty"`
}

// A DrawnPage is a picture of a page of a document.
type DrawnPage struct {
	Document int     `json:"d"` // position of the document
	Page     int     `json:"n"` // counted from 1
	Width    float64 `json:"w"` // points
	Height   float64 `json:"h"`
	URL      string  `json:"u"` // a data: URL of a PNG or JPEG
}

// A Picture is a picture of something that is cited.
type Picture struct {
	Title string `json:"title"` // of what it is of
	Place string `json:"place"` // where that is
	Media string `json:"media"` // image/png or image/jpeg
	Data  []byte `json:"data"`
}

// A Report is a text whose references are numbers in brackets, such as [1] or [1, 3].
type Report struct {
	Sections []Section `json:"sections"`
	// References are the sources, in the order of their numbers, from 1 on.
	References []Reference `json:"references"`
	Claims     []Claim     `json:"claims"`
	Summary    string      `json:"summary"` // what the check of the claims came to
}

// A Section is a part of a report: a text, items, a table, or several of these.
type Section struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Text  string   `json:"text,omitempty"` // paragraphs, with an empty line between them
	Items []string `json:"items,omitempty"`
	// Columns and Rows are a table; a row has a text for each column.
	Columns []string   `json:"columns,omitempty"`
	Rows    [][]string `json:"rows,omitempty"`
}

// A Reference is an entry of a bibliography.
type Reference struct {
	Source   string `json:"source"`   // who wrote what, and when
	Citation int    `json:"citation"` // position of the citation
}

// A Claim is a sentence of a report with what its references say of it.
type Claim struct {
	Section string   `json:"section"` // its name
	Text    string   `json:"text"`
	Grade   string   `json:"grade"` // supported, partial, unsupported or contradicted
	Reasons []string `json:"reasons,omitempty"`
}

// A Conflict is a field for which documents give several values.
type Conflict struct {
	Field      string      `json:"field"`
	Key        string      `json:"key"` // of the record
	Candidates []Candidate `json:"candidates"`
	Chosen     string      `json:"chosen"`
	Strategy   string      `json:"strategy"`
	Rationale  string      `json:"rationale"`
}

// A Candidate is a value that was found for a field.
type Candidate struct {
	Value      string  `json:"v"`
	Confidence float64 `json:"k,omitempty"`
	Citations  []int   `json:"c,omitempty"` // positions of citations
}

// A List is a table such as that of the skipped documents.
type List struct {
	ID      string     `json:"id"` // a name for links
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
	// More counts the rows that are left out of the page.
	More int `json:"more,omitempty"`
}

//go:embed page.css
var style string

//go:embed page.js
var pageScript string

//go:embed documents.js
var documentsScript string

//go:embed start.js
var startScript string

// script is the page's script. Its parts share one scope, which nothing else sees.
var script = "\"use strict\";\n(async () => {\n" + pageScript + documentsScript + startScript + "})();\n"

//go:embed page.html.tmpl
var markup string

var pages = template.Must(template.New("page").Funcs(template.FuncMap{
	"policy":  func() string { return policy },
	"style":   func() template.HTML { return template.HTML("<style>" + style + "</style>") },    //nolint:gosec // our own file
	"script":  func() template.HTML { return template.HTML("<script>" + script + "</script>") }, //nolint:gosec // our own file
	"picture": pictureURL,
	"percent": func(part, whole int64) string {
		return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(max(whole, 1)))
	},
	"seconds": func(s float64) string { return fmt.Sprintf("%.2f s", s) },
}).Parse(markup))

// policy is the content security policy of the page.
var policy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; img-src data:; base-uri 'none'; form-action 'none'",
	sourceHash(style), sourceHash(script))

// sourceHash names a script or a style in a content security policy.
func sourceHash(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// pictureURL returns an SVG picture as a URL. A browser runs no script of a picture and
// loads nothing for it.
func pictureURL(svg string) template.URL {
	return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(svg))) //nolint:gosec // base64
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	if err := pages.ExecuteTemplate(w, "begin", p); err != nil {
		return err
	}
	if err := p.writeData(w); err != nil {
		return err
	}
	return pages.ExecuteTemplate(w, "end", p)
}

// maxPlainData is the size, in bytes, of the largest data that stands in the page as JSON. It
// can be read and searched there without a browser. Larger data is packed, to about a sixth.
const maxPlainData = 1 << 20

// writeData writes the block of data that the script reads.
func (p *Page) writeData(w io.Writer) error {
	var data bytes.Buffer
	// The encoder escapes < > and &, so that no text can end the block.
	if err := json.NewEncoder(&data).Encode(&p.Data); err != nil {
		return err
	}

	media, write := "application/json", data.WriteTo
	if data.Len() > maxPlainData {
		media, write = "application/gzip", func(w io.Writer) (int64, error) { return int64(data.Len()), writePacked(w, data.Bytes()) }
	}

	if _, err := fmt.Fprintf(w, `<script type="%s" id="data">`, media); err != nil {
		return err
	}
	if _, err := write(w); err != nil {
		return err
	}

	_, err := io.WriteString(w, "</script>\n")
	return err
}

// writePacked writes data packed by gzip, in base64.
func writePacked(w io.Writer, data []byte) error {
	text := base64.NewEncoder(base64.StdEncoding, w)
	packed, err := gzip.NewWriterLevel(text, gzip.BestSpeed)
	if err != nil {
		return err
	}

	if _, err := packed.Write(data); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return text.Close()
}

// Width is how much of the job's time the level took, in seconds.
func (l *Level) Width() float64 { return max(l.End-l.Begin, l.JobSeconds/500) }
