package pdf_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/document/pdf"
	"github.com/coditect/mapreduce/internal/document/recognise"
)

const contractText = "This agreement is made between the supplier and the customer and begins on the day of signature"

// makeLying returns a file of two pages, the first of which has a font whose map to characters
// shifts each letter by some, or has letters for private use from shift on.
func makeLying(shift int) []byte {
	m := new(maker)
	root := m.add("<< /Type /Catalog /Pages 2 0 R >>")
	m.add("<< /Type /Pages /Count 2 /Kids [5 0 R 6 0 R] >>")
	var b strings.Builder
	b.WriteString("1 begincodespacerange <00> <FF> endcodespacerange\n52 beginbfchar\n")
	for i := range 26 {
		small, large := 'a'+(i+shift)%26, 'A'+(i+shift)%26
		if shift >= 0xe000 {
			small, large = shift+32+i, shift+i
		}
		fmt.Fprintf(&b, "<%02X> <%04X>\n<%02X> <%04X>\n", 'a'+i, small, 'A'+i, large)
	}
	b.WriteString("endbfchar")
	m.add(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", b.Len(), b.String()))
	m.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	page := "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 7 0 R /Resources << /Font << /F1 %d 0 R >> >> >>"
	m.add(fmt.Sprintf(page, 8))
	m.add(fmt.Sprintf(page, 4))
	c := content(prose(50, 700, contractText, contractText, contractText))
	m.add(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(c), c))
	m.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 3 0 R >>")
	return m.file(root)
}

// TestFontsThatLie: a page whose text is that of no language is named, counts for little, and is
// read by OCR if there is a program.
func TestFontsThatLie(t *testing.T) {
	program := filepath.Join(t.TempDir(), "ocr.sh")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncat >/dev/null\necho what the page shows\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	seeing := pdf.New(pdf.Config{OCR: recognise.NewCommand([]string{program})})
	defer func() {
		if err := seeing.Close(); err != nil {
			t.Error(err)
		}
	}()
	for name, shift := range map[string]int{"a shifted map": 3, "another": 1, "letters for private use": 0xe000} {
		d := read(t, shared, makeLying(shift))
		if len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "the fonts of 1 of 2 pages") || !strings.Contains(d.Notes[0], "--ocr") || d.Confidence < 0.4 || d.Confidence > 0.6 {
			t.Errorf("%s: notes %q, confidence %v", name, d.Notes, d.Confidence)
		}
		d = read(t, seeing, makeLying(shift))
		if !strings.HasPrefix(d.Text, "what the page shows\n\nThis agreement") || len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "read by OCR") {
			t.Errorf("%s, with OCR: %q, notes %q", name, d.Text, d.Notes)
		}
	}
	if d := read(t, shared, makeLying(0)); len(d.Notes) > 0 || d.Confidence != 0 {
		t.Errorf("fonts that do not lie: notes %q, confidence %v", d.Notes, d.Confidence)
	}
}
