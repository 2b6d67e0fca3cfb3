package ooxml_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/internal/zipmake"
	"github.com/coditect/mapreduce/internal/document/ooxml"
)

const w = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"`

// body returns a document with a body and further entries below word/.
func body(t testing.TB, xml string, more ...zipmake.File) []byte {
	files := []zipmake.File{
		{Name: "[Content_Types].xml", Content: `<Types/>`},
		{Name: "word/document.xml", Content: `<?xml version="1.0"?><w:document ` + w + `><w:body>` + xml + `</w:body></w:document>`},
	}
	for _, f := range more {
		f.Name = "word/" + f.Name
		files = append(files, f)
	}
	return zipmake.Zip(t, files...)
}

func p(text string) string { return `<w:p><w:r><w:t>` + text + `</w:t></w:r></w:p>` }

// run is one whose characters have a property.
func run(property, text string) string {
	return `<w:r><w:rPr>` + property + `</w:rPr><w:t xml:space="preserve">` + text + `</w:t></w:r>`
}

const (
	raised  = `<w:vertAlign w:val="superscript"/>`
	lowered = `<w:vertAlign w:val="subscript"/>`
	area    = `<m:oMath><m:r><m:t>A=π</m:t></m:r><m:sSup><m:e><m:r><w:rPr/><m:t>r</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:oMath>`
)

