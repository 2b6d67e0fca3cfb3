package pdf

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A page is a page that is loaded.
type page struct {
	pdfium        pdfium.Pdfium
	handle        references.FPDF_PAGE
	number        int     // counted from 1
	width, height float64 // points, as a viewer shows it
	// The point (x, y) of the file is shown at (a·x + b·y + c, d·x + e·y + f).
	a, b, c, d, e, f float64
}

// maxPageChars bounds the characters of a page that are looked at.
const maxPageChars = 1 << 20

func (p *page) ref() requests.Page { return requests.Page{ByReference: &p.handle} }

func (p *page) close() {
	_, err := p.pdfium.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: p.handle})
	ignore(err) // the instance goes with the document
}

// measure finds out how the page is shown: its size, its rotation, and what is cropped.
func (p *page) measure() error {
	size, err := p.pdfium.GetPageSize(&requests.GetPageSize{Page: p.ref()})
	if err != nil {
		return err
	}
	if p.width, p.height = size.Width, size.Height; !(p.width > 0 && p.height > 0) {
		return fmt.Errorf("page %d is %v by %v points", p.number, p.width, p.height)
	}
	const fine = 1 << 20 // device pixels, so that what is rounded is small
	at := func(x, y float64) (float64, float64, error) {
		d, err := p.pdfium.FPDF_PageToDevice(&requests.FPDF_PageToDevice{Page: p.ref(), SizeX: fine, SizeY: fine, PageX: x, PageY: y})
		if err != nil {
			return 0, 0, err
		}
		return float64(d.DeviceX) * p.width / fine, float64(d.DeviceY) * p.height / fine, nil
	}
	const far = 1000
	var x1, y1, x2, y2 float64
	if p.c, p.f, err = at(0, 0); err == nil {
		if x1, y1, err = at(far, 0); err == nil {
			x2, y2, err = at(0, far)
		}
	}
	p.a, p.d, p.b, p.e = (x1-p.c)/far, (y1-p.f)/far, (x2-p.c)/far, (y2-p.f)/far
	return err
}

// shown returns a rectangle of the file as a viewer shows it.
func (p *page) shown(left, top, right, bottom float64) mapreduce.Box {
	x1, y1 := p.a*left+p.b*top+p.c, p.d*left+p.e*top+p.f
	x2, y2 := p.a*right+p.b*bottom+p.c, p.d*right+p.e*bottom+p.f
	return mapreduce.Box{
		Page: p.number, Left: within(min(x1, x2)), Top: within(min(y1, y2)), Right: within(max(x1, x2)), Bottom: within(max(y1, y2)),
	}
}

// within keeps a length within what a layout may have, to a tenth of a point.
func within(points float64) float64 {
	const most = 20_000
	if !(points > -most) { // which no number is not, either
		return -most
	}
	return math.Round(min(points, most)*10) / 10
}

// words returns the words of a page in the order of the file.
func (p *page) words() ([]word, error) {
	loaded, err := p.pdfium.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: p.ref()})
	if err != nil {
		return nil, err
	}
	text := loaded.TextPage
	defer func() {
		_, err := p.pdfium.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: text})
		ignore(err)
	}()
	count, err := p.pdfium.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: text})
	if err != nil || count.Count <= 0 {
		return nil, err
	}
	n := min(count.Count, maxPageChars)
	got, err := p.pdfium.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: text, StartIndex: 0, Count: n})
	if err != nil {
		return nil, err
	}
	r := wordReader{page: p, text: text, chars: []rune(got.Text), same: len([]rune(got.Text)) == n}
	return r.read()
}

// A wordReader splits the text of a page into words.
type wordReader struct {
	page  *page
	text  references.FPDF_TEXTPAGE
	chars []rune
	same  bool // characters of the text have the numbers of those of the page
	words []word
	line  int
}

// isSoftHyphen tells what PDFium makes of a hyphen at which it joins two lines.
func isSoftHyphen(c rune) bool { return c == '\ufffe' || c == '\x02' }

