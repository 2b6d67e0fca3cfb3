package pdf_test

import (
	"bytes"
	"fmt"
	"strings"
)

// A maker writes PDF files, for tests.
type maker struct {
	objects []string // bodies, from object 1 on
}

func (m *maker) add(body string) int {
	m.objects = append(m.objects, body)
	return len(m.objects)
}

// file returns the file whose catalogue is the object with a number.
func (m *maker) file(root int) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	at := make([]int, len(m.objects))
	for i, body := range m.objects {
		at[i] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, body)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, root, xref)
	return b.Bytes()
}

// A line is a text at a place of a page, in points from its bottom left corner.
type line struct {
	x, y float64
	text string
}

func content(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "BT /F1 10 Tf %v %v Td (%s) Tj ET\n", l.x, l.y, strings.NewReplacer("(", `\(`, ")", `\)`).Replace(l.text))
	}
	return b.String()
}

// A sheet is a page, with more entries of its dictionary.
type sheet struct {
	lines  []line
	more   string
	pitch  bool   // its font is Courier, whose letters are 6 points wide
	hebrew bool   // its capital letters are the Hebrew ones of alphabets
	drawn  string // what is drawn below the lines; it may do the form /X
	loop   bool   // that form does itself, over and over
}

// toUnicode is what the capital letters of a font are. Its at sign is a ligature of lam and
// alef.
func toUnicode(letters alphabet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "1 begincodespacerange <00> <FF> endcodespacerange\n%d beginbfchar\n<40> <06440627>\n", 1+len(letters))
	for i, c := range letters {
		fmt.Fprintf(&b, "<%02X> <%04X>\n", 'A'+i, c)
	}
	b.WriteString("endbfchar")
	return fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", b.Len(), b.String())
}

// mediaBox returns more entries of a page with its size, if they do not say it.
func mediaBox(more string) string {
	if strings.Contains(more, "/MediaBox") {
		return more
	}
	return "/MediaBox [0 0 600 800] " + more
}

// makeFile returns a file with some pages, and with more entries of its catalogue.
func makeFile(catalogue string, sheets ...sheet) []byte {
	m := new(maker)
	root := m.add("") // set below
	tree := m.add("")
	latin := m.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	courier := m.add("<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>")
	part := "40 660 60 20 re 100 660 40 20 re 40 680 60 20 re 100 680 40 20 re S\n" + content([]line{{44, 686, "Part"}, {104, 686, "Qty"}, {44, 666, "Bolt"}, {104, 666, "2"}})
	form := m.add(fmt.Sprintf("<< /Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /Font << /F1 %d 0 R >> >> /Length %d >>\nstream\n%s\nendstream", latin, len(part), part))
	endless := m.add("")
	m.objects[endless-1] = fmt.Sprintf("<< /Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /XObject << /X %d 0 R >> >> /Length 5 >>\nstream\n/X Do\nendstream", endless)
	var kids []string
	for _, s := range sheets {
		form := form
		if s.loop {
			form = endless
		}
		font := latin
		if s.pitch {
			font = courier
		}
		if s.hebrew {
			letters := m.add(toUnicode(alphabets["Hebrew"]))
			font = m.add(fmt.Sprintf("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode %d 0 R >>", letters))
		}
		c := s.drawn + content(s.lines)
		stream := m.add(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(c), c))
		page := m.add(fmt.Sprintf("<< /Type /Page /Parent %d 0 R /Contents %d 0 R /Resources << /Font << /F1 %d 0 R >> /XObject << /X %d 0 R >> >> %s >>", tree, stream, font, form, mediaBox(s.more)))
		kids = append(kids, fmt.Sprintf("%d 0 R", page))
	}
	m.objects[root-1] = fmt.Sprintf("<< /Type /Catalog /Pages %d 0 R %s >>", tree, catalogue)
	m.objects[tree-1] = fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(kids), strings.Join(kids, " "))
	return m.file(root)
}

// makeUnmeasured returns a file of one page with text objects in a Chinese font that is not
// embedded: of their glyphs no outline is known.
func makeUnmeasured(texts ...[]byte) []byte {
	m := new(maker)
	root := m.add("<< /Type /Catalog /Pages 2 0 R >>")
	m.add("<< /Type /Pages /Count 1 /Kids [3 0 R] >>")
	m.add("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>")
	var c strings.Builder
	for i, text := range texts {
		fmt.Fprintf(&c, "BT /F1 14 Tf 60 %d Td <%x> Tj ET\n", 700-20*i, text)
	}
	m.add(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", c.Len(), c.String()))
	m.add("<< /Type /Font /Subtype /Type0 /BaseFont /SimSun /Encoding /UniGB-UCS2-H /DescendantFonts [6 0 R] >>")
	m.add("<< /Type /Font /Subtype /CIDFontType2 /BaseFont /SimSun /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> /FontDescriptor 7 0 R /DW 1000 >>")
	m.add("<< /Type /FontDescriptor /FontName /SimSun /Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >>")
	return m.file(root)
}