func item(level, list, text string) string {
	return `<w:p><w:pPr><w:numPr><w:ilvl w:val="` + level + `"/><w:numId w:val="` + list + `"/></w:numPr></w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
}

var numbering = zipmake.File{Name: "numbering.xml", Content: `<w:numbering ` + w + `>
<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerRoman"/><w:lvlText w:val="%1.%2"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="·"/></w:lvl></w:abstractNum>
<w:num w:numId="5"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="6"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="7"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="4"/></w:lvlOverride></w:num></w:numbering>`}

var styles = zipmake.File{Name: "styles.xml", Content: `<w:styles ` + w + `>
<w:style w:styleId="H1"><w:name w:val="heading 1"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>
<w:style w:styleId="Mine"><w:basedOn w:val="H1"/></w:style>
<w:style w:styleId="T"><w:name w:val="Title"/></w:style>
<w:style w:styleId="Power"><w:rPr><w:vertAlign w:val="superscript"/></w:rPr></w:style><w:style w:styleId="MyPower"><w:basedOn w:val="Power"/></w:style>
<w:style w:styleId="Loop"><w:basedOn w:val="Loop"/></w:style>
<w:style w:styleId="Clause"><w:pPr><w:outlineLvl w:val="1"/><w:numPr><w:numId w:val="5"/></w:numPr></w:pPr></w:style></w:styles>`}

func TestText(t *testing.T) {
	styled := func(style, text string) string {
		return `<w:p><w:pPr><w:pStyle w:val="` + style + `"/></w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
	}
	for _, test := range []struct {
		name, body string
		more       []zipmake.File
		want       string
	}{
		{"paragraphs", p("one") + p("") + p("two &amp; three"), nil, "one\n\ntwo & three\n"},
		{"runs, tabs and lines", `<w:p><w:r><w:t>a</w:t><w:tab/><w:t xml:space="preserve"> b</w:t><w:br/><w:t>c</w:t></w:r><w:hyperlink><w:r><w:t>d</w:t><w:noBreakHyphen/><w:t>e</w:t></w:r></w:hyperlink></w:p>`, nil, "a\t b\ncd-e\n"},
		{"headings", styled("T", "Whole") + styled("Mine", "Part") + p("x") + styled("Loop", "y"), []zipmake.File{styles}, "# Whole\n\n# Part\n\nx\ny\n"},
		{"numbered headings", styled("Clause", "Terms") + p("x") + styled("Clause", "Price"), []zipmake.File{styles, numbering}, "## 1. Terms\n\nx\n\n## 2. Price\n"},
		{
			"lists", item("0", "5", "a") + item("1", "5", "b") + item("1", "5", "c") + item("0", "5", "d") + item("1", "5", "e") + item("0", "6", "f") + item("0", "7", "g") + item("0", "0", "h"),
			[]zipmake.File{numbering},
			"1. a\n  1.i b\n  1.ii c\n2. d\n  2.i e\n- f\n4. g\n\nh\n",
		},
		{
			"changes", `<w:p><w:r><w:t>The </w:t></w:r><w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:moveFrom><w:r><w:t>gone</w:t></w:r></w:moveFrom><w:moveTo><w:r><w:t> one</w:t></w:r></w:moveTo></w:p>` +
				`<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t>joined </w:t></w:r></w:p>` + p("line"),
			nil, "The new one\njoined line\n",
		},
		{"hidden", `<w:p><w:r><w:t>seen</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r><w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t> too</w:t></w:r></w:p>`, nil, "seen too\n"},
		{
			"raised and lowered", `<w:p>` + run("", "H") + run(lowered, "2") + run("", "O: 10") + run(raised, "-") + run(raised, "6") + run("", " m") + run(raised, "2") + run("", ", 1") + run(raised, "st") + run("", ", 10") + run(raised, "0.5") + `</w:p>`,
			nil, "H₂O: 10⁻⁶ m², 1st, 10^0.5\n",
		},
		{
			"raised by styles", `<w:p>` + run("", "10") + run(`<w:rStyle w:val="MyPower"/>`, "6") + run(`<w:rStyle w:val="Power"/><w:vertAlign w:val="baseline"/>`, "7") + run(`<w:rStyle w:val="None"/>`, "8") + `</w:p>`,
			[]zipmake.File{styles},
			"10⁶78\n",
		},
		{"raised and hidden", `<w:p>` + run("", "10") + run(raised, "2") + run(raised+`<w:vanish/>`, "3") + run(raised+`<w:rPrChange><w:rPr>`+lowered+`</w:rPr></w:rPrChange>`, "4") + `</w:p>`, nil, "10²⁴\n"},
		{
			"raised references", `<w:p>` + run("", "25 m") + run(raised, "2") + `<w:r><w:rPr>` + raised + `</w:rPr><w:footnoteReference w:id="2"/></w:r></w:p>`,
			[]zipmake.File{{Name: "footnotes.xml", Content: `<w:footnotes ` + w + `><w:footnote w:id="2">` + p("proof") + `</w:footnote></w:footnotes>`}},
			"25 m²[^1]\n\n[^1]: proof\n",
		},
		{"equations", `<w:p><w:r><w:t xml:space="preserve">where </w:t></w:r>` + area + area + `<w:r><w:t>.</w:t></w:r></w:p>`, nil, "where A=πr² A=πr².\n"},
		{"equations on lines", `<w:p><w:r><w:t>so</w:t></w:r><m:oMathPara><m:oMathParaPr/>` + area + area + `</m:oMathPara><w:r><w:t>holds</w:t></w:r></w:p>`, nil, "so\nA=πr²\nA=πr²\nholds\n"},
		{"equations in tables", `<w:tbl><w:tr><w:tc>` + p("area") + `</w:tc><w:tc><w:p><m:oMathPara>` + area + `</m:oMathPara></w:p></w:tc></w:tr></w:tbl>`, nil, "| area | A=πr² |\n| --- | --- |\n"},
		{
			"runs of equations", `<w:p><m:oMath><m:f><m:num><m:r><m:t>a</m:t><w:sym w:char="2603"/></m:r></m:num><m:den><w:ins><m:r><m:t>b</m:t></m:r></w:ins><w:del><m:r><m:t>c</m:t></m:r></w:del></m:den></m:f></m:oMath></w:p>`,
			nil, "(a☃)/b\n",
		},
		{"fields", `<w:p><w:r><w:fldChar/><w:instrText>PAGEREF x</w:instrText></w:r><w:fldSimple w:instr="DATE"><w:r><w:t>today</w:t></w:r></w:fldSimple></w:p>`, nil, "today\n"},
		{"symbols", `<w:p><w:r><w:sym w:char="F041"/><w:sym w:char="2603"/><w:sym w:char="d800"/><w:sym w:char="x"/></w:r></w:p>`, nil, "A☃\n"},
		{
			"text boxes", `<w:p><w:r><w:t>around</w:t></w:r><w:r><AlternateContent><Choice><w:txbxContent>` + p("boxed") + `</w:txbxContent></Choice><Fallback><w:txbxContent>` + p("boxed") + `</w:txbxContent></Fallback></AlternateContent><w:t> it</w:t></w:r></w:p>`,
			nil, "around it\nboxed\n",
		},
		{
			"notes", `<w:p><w:r><w:t>claim</w:t><w:footnoteReference w:id="2"/><w:endnoteReference w:id="2"/><w:commentReference w:id="0"/><w:footnoteReference w:id="2"/><w:footnoteReference w:id="9"/></w:r></w:p>`,
			[]zipmake.File{
				{Name: "footnotes.xml", Content: `<w:footnotes ` + w + `><w:footnote w:type="separator" w:id="0"><w:p/></w:footnote><w:footnote w:id="2">` + p("proof") + p("more") + `</w:footnote></w:footnotes>`},
				{Name: "endnotes.xml", Content: `<w:endnotes ` + w + `><w:endnote w:id="2">` + p("end") + `</w:endnote></w:endnotes>`},
				{Name: "comments.xml", Content: `<w:comments ` + w + `><w:comment w:id="0" w:author="Ann" w:date="2024-03-04T05:06:07Z">` + p("really?") + `</w:comment></w:comments>`},
			},
			"claim[^1][^2][^1]\n\n[^1]: proof more\n[^2]: end\nComment by Ann, 2024-03-04: really?\n",
		},
		{
			"margins", p("text"),
			[]zipmake.File{
				{Name: "header1.xml", Content: `<w:hdr ` + w + `>` + p("ACME Ltd") + `</w:hdr>`},
				{Name: "header2.xml", Content: `<w:hdr ` + w + `>` + p("ACME Ltd") + `</w:hdr>`},
				{Name: "footer1.xml", Content: `<w:ftr ` + w + `>` + p("12") + `</w:ftr>`},
				{Name: "footer2.xml", Content: `<w:ftr ` + w + `>` + p("VAT 7") + `</w:ftr>`},
				{Name: "footer3.xml", Content: `<broken`},
			},
			"ACME Ltd\ntext\nVAT 7\n",
		},
		{
			"tables", p("x") + `<w:tbl><w:tr><w:tc>` + p("A|B") + `</w:tc><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>` + p("wide") + `</w:tc></w:tr>` +
				`<w:tr><w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>` + p("tall") + p("er") + `</w:tc><w:tc>` + p("1") + `</w:tc><w:sdt><w:sdtContent><w:tc>` + p("2") + `</w:tc></w:sdtContent></w:sdt></w:tr>` +
				`<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc><w:tc><w:tbl><w:tr><w:tc>` + p("in") + `</w:tc><w:tc>` + p("ner") + `</w:tc></w:tr></w:tbl><w:p/></w:tc></w:tr>` +
				`<w:tr><w:trPr><w:del/></w:trPr><w:tc>` + p("deleted") + `</w:tc></w:tr></w:tbl>` + p("y"),
			nil, "x\n\n| A\\|B | wide | wide |\n| --- | --- | --- |\n| tall er | 1 | 2 |\n| tall er | in ner |  |\n\ny\n",
		},
		{
			"a head of two rows, the second of which is not said to be one",
			`<w:tbl><w:tr><w:trPr><w:tblHeader/></w:trPr><w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>` + p("Part") + `</w:tc><w:tc>` + p("Net") + `</w:tc></w:tr>` +
				`<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc><w:tc>` + p("EUR") + `</w:tc></w:tr>` +
				`<w:tr><w:tc>` + p("Bolt") + `</w:tc><w:tc>` + p("1") + `</w:tc></w:tr></w:tbl>`,
			nil, "| Part | Net |\n| Part | EUR |\n| --- | --- |\n| Bolt | 1 |\n",
		},
		{
			"tables of values in tables", `<w:tbl><w:tr><w:tc>` + p("a") + `<w:tbl><w:tr><w:tc>` + p("k") + `</w:tc><w:tc>` + p("v") + `</w:tc></w:tr><w:tr><w:tc>` + p("x") + `</w:tc><w:tc>` + p("1") +
				`</w:tc></w:tr></w:tbl><w:p/></w:tc><w:tc>` + p("b") + `</w:tc></w:tr></w:tbl>`, nil, "| a | b |\n| --- | --- |\n\n| k | v |\n| --- | --- |\n| x | 1 |\n",
		},
		{"a frame", `<w:tbl><w:tr><w:tc>` + p("one") + p("two") + `</w:tc></w:tr></w:tbl>`, nil, "one\ntwo\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := zipmake.Parse(t, ooxml.DocxFormat(ooxml.Pictures{}), "a.docx", body(t, test.body, test.more...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	d, err := zipmake.Parse(t, ooxml.DocxFormat(ooxml.Pictures{}), "", body(t, p("one")+`<w:tbl><w:tr><w:tc>`+p("two")+`</w:tc><w:tc>`+p("three")+`</w:tc></w:tr></w:tbl>`+p("four")))
	if err != nil {
		t.Fatal(err)
	}
	for i, word := range []string{"one", "two", "three", "four"} {
		at := strings.Index(d.Text, word)
		if l := d.Layout.Locate(at, at+len(word)); l == nil || l.Paragraph != i+1 {
			t.Errorf("%q is at %+v, want paragraph %d", word, l, i+1)
		}
	}
}

func TestRefused(t *testing.T) {
	deep := strings.Repeat("<w:sdt>", 300) + strings.Repeat("</w:sdt>", 300)
	tables := strings.Repeat("<w:tbl><w:tr><w:tc>", 30) + strings.Repeat("</w:tc></w:tr></w:tbl>", 30)
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"cut off", body(t, p("one"))[:200], "damaged"},
		{"no text", body(t, ""), "no text"},
		{"no entry", zipmake.Zip(t, zipmake.File{Name: "word/x.xml", Content: "<x/>"}), "it lacks word/document.xml"},
		{"broken XML", body(t, "<w:p>"), "word/document.xml: XML syntax error"},
		{"entities", zipmake.Zip(t, zipmake.File{Name: "word/document.xml", Content: `<!DOCTYPE x [<!ENTITY a "aaaa">]><w:document ` + w + `><w:body>` + p("&a;") + `</w:body></w:document>`}), "invalid character entity &a;"},
		{"deep", body(t, deep), "more than 256 elements within each other"},
		{"tables in tables", body(t, tables), "more than 20 tables within each other"},
		{"cells before rows", body(t, "<w:tbl>"+strings.Repeat(`<w:tr><w:trPr><w:gridBefore w:val="1000"/></w:trPr></w:tr>`, 15_000)+"</w:tbl>"), "more than 4000000 cells"},
		{"cells that span", body(t, "<w:tbl>"+strings.Repeat(`<w:tr><w:tc><w:tcPr><w:gridSpan w:val="1000"/></w:tcPr></w:tc></w:tr>`, 10_000)+"</w:tbl>"), "more than 4000000 cells"},
		{"expands", body(t, strings.Repeat(p("xxxxxxxxxxxxxxxx"), 100_000)), "expands to more than 300 times its size"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := zipmake.Parse(t, ooxml.DocxFormat(ooxml.Pictures{}), "a.docx", test.data)
			if refused, ok := errors.AsType[*document.RefusedError](err); !ok || !strings.Contains(refused.Reason, test.want) {
				t.Errorf("got %v, want one that refuses for %q", err, test.want)
			}
		})
	}
}