func (r *wordReader) read() ([]word, error) {
	from := 0
	for i := 0; i <= len(r.chars); i++ {
		if i < len(r.chars) && r.chars[i] != '\n' && r.chars[i] != '\r' {
			continue
		}
		if err := r.addLine(from, i); err != nil {
			return nil, err
		}
		r.line++
		from = i + 1
	}
	return r.words, nil
}

// addLine adds the words of characters [from, to) of the text, which are a line.
func (r *wordReader) addLine(from, to int) error {
	if hasRightToLeft(r.chars[from:to]) {
		l, err := r.glyphLine(from, to)
		if err != nil {
			return err
		}
		if l.isLegible() {
			r.words = append(r.words, l.words(r.line)...)
			return nil
		}
	}
	for i := from; i <= to; i++ {
		if i < to && !isBlank(r.chars[i]) {
			continue
		}
		if err := r.addWord(from, i); err != nil {
			return err
		}
		from = i + 1
	}
	return nil
}

// isBlank reports whether a character parts words.
func isBlank(c rune) bool { return unicode.IsSpace(c) || c == 0 }

// addWord adds characters [from, to) of the text as a word. What is hyphenated stands in
// two lines: it becomes two, the first of which ends with a soft hyphen.
func (r *wordReader) addWord(from, to int) error {
	if from >= to {
		return nil
	}
	for i := from; i < to-1; i++ {
		if isSoftHyphen(r.chars[i]) {
			if err := r.addWord(from, i+1); err != nil {
				return err
			}
			r.line++
			return r.addWord(i+1, to)
		}
	}
	text := clean(r.chars[from:to])
	if text == "" {
		return nil
	}
	box, ok, err := r.box(from, to)
	if err != nil || !ok {
		return err
	}
	r.words = append(r.words, word{text: text, box: box, line: r.line})
	return nil
}

// clean returns characters as text, without those that no font shows.
func clean(chars []rune) string {
	return strings.Map(func(c rune) rune {
		switch {
		case isSoftHyphen(c):
			return '\u00ad'
		case unicode.IsControl(c), c == '\ufeff', c == unicode.ReplacementChar:
			return -1
		}
		return c
	}, string(chars))
}

// box returns what characters of the text cover of the page, and whether they do.
func (r *wordReader) box(from, to int) (box mapreduce.Box, ok bool, err error) {
	shift, ok, err := r.shift(from)
	if err != nil || !ok {
		return box, false, err
	}
	from, to, ok = from+shift, to+shift, false
	count, err := r.page.pdfium.FPDFText_CountRects(&requests.FPDFText_CountRects{TextPage: r.text, StartIndex: from, Count: to - from})
	if err != nil {
		return box, false, r.page.alive(err)
	}
	for i := range min(count.Count, 64) {
		rect, err := r.page.pdfium.FPDFText_GetRect(&requests.FPDFText_GetRect{TextPage: r.text, Index: i})
		if err != nil {
			return box, false, r.page.alive(err)
		}
		one := r.page.shown(rect.Left, rect.Top, rect.Right, rect.Bottom)
		if ok {
			one = union(box, one)
		}
		box, ok = one, true
	}
	return box, ok, nil
}

// shift returns by how much the numbers of characters of the page are above those of the
// text, from one on, and whether PDFium knows.
func (r *wordReader) shift(from int) (by int, ok bool, err error) {
	if r.same {
		return 0, true, nil
	}
	at, err := r.page.pdfium.FPDFText_GetCharIndexFromTextIndex(&requests.FPDFText_GetCharIndexFromTextIndex{TextPage: r.text, NTextIndex: from})
	if err != nil {
		return 0, false, r.page.alive(err)
	}
	return at.CharIndex - from, true, nil
}

// alive returns nil for an error about one character, and the error if the instance is
// gone.
func (p *page) alive(err error) error {
	if _, gone := p.pdfium.FPDF_GetLastError(&requests.FPDF_GetLastError{}); gone != nil {
		return errors.Join(err, gone)
	}
	return nil
}

func union(a, b mapreduce.Box) mapreduce.Box {
	return mapreduce.Box{
		Page: a.Page, Left: min(a.Left, b.Left), Top: min(a.Top, b.Top), Right: max(a.Right, b.Right), Bottom: max(a.Bottom, b.Bottom),
	}
}

