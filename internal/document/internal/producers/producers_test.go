// Package producers tests that documents of the programs that people write them with have
// the text that was written.
package producers_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/compound"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/mail"
	"github.com/coditect/mapreduce/internal/document/ooxml"
	"github.com/coditect/mapreduce/internal/document/opendocument"
	"github.com/coditect/mapreduce/internal/document/pdf"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/internal/document/rtf"
	"github.com/coditect/mapreduce/internal/document/zipfile"
)

// formats returns the formats of office programs.
func formats(t testing.TB) *document.Registry {
	t.Helper()
	r, err := document.NewRegistry(plain.TextFormat(), html.Format(), ooxml.DocxFormat(ooxml.Pictures{}), ooxml.XlsxFormat(), ooxml.PptxFormat(ooxml.Pictures{}), opendocument.Format(),
		rtf.Format(), html.EpubFormat(), plain.CSVFormat(), mail.Format(), mail.MailboxFormat(), compound.Format(), zipfile.ZipFormat(), zipfile.TarFormat())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// convert has LibreOffice convert a file to a format, and returns the result. It skips
// the test where LibreOffice is missing.
func convert(t *testing.T, name, content, to string) []byte {
	t.Helper()
	program, err := exec.LookPath("soffice")
	if err != nil {
		t.Skip("LibreOffice is not installed: apt-get install libreoffice-writer libreoffice-calc libreoffice-impress")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program, "-env:UserInstallation=file://"+filepath.Join(dir, "profile"), "--headless", "--convert-to", to, "--outdir", dir, file)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("soffice: %v\n%s", err, out)
	}
	extension, _, _ := strings.Cut(to, ":")
	data, err := os.ReadFile(strings.TrimSuffix(file, filepath.Ext(file)) + "." + extension)
	if err != nil {
		t.Fatal(err)
	}
	if keep := os.Getenv("CODITECT_KEEP"); keep != "" {
		if err := os.WriteFile(filepath.Join(keep, name+"."+extension), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return data
}

// words returns the words of a text, without the marks of Markdown.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// f1 returns the F1 of the words of a text against those that it should have.
func f1(got, want []string) float64 {
	count := map[string]int{}
	for _, w := range want {
		count[w]++
	}
	common := 0
	for _, w := range got {
		if count[w] > 0 {
			count[w]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(got)+len(want))
}

// distance returns the edit distance of two texts in words, over the length of the longer.
func distance(got, want []string) float64 {
	row := make([]int, len(want)+1)
	for j := range row {
		row[j] = j
	}
	for i, g := range got {
		diagonal := row[0]
		row[0] = i + 1
		for j, w := range want {
			above := row[j+1]
			if g == w {
				row[j+1] = diagonal
			} else {
				row[j+1] = 1 + min(diagonal, above, row[j])
			}
			diagonal = above
		}
	}
	return float64(row[len(want)]) / float64(max(len(got), len(want)))
}

// TestTextsOfLibreOffice converts a document to each format that has one.
func TestTextsOfLibreOffice(t *testing.T) {
	parts := source()
	flat := flatText(parts)
	var tables [][][]string
	for _, p := range parts {
		if p.table != nil {
			tables = append(tables, p.table)
		}
	}
	for _, to := range libreOfficeFormats(t, []string{"docx", "odt", "rtf", "epub", "html"}) {
		t.Run(to, func(t *testing.T) {
			data := convert(t, "source.fodt", flat, to)
			started := time.Now()
			d, err := formats(t).Parse(t.Context(), document.Input{Name: "source", Content: bytes.NewReader(data)})
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(started)
			got, want := words(d.Text), words(sourceText(parts, to != "epub" && to != "html", to == "epub"))
			f, e := f1(got, want), distance(got, want)
			t.Logf("%s: %d words, F1 %.4f, edit distance %.4f, %d parts of layout, %v", to, len(got), f, e, len(d.Layout), took.Round(time.Millisecond))
			if f < 0.99 || e > 0.02 {
				t.Errorf("F1 %.4f, want 0.99; edit distance %.4f, want 0.02\n%s", f, e, cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")))
			}
			if to == "html" { // the text of a page has no marks, and tabs between cells
				checkRows(t, parts, d.Text)
				return
			}
			if diff := cmp.Diff(tables, markdownTables(d.Text)); diff != "" {
				t.Errorf("tables (-want +got):\n%s", diff)
			}
			for _, p := range parts {
				if to == "epub" && p.level > 1 {
					continue // LibreOffice makes paragraphs of them
				}
				if p.level > 0 && !strings.Contains(d.Text, "\n"+strings.Repeat("#", p.level)+" "+p.text+"\n") && !strings.HasPrefix(d.Text, "# "+p.text) {
					t.Errorf("there is no heading %q of level %d", p.text, p.level)
				}
			}
		})
	}
}

// TestPrintOfLibreOffice prints a document to PDF. A page has its notes at its end, so words
// are compared with them, and their order without them. Cells have tabs between them.
func TestPrintOfLibreOffice(t *testing.T) {
	libreOfficeFormats(t, nil)
	reader := pdf.New(pdf.Config{})
	defer func() {
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}()
	formats, err := document.NewRegistry(reader.Format())
	if err != nil {
		t.Fatal(err)
	}
	text := func(name string, parts []part) string {
		d, err := formats.Parse(t.Context(), document.Input{Name: name, Content: bytes.NewReader(convert(t, name+".fodt", flatText(parts), "pdf"))})
		if err != nil {
			t.Fatal(err)
		}
		return d.Text
	}
	noted := source()
	plain := slices.Clone(noted)
	for i := range plain {
		plain[i].text, plain[i].note = strings.TrimSuffix(plain[i].text, "^"), ""
	}
	f := f1(words(text("noted", noted)), words(sourceText(noted, true, false)))
	got := text("plain", plain)
	e := distance(words(got), words(sourceText(plain, true, false)))
	t.Logf("pdf: F1 %.4f, edit distance %.4f", f, e)
	if f < 0.99 || e > 0.02 {
		t.Errorf("F1 %.4f, want 0.99; edit distance %.4f, want 0.02\n%s", f, e, cmp.Diff(strings.Join(words(sourceText(plain, true, false)), "\n"), strings.Join(words(got), "\n")))
	}
	checkRows(t, plain, got)
}

// checkRows checks that each row of each table is in a text, with tabs between its cells. A
// cell may go on in lines below.
func checkRows(t *testing.T, parts []part, text string) {
	t.Helper()
	rows := 0
	for _, p := range parts {
		for _, row := range p.table {
			rows++
			var cells []string
			for _, cell := range row {
				cells = append(cells, strings.ReplaceAll(regexp.QuoteMeta(cell), " ", `\s+`))
			}
			if !regexp.MustCompile(`(?m)^ ?` + strings.TrimRight(strings.Join(cells, `\t`), `\t`) + `$`).MatchString(text) {
				t.Errorf("there is no row %q", row)
			}
		}
	}
	if rows == 0 {
		t.Error("there are no tables")
	}
}

// TestSheetsOfLibreOffice converts a spreadsheet to each format that has one.
func TestSheetsOfLibreOffice(t *testing.T) {
	rows := sheetRows()
	var want [][]string
	for _, row := range rows {
		var cells []string
		for _, c := range row {
			cells = append(cells, c.want)
		}
		want = append(want, cells)
	}
	flat := flatSheets([]string{"Sales & more", "Ümsätze"}, rows)
	for _, to := range libreOfficeFormats(t, []string{"xlsx", "ods"}) {
		t.Run(to, func(t *testing.T) {
			d, err := formats(t).Parse(t.Context(), document.Input{Content: bytes.NewReader(convert(t, "sheets.fods", flat, to))})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][][]string{want, want}, markdownTables(d.Text)); diff != "" {
				t.Errorf("tables (-want +got):\n%s", diff)
			}
			for _, line := range []string{"## Sales & more", "Overview of Sales & more", "## Ümsätze"} {
				if !strings.Contains(d.Text, line+"\n") {
					t.Errorf("there is no line %q", line)
				}
			}
			at := strings.Index(d.Text, "Käufer 3 ")
			if l := d.Layout.Locate(at, at+9); l == nil || l.Sheet != "Sales & more" || l.Cell != "A7" {
				t.Errorf("the name in the fourth row is at %+v, want A7", l)
			}
		})
	}
}

// TestSlidesOfLibreOffice converts a presentation to each format that has one.
func TestSlidesOfLibreOffice(t *testing.T) {
	all := slides()
	var source strings.Builder
	var tables [][][]string
	for _, s := range all {
		fmt.Fprintln(&source, s.title, strings.Join(s.points, "\n"))
		if s.table != nil {
			tables = append(tables, s.table)
			for _, row := range s.table {
				fmt.Fprintln(&source, strings.Join(row, "\n"))
			}
		}
		fmt.Fprintln(&source, "Notes", s.notes)
	}
	want := words(source.String())
	flat := flatSlides(all)
	for _, to := range libreOfficeFormats(t, []string{"pptx", "odp"}) {
		t.Run(to, func(t *testing.T) {
			d, err := formats(t).Parse(t.Context(), document.Input{Content: bytes.NewReader(convert(t, "slides.fodp", flat, to))})
			if err != nil {
				t.Fatal(err)
			}
			got := words(d.Text)
			f, e := f1(got, want), distance(got, want)
			t.Logf("%s: %d words, F1 %.4f, edit distance %.4f", to, len(got), f, e)
			if f < 0.99 || e > 0.02 {
				t.Errorf("F1 %.4f, want 0.99; edit distance %.4f, want 0.02\n%s", f, e, cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")))
			}
			if diff := cmp.Diff(tables, markdownTables(d.Text)); diff != "" {
				t.Errorf("tables (-want +got):\n%s", diff)
			}
			at := strings.Index(d.Text, "Point 1 of 4")
			if l := d.Layout.Locate(at, at+5); l == nil || l.Slide != 5 {
				t.Errorf("a point of the fifth slide is at %+v", l)
			}
		})
	}
}

// libreOfficeFormats returns the formats to test: of short tests the first alone, as each
// conversion takes seconds.
func libreOfficeFormats(t *testing.T, all []string) []string {
	t.Helper()
	if os.Getenv("CODITECT_LIBREOFFICE") == "" {
		t.Skip("CODITECT_LIBREOFFICE is not set: `make documents` sets it")
	}
	return all
}
