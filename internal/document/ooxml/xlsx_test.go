package ooxml_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/internal/zipmake"
	"github.com/coditect/mapreduce/internal/document/ooxml"
)

// book returns a workbook of one sheet with rows.
func book(t testing.TB, rows string, more ...zipmake.File) []byte {
	return zipmake.Zip(t, append([]zipmake.File{
		{Name: "[Content_Types].xml", Content: "<Types/>"},
		{Name: "xl/workbook.xml", Content: `<workbook xmlns:r="r"><sheets><sheet name="S" r:id="rId1"/><sheet name="Chart" r:id="rId2"/></sheets></workbook>`},
		{Name: "xl/_rels/workbook.xml.rels", Content: `<R><R Id="rId1" Target="worksheets/sheet1.xml"/><R Id="rId2" Target="chartsheets/sheet1.xml"/></R>`},
		{Name: "xl/worksheets/sheet1.xml", Content: `<worksheet><cols/><sheetData>` + rows + `</sheetData></worksheet>`},
		{Name: "xl/sharedStrings.xml", Content: `<sst><si><t>Name</t></si><si><r><t>ri</t></r><r><rPr/><t>ch</t></r><rPh><t>ritchi</t></rPh></si><si/></sst>`},
		{Name: "xl/styles.xml", Content: `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="dd\.mm\.yyyy"/><numFmt numFmtId="165" formatCode="#,##0.00&quot; days&quot;"/><numFmt numFmtId="166" formatCode="[h]:mm"/></numFmts>` +
			`<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="9"/><xf numFmtId="14"/><xf numFmtId="22"/><xf numFmtId="166"/><xf numFmtId="1"/></cellXfs></styleSheet>`},
	}, more...)...)
}