// A note is a text beside that of the page: the value of a field, or an annotation.
type note struct {
	name string // of the field; may be empty
	text string
	box  mapreduce.Box
}

// maxNotes bounds the fields and annotations of a page.
const maxNotes = 2000

// notes returns the fields and annotations of a page that say something.
func (p *page) notes(document references.FPDF_DOCUMENT) ([]note, error) {
	count, err := p.pdfium.FPDFPage_GetAnnotCount(&requests.FPDFPage_GetAnnotCount{Page: p.ref()})
	if err != nil || count.Count == 0 {
		return nil, err
	}
	var all []note
	var widgets []mapreduce.Box
	for i := range min(count.Count, maxNotes) {
		kind, one, err := p.annotation(i)
		if err != nil {
			if err := p.alive(err); err != nil {
				return nil, err
			}
			continue
		}
		switch kind {
		case enums.FPDF_ANNOT_SUBTYPE_WIDGET:
			widgets = append(widgets, one.box)
		case enums.FPDF_ANNOT_SUBTYPE_LINK, enums.FPDF_ANNOT_SUBTYPE_POPUP:
		default:
			if one.text != "" {
				all = append(all, one)
			}
		}
	}
	if len(widgets) == 0 {
		return all, nil
	}
	fields, err := p.fields(widgets)
	return append(fields, all...), err
}

// annotation returns the i-th annotation of the page.
func (p *page) annotation(i int) (enums.FPDF_ANNOTATION_SUBTYPE, note, error) {
	got, err := p.pdfium.FPDFPage_GetAnnot(&requests.FPDFPage_GetAnnot{Page: p.ref(), Index: i})
	if err != nil {
		return 0, note{}, err
	}
	a := got.Annotation
	defer func() {
		_, err := p.pdfium.FPDFPage_CloseAnnot(&requests.FPDFPage_CloseAnnot{Annotation: a})
		ignore(err)
	}()
	kind, err := p.pdfium.FPDFAnnot_GetSubtype(&requests.FPDFAnnot_GetSubtype{Annotation: a})
	if err != nil {
		return 0, note{}, err
	}
	rect, err := p.pdfium.FPDFAnnot_GetRect(&requests.FPDFAnnot_GetRect{Annotation: a})
	if err != nil {
		return 0, note{}, err
	}
	box := p.shown(float64(rect.Rect.Left), float64(rect.Rect.Top), float64(rect.Rect.Right), float64(rect.Rect.Bottom))
	said, err := p.pdfium.FPDFAnnot_GetStringValue(&requests.FPDFAnnot_GetStringValue{Annotation: a, Key: "Contents"})
	if err != nil {
		return kind.Subtype, note{box: box}, nil // it says nothing
	}
	return kind.Subtype, note{text: cleanLines(said.Value), box: box}, nil
}

// fields returns the fields of a form that have a value. widgets are the boxes of all.
func (p *page) fields(widgets []mapreduce.Box) ([]note, error) {
	form, err := p.pdfium.GetForm(&requests.GetForm{Page: p.ref()})
	if err != nil {
		return nil, p.alive(err)
	}
	var all []note
	for i, f := range form.Fields {
		value := strings.Join(f.Values, ", ")
		switch {
		case f.IsChecked != nil && !*f.IsChecked:
			continue
		case f.Value != nil && *f.Value != "":
			value = *f.Value
		case f.IsChecked != nil:
			value = "yes"
		}
		if value = cleanLines(value); value == "" {
			continue
		}
		one := note{name: cleanLines(f.Name), text: value}
		if len(form.Fields) == len(widgets) {
			one.box = widgets[i]
		}
		all = append(all, one)
	}
	return all, nil
}

// cleanLines returns a text of its lines that say something.
func cleanLines(s string) string {
	var lines []string
	for line := range strings.FieldsFuncSeq(s, func(c rune) bool { return c == '\n' || c == '\r' || c == 0 }) {
		if line = strings.TrimSpace(clean([]rune(strings.ReplaceAll(line, "\t", " ")))); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
