package pdf

import (
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document/pdf/arrange"
)

// maxNotes bounds the fields and annotations of a page.
const maxNotes = 2000

// Kinds of annotations (FPDF_ANNOT_… in fpdf_annot.h).
const (
	linkAnnotation   = 2
	popupAnnotation  = 16
	widgetAnnotation = 20
)

// Kinds of fields (FPDF_FORMFIELD_… in fpdf_formfill.h).
const (
	checkBox    = 2
	radioButton = 3
	comboBox    = 4
	listBox     = 5
)

// readNotes returns the fields and annotations of a page that say something: first the fields.
func (r *reading) readNotes(p *page) ([]arrange.Note, error) {
	count := min(asInteger(r.pdfium.call("FPDFPage_GetAnnotCount", p.handle)), maxNotes)

	var said, fields []arrange.Note

	var form *formPage
	for i := range count {
		a := r.pdfium.call("FPDFPage_GetAnnot", p.handle, integer(i))
		if a == 0 {
			continue
		}

		switch asInteger(r.pdfium.call("FPDFAnnot_GetSubtype", a)) {
		case widgetAnnotation:
			if form == nil {
				// Fields have their values only once the form of the document has been
				// opened.
				form = r.openForm(p)
			}
			fields = form.add(fields, a, p.annotationBox(a))
		case linkAnnotation, popupAnnotation:
		default:
			if text := r.annotationText(a); text != "" {
				said = append(said, arrange.Note{Text: text, Box: p.annotationBox(a)})
			}
		}

		r.pdfium.call("FPDFPage_CloseAnnot", a)
	}

	if form != nil {
		r.pdfium.call("FORM_OnBeforeClosePage", p.handle, r.form)
	}

	return append(fields, said...), r.pdfium.gone
}

// annotationText returns what an annotation says.
func (r *reading) annotationText(annotation uint64) string {
	if r.contents == 0 {
		r.contents = r.pdfium.cString("Contents")
	}
	return cleanLines(r.pdfium.text(func(buffer, size uint64) uint64 {
		return r.pdfium.call("FPDFAnnot_GetStringValue", annotation, r.contents, buffer, size)
	}))
}

// annotationBox returns where an annotation is shown.
func (p *page) annotationBox(annotation uint64) mapreduce.Box {
	if p.pdfium.call("FPDFAnnot_GetRect", annotation, p.pdfium.place(0)) == 0 {
		return mapreduce.Box{Page: p.number}
	}
	// Four numbers of 4 bytes follow each other: left, top, right and bottom.
	return p.shown(p.pdfium.filledNumber(0), p.pdfium.filledNumber(1), p.pdfium.filledNumber(2), p.pdfium.filledNumber(3))
}

// A formPage is the fields of a page.
type formPage struct {
	pdfium *instance
	form   uint64
	radios map[string]bool // by name, those that have been added
}

// openForm makes the values of the fields of a page known.
func (r *reading) openForm(p *page) *formPage {
	if r.form == 0 {
		r.form = r.pdfium.call("FPDFDOC_InitFormFillEnvironment", r.handle, r.pdfium.call("FPDF_FORMFILLINFO_Create"))
	}
	r.pdfium.call("FORM_OnAfterLoadPage", p.handle, r.form)
	return &formPage{pdfium: r.pdfium, form: r.form, radios: make(map[string]bool)}
}

// add adds a field, if it has a value, to others. Radio buttons of one name are one field.
func (f *formPage) add(fields []arrange.Note, widget uint64, box mapreduce.Box) []arrange.Note {
	if f.form == 0 {
		return fields
	}

	kind := asInteger(f.pdfium.call("FPDFAnnot_GetFormFieldType", f.form, widget))
	one := arrange.Note{Name: cleanLines(f.text("FPDFAnnot_GetFormFieldName", widget)), Box: box}

	switch kind {
	case checkBox, radioButton:
		if f.pdfium.call("FPDFAnnot_IsChecked", f.form, widget) == 0 {
			return fields
		}
		if kind == radioButton {
			one.Text = cleanLines(f.text("FPDFAnnot_GetFormFieldValue", widget))
		}
		if one.Text == "" {
			one.Text = "yes"
		}
	case comboBox, listBox:
		one.Text = cleanLines(strings.Join(f.chosen(widget), ", "))
	default:
		one.Text = cleanLines(f.text("FPDFAnnot_GetFormFieldValue", widget))
	}

	if one.Text == "" {
		return fields
	}

	if kind == radioButton {
		if f.radios[one.Name] {
			return fields
		}
		f.radios[one.Name] = true
	}

	return append(fields, one)
}

// text returns a text of a field.
func (f *formPage) text(function string, widget uint64) string {
	return f.pdfium.text(func(buffer, size uint64) uint64 { return f.pdfium.call(function, f.form, widget, buffer, size) })
}

// chosen returns the options of a field that are chosen.
func (f *formPage) chosen(widget uint64) []string {
	var all []string
	for i := range min(asInteger(f.pdfium.call("FPDFAnnot_GetOptionCount", f.form, widget)), maxNotes) {
		if f.pdfium.call("FPDFAnnot_IsOptionSelected", f.form, widget, integer(i)) == 0 {
			continue
		}
		all = append(all, f.pdfium.text(func(buffer, size uint64) uint64 {
			return f.pdfium.call("FPDFAnnot_GetOptionLabel", f.form, widget, integer(i), buffer, size)
		}))
	}
	return all
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