// TestMainPart reads a document whose text is in an entry of another name.
func TestMainPart(t *testing.T) {
	data := zipmake.Zip(t,
		zipmake.File{Name: "_rels/.rels", Content: `<Relationships><Relationship Type="http://x/officeDocument" Target="/word/document2.xml"/></Relationships>`},
		zipmake.File{Name: "word/document2.xml", Content: `<w:document ` + w + `><w:body>` + p("found") + `</w:body></w:document>`})
	d, err := zipmake.Parse(t, ooxml.DocxFormat(ooxml.Pictures{}), "", data)
	if err != nil || d.Text != "found\n" {
		t.Errorf("got %+v, %v", d, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(body(f, p("one")+item("0", "5", "a")+`<w:tbl><w:tr><w:tc>`+p("x")+`</w:tc><w:tc>`+p("y")+`</w:tc></w:tr></w:tbl>`, numbering, styles))
	f.Add([]byte(`<w:p>` + run("", "10") + run(raised, "6") + `<m:oMathPara>` + area + `</m:oMathPara></w:p>`))
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, data []byte) {
		// Packed bytes hide the text from the fuzzer, so it may write the entry itself.
		for _, data := range [][]byte{data, body(t, string(data), numbering, styles)} {
			if _, err := zipmake.Parse(t, ooxml.DocxFormat(ooxml.Pictures{}), "a.docx", data); err != nil && !errors.As(err, new(*document.RefusedError)) {
				t.Errorf("got %v, which does not refuse the file", err)
			}
		}
	})
}