func TestValues(t *testing.T) {
	for _, test := range []struct{ name, cell, want string }{
		{"shared", `<c t="s"><v>0</v></c>`, "Name"},
		{"shared, of no value", `<c t="s"><v/></c>`, ""},
		{"rich", `<c t="s"><v>1</v></c>`, "rich"},
		{"inline", `<c t="inlineStr"><is><t>in</t><t>line</t></is></c>`, "inline"},
		{"raised and lowered", `<c t="inlineStr"><is><r><t>CO</t></r><r><rPr><vertAlign val="subscript"/></rPr><t>2</t></r><r><t> per m</t></r><r><rPr><vertAlign val="superscript"/></rPr><t>2</t></r><r><t> 1</t></r></is></c>`, "CO₂ per m² 1"},
		{"escaped", `<c t="inlineStr"><is><t>a_x000D_
b_x0009_c_x000D_d_x000D__x000A_e_x005F_x000D_ _xD83D__xDE00_ _x00e9_ _x12_ _xyz</t></is></c>`, "a b c d e_x000D_ 😀 é _x12_ _xyz"},
		{"escaped result", `<c t="str"><f>A1</f><v>a_x000D_b</v></c>`, "a b"},
		{"formula", `<c t="str"><f>A1&amp;"x"</f><v>result</v></c>`, "result"},
		{"external reference", `<c><f>[1]Sheet1!$A$1</f><v>5</v></c>`, "5"},
		{"macro", `<c t="str"><f>HYPERLINK("http://example.org/","x")</f><v>x</v></c>`, "x"},
		{"error", `<c t="e"><v>#DIV/0!</v></c>`, "#DIV/0!"},
		{"true", `<c t="b"><v>1</v></c>`, "TRUE"},
		{"ISO date", `<c t="d"><v>2024-03-04</v></c>`, "2024-03-04"},
		{"number", `<c><v>1234.5</v></c>`, "1234.5"},
		{"noise", `<c><v>0.30000000000000004</v></c>`, "0.3"},
		{"large", `<c><v>1e20</v></c>`, "1e+20"},
		{"date", `<c s="1"><v>45355</v></c>`, "04.03.2024 (=2024-03-04)"},
		{"built-in date", `<c s="4"><v>45355</v></c>`, "03-04-24 (=2024-03-04)"},
		{"date and time", `<c s="5"><v>45355.5</v></c>`, "3/4/24 12:00 (=2024-03-04T12:00:00)"},
		{"hours", `<c s="6"><v>1.25</v></c>`, "30:00 (=PT30H)"},
		{"negative date", `<c s="1"><v>-5</v></c>`, "-5"},
		{"grouped", `<c s="2"><v>1234.5</v></c>`, "1,234.50 days"},
		{"rounded", `<c s="2"><v>1234.5678</v></c>`, "1,234.57 days (=1234.5678)"},
		{"share", `<c s="3"><v>0.25</v></c>`, "25% (=0.25)"},
		{"rounded share", `<c s="3"><v>0.256</v></c>`, "26% (=0.256)"},
		{"no such style", `<c s="99"><v>7</v></c>`, "7"},
		{"nonsense", `<c><v>abc</v></c>`, "abc"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := zipmake.Parse(t, ooxml.XlsxFormat(), "", book(t, `<row r="1"><c t="s"><v>0</v></c><c t="s"><v>1</v></c></row><row r="2">`+test.cell+`<c><v>1</v></c></row>`))
			if err != nil {
				t.Fatal(err)
			}
			want := "## S\n\n| Name | rich |\n| --- | --- |\n| " + test.want + " | 1 |\n"
			if diff := cmp.Diff(want, d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestXlsxPlaces(t *testing.T) {
	rows := `<row r="2"><c r="B2" t="inlineStr"><is><t>The title</t></is></c></row><row><c r="B3"><v>1</v></c><c><v>2</v></c></row><row r="4"><c r="C4"><v>31</v></c></row><row r="9"><c r="AB9"><v>42</v></c><c r="AC9"><v>43</v></c></row>`
	comments := []zipmake.File{
		{Name: "xl/worksheets/_rels/sheet1.xml.rels", Content: `<R><R Id="x" Type="a/comments" Target="../comments1.xml"/></R>`},
		{Name: "xl/comments1.xml", Content: `<comments><authors/><commentList><comment ref="C4"><text><r><t>why </t></r><r><t>31?</t></r></text></comment></commentList></comments>`},
	}
	d, err := zipmake.Parse(t, ooxml.XlsxFormat(), "", book(t, rows, comments...))
	if err != nil {
		t.Fatal(err)
	}
	want := "## S\n\nThe title\n\n| 1 | 2 |\n| --- | --- |\n|  | 31 |\n\n| 42 | 43 |\n| --- | --- |\n\nComment on S!C4: why 31?\n"
	if diff := cmp.Diff(want, d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for word, cell := range map[string]string{"The title": "B2", "31": "C4", "42": "AB9"} {
		at := strings.Index(d.Text, word)
		if l := d.Layout.Locate(at, at+1); l == nil || l.Sheet != "S" || l.Cell != cell {
			t.Errorf("%q is at %+v, want %s", word, l, cell)
		}
	}
}

// TestSmallLetters: a cell is in its column also if the file writes that in small letters.
func TestSmallLetters(t *testing.T) {
	rows := `<row r="1"><c r="a1"><v>1</v></c><c r="c1"><v>3</v></c><c r="D1"><v>4</v></c></row><row r="2"><c r="B2"><v>5</v></c><c r="d2"><v>7</v></c></row>`
	d, err := zipmake.Parse(t, ooxml.XlsxFormat(), "", book(t, rows))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("## S\n\n| 1 |  | 3 | 4 |\n| --- | --- | --- | --- |\n|  | 5 |  | 7 |\n", d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWorkbookElsewhere: the relations of a file lead to its workbook, and those of the workbook to
// its strings, whatever their entries are called.
func TestWorkbookElsewhere(t *testing.T) {
	for name, names := range map[string][5]string{
		"other folder":    {"_rels/.rels", "my/book.xml", "my/_rels/book.xml.rels", "my/worksheets/a.xml", "my/texts.xml"},
		"no folder":       {"_rels/.rels", "my/book.xml", "my/_rels/book.xml.rels", "a.xml", "my/texts.xml"},
		"other spellings": {`_rels\.rels`, `MY\Book.xml`, `my\_rels\book.xml.rels`, `my\Worksheets\A.xml`, `my\TEXTS.xml`},
	} {
		t.Run(name, func(t *testing.T) {
			target := "worksheets/a.xml"
			if name == "no folder" {
				target = "/a.xml"
			}
			data := zipmake.Zip(t,
				zipmake.File{Name: names[0], Content: `<R><R Id="a" Type="x/officeDocument" Target="my/book.xml"/></R>`},
				zipmake.File{Name: names[1], Content: `<workbook xmlns:r="r"><sheets><sheet name="S" r:id="a"/></sheets></workbook>`},
				zipmake.File{Name: names[2], Content: `<R><R Id="a" Type="x/worksheet" Target="` + target + `"/><R Id="b" Type="x/sharedStrings" Target="/my/texts.xml"/></R>`},
				zipmake.File{Name: names[3], Content: `<worksheet><sheetData><row><c t="s"><v>0</v></c><c><v>1</v></c></row></sheetData></worksheet>`},
				zipmake.File{Name: names[4], Content: `<sst><si><t>Bolt</t></si></sst>`})
			d, err := zipmake.Parse(t, ooxml.XlsxFormat(), "", data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("## S\n\n| Bolt | 1 |\n| --- | --- |\n", d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLeftOver: relations go before the usual names of parts, under which a program may have left what
// was in the file before.
func TestLeftOver(t *testing.T) {
	const cells = `<worksheet><sheetData><row><c t="s"><v>0</v></c><c s="0"><v>1</v></c></row></sheetData></worksheet>`
	book := func(name string) string {
		return `<workbook xmlns:r="r"><sheets><sheet name="` + name + `" r:id="a"/></sheets></workbook>`
	}
	data := zipmake.Zip(t,
		zipmake.File{Name: "_rels/.rels", Content: `<R><R Id="a" Type="x/officeDocument" Target="xl/workbook2.xml"/></R>`},
		zipmake.File{Name: "xl/workbook.xml", Content: book("Old")}, zipmake.File{Name: "xl/workbook2.xml", Content: book("New")},
		zipmake.File{Name: "xl/_rels/workbook2.xml.rels", Content: `<R><R Id="a" Type="x/worksheet" Target="worksheets/a.xml"/><R Id="b" Type="x/sharedStrings" Target="texts.xml"/><R Id="c" Type="x/styles" Target="none.xml"/></R>`},
		zipmake.File{Name: "xl/worksheets/a.xml", Content: cells},
		zipmake.File{Name: "xl/sharedStrings.xml", Content: `<sst><si><t>Nut</t></si></sst>`}, zipmake.File{Name: "xl/texts.xml", Content: `<sst><si><t>Bolt</t></si></sst>`},
		zipmake.File{Name: "xl/styles.xml", Content: `<styleSheet><cellXfs><xf numFmtId="10"/></cellXfs></styleSheet>`}) // the usual one, as its relation leads nowhere
	d, err := zipmake.Parse(t, ooxml.XlsxFormat(), "", data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("## New\n\n| Bolt | 100.00% (=1) |\n| --- | --- |\n", d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTargets: sheets are found where relations have backslashes, and those that are nowhere are told of.
func TestTargets(t *testing.T) {
	const cells = `<worksheet><sheetData><row><c><v>1</v></c><c><v>2</v></c></row></sheetData></worksheet>`
	data := zipmake.Zip(t,
		zipmake.File{Name: "xl/workbook.xml", Content: `<workbook xmlns:r="r"><sheets><sheet name="A" r:id="a"/><sheet name="B" r:id="b"/><sheet name="C" r:id="c"/><sheet name="D" r:id="d"/></sheets></workbook>`},
		zipmake.File{Name: "xl/_rels/workbook.xml.rels", Content: `<R><R Id="a" Type="x/worksheet" Target="worksheets\a.xml"/><R Id="b" Type="x/worksheet" Target="\xl\worksheets\b.xml"/><R Id="c" Type="x/worksheet" Target="worksheets/c.xml"/></R>`},
		zipmake.File{Name: "xl/worksheets/a.xml", Content: cells}, zipmake.File{Name: "xl/worksheets/b.xml", Content: cells})
	d, err := zipmake.Parse(t, ooxml.XlsxFormat(), "", data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("## A\n\n| 1 | 2 |\n| --- | --- |\n\n## B\n\n| 1 | 2 |\n| --- | --- |\n", d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`2 of 4 sheets are not in the file: first "C"`}, d.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestXlsxRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"binary", zipmake.Zip(t, zipmake.File{Name: "xl/workbook.bin"}), ".xlsb"},
		{"cut off", book(t, `<row><c><v>1`), "XML syntax error"},
		{"no such string", book(t, `<row><c t="s"><v>7</v></c></row>`), `the string "7" of 3`},
		{"column", book(t, `<row><c r="ZZZZZZZZZZ1"><v>7</v></c></row>`), "more than 16384 columns"},
		{"cells", book(t, strings.Repeat(`<row><c r="XFD1"><v>7</v></c></row>`, 300)), "more than 4000000 cells"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := zipmake.Parse(t, ooxml.XlsxFormat(), "", test.data)
			if refused, ok := errors.AsType[*document.RefusedError](err); !ok || !strings.Contains(refused.Reason, test.want) {
				t.Errorf("got %v, want one that refuses for %q", err, test.want)
			}
		})
	}
}

// TestWorkbookOfTheLibrary reads what excelize writes.
func TestWorkbookOfTheLibrary(t *testing.T) {
	f := excelize.NewFile()
	for i := range 50 {
		for k, v := range []any{fmt.Sprintf("name %d", i), i * 1000, true} {
			if err := f.SetCellValue("Sheet1", fmt.Sprintf("%c%d", 'A'+k, i+1), v); err != nil {
				t.Fatal(err)
			}
		}
	}
	b, err := f.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	d, err := zipmake.Parse(t, ooxml.XlsxFormat(), "", b.Bytes())
	if err != nil || !strings.Contains(d.Text, "| name 49 | 49000 | TRUE |\n") {
		t.Errorf("got %+v, %v", d, err)
	}
}

// TestMergedAndComputed reads merged cells, also those whose reference is damaged, and
// formulas whose result is not stored.
func TestMergedAndComputed(t *testing.T) {
	cell := func(text string) string { return `<c t="inlineStr"><is><t>` + text + `</t></is></c>` }
	rows := `<row r="1">` + cell("Year") + cell("Sold") + cell("") + `</row><row r="2">` + cell("") + cell("in") + cell("out") + `</row>` +
		`<row r="3"><c><v>2024</v></c><c><v>1</v></c><c><f>B3*2</f></c></row><row r="4"><c r="B4"><v>3</v></c><c r="C4" t="str"><f>B4&amp;""</f><v></v></c></row>`
	sheet := book(t, rows+`</sheetData><mergeCells><mergeCell ref="B1:C1"/><mergeCell ref="A1:A2"/><mergeCell ref="A3:A4"/><mergeCell ref="C9:A1"/><mergeCell ref="A1:"/></mergeCells><sheetData>`)
	d, err := zipmake.Parse(t, ooxml.XlsxFormat(), "", sheet)
	if err != nil {
		t.Fatal(err)
	}
	want := "## S\n\n| Year | Sold | Sold |\n| Year | in | out |\n| --- | --- | --- |\n| 2024 | 1 | =B3*2 |\n| 2024 | 3 |  |\n"
	if diff := cmp.Diff(want, d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "1 formula has no stored result") {
		t.Errorf("notes: %q", d.Notes)
	}
}

func FuzzXlsxParse(f *testing.F) {
	f.Add([]byte(`<row r="1"><c r="B1" t="s"><v>0</v></c></row>`), "0.00")
	f.Add([]byte(`<row><c s="1"><v>45355.25</v></c></row>`), "[$-409]d-mmm-yy;@")
	f.Fuzz(func(t *testing.T, rows []byte, format string) {
		style := zipmake.File{Name: "xl/styles.xml", Content: `<styleSheet><numFmts><numFmt numFmtId="200" formatCode="` + strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;").Replace(strings.ToValidUTF8(format, "")) + `"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="200"/></cellXfs></styleSheet>`}
		data := book(t, string(rows))
		if _, err := zipmake.Parse(t, ooxml.XlsxFormat(), "", data); err != nil && !errors.As(err, new(*document.RefusedError)) {
			t.Errorf("got %v, which does not refuse the file", err)
		}
		numbers := zipmake.Zip(t, style,
			zipmake.File{Name: "xl/workbook.xml", Content: `<workbook xmlns:r="r"><sheets><sheet name="S" r:id="rId1"/></sheets></workbook>`},
			zipmake.File{Name: "xl/_rels/workbook.xml.rels", Content: `<R><R Id="rId1" Target="worksheets/sheet1.xml"/></R>`},
			zipmake.File{Name: "xl/worksheets/sheet1.xml", Content: `<worksheet><sheetData><row><c s="1"><v>-1234.5678</v></c><c s="1"><v>45355.25</v></c></row></sheetData></worksheet>`})
		if _, err := zipmake.Parse(t, ooxml.XlsxFormat(), "", numbers); err != nil && !errors.As(err, new(*document.RefusedError)) {
			t.Errorf("got %v, which does not refuse the file", err)
		}
	})
}
