package opendocument_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/internal/zipmake"
	"github.com/coditect/mapreduce/internal/document/opendocument"
)

const namespaces = ` xmlns:office="o" xmlns:text="t" xmlns:table="ta" xmlns:draw="d" xmlns:style="s" xmlns:presentation="p" xmlns:dc="dc" xmlns:xlink="x"`

// file returns a file of a kind (text, spreadsheet, presentation) with a body and styles.
func file(t testing.TB, kind, body, styles string, more ...zipmake.File) []byte {
	return zipmake.Zip(t, append([]zipmake.File{
		{Name: "mimetype", Content: "application/vnd.oasis.opendocument." + kind, Stored: true},
		{Name: "content.xml", Content: `<office:document-content` + namespaces + `><office:automatic-styles>` + styles + `</office:automatic-styles><office:body><office:` + kind + `>` + body + `</office:` + kind + `></office:body></office:document-content>`},
	}, more...)...)
}

const listStyles = `<text:list-style style:name="N"><text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/><text:list-level-style-number text:level="2" style:num-format="I" style:num-suffix=")" text:display-levels="2" text:start-value="4"/></text:list-style>` +
	`<text:list-style style:name="B"><text:list-level-style-bullet text:level="1"/></text:list-style>`

func TestText(t *testing.T) {
	for _, test := range []struct{ name, body, want string }{
		{"white space", "<text:p> a\n  b<text:s/><text:s text:c=\"2\"/>c<text:tab/><text:span> d</text:span><text:line-break/>e </text:p><text:p/><text:p>f</text:p>", "a b   c\td\ne\n\nf\n"},
		{"headings", `<text:h text:outline-level="2">Part</text:h><text:p>x</text:p><text:h>Whole</text:h>`, "## Part\n\nx\n\n# Whole\n"},
		{
			"lists", `<text:list text:style-name="N" xml:id="one"><text:list-item><text:p>a</text:p><text:p>goes on</text:p><text:list><text:list-item><text:p>b</text:p></text:list-item></text:list></text:list-item></text:list>` +
				`<text:p>x</text:p><text:list text:continue-list="one"><text:list-item><text:p>c</text:p></text:list-item></text:list>` +
				`<text:list text:style-name="N"><text:list-item text:start-value="7"><text:p>d</text:p></text:list-item></text:list>` +
				`<text:list text:style-name="B"><text:list-item><text:p>e</text:p></text:list-item></text:list>`,
			"1. a\n  goes on\n  1.IV) b\n\nx\n\n2. c\n7. d\n- e\n",
		},
		{"changes", `<text:tracked-changes><text:changed-region><text:deletion><text:p>old</text:p></text:deletion></text:changed-region></text:tracked-changes><text:p>kept<text:change text:change-id="1"/></text:p>`, "kept\n"},
		{
			"notes", `<text:p>claim<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p>proof</text:p><text:p>more</text:p></text:note-body></text:note>` +
				`<office:annotation><dc:creator>Ann</dc:creator><dc:date>2024-03-04T05:06:07</dc:date><text:p>really?</text:p></office:annotation>.</text:p>`,
			"claim[^1].\n\n[^1]: proof more\nComment by Ann, 2024-03-04: really?\n",
		},
		{"titles", `<text:p>The <text:title>Plan</text:title>.<draw:frame><svg:title>a blue box</svg:title><svg:desc>seen from the left</svg:desc></draw:frame></text:p>`, "The Plan.\n"},
		{"text boxes", `<text:p>around<draw:frame><draw:text-box><text:p>boxed</text:p></draw:text-box></draw:frame> it</text:p>`, "around it\nboxed\n"},
		{
			"tables whose heads cover rows beside them", `<table:table><table:table-header-rows><table:table-row><table:table-cell table:number-rows-spanned="2"><text:p>Part</text:p></table:table-cell>` +
				`<table:table-cell><text:p>Net</text:p></table:table-cell></table:table-row></table:table-header-rows>` +
				`<table:table-row><table:covered-table-cell/><table:table-cell><text:p>EUR</text:p></table:table-cell></table:table-row>` +
				`<table:table-row><table:table-cell><text:p>Bolt</text:p></table:table-cell><table:table-cell><text:p>1</text:p></table:table-cell></table:table-row></table:table>`,
			"| Part | Net |\n| Part | EUR |\n| --- | --- |\n| Bolt | 1 |\n",
		},
		{
			"tables", `<table:table><table:table-column/><table:table-header-rows><table:table-row><table:table-cell table:number-columns-spanned="2"><text:p>A|B</text:p></table:table-cell><table:covered-table-cell/></table:table-row></table:table-header-rows>` +
				`<table:table-row table:number-rows-repeated="2"><table:table-cell table:number-columns-repeated="2"><text:p>x</text:p><text:p>y</text:p></table:table-cell></table:table-row></table:table>`,
			"| A\\|B | A\\|B |\n| --- | --- |\n| x y | x y |\n| x y | x y |\n",
		},
		{"a frame", `<table:table><table:table-row><table:table-cell><text:p>one</text:p></table:table-cell></table:table-row></table:table>`, "one\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := zipmake.Parse(t, opendocument.Format(), "", file(t, "text", test.body, listStyles))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestStyles reads what stands in the styles: margins, and the numbers of headings.
func TestStyles(t *testing.T) {
	styles := `<office:document-styles` + namespaces + `><text:outline-style><text:outline-level-style text:level="1" style:num-format="1"/><text:outline-level-style text:level="2" style:num-format="a" loext:num-list-format="%1%.%2%" xmlns:loext="l"/></text:outline-style>` +
		`<style:master-page><style:header><text:p>ACME</text:p></style:header><style:footer><text:p>3</text:p><text:p>VAT 7</text:p></style:footer></style:master-page></office:document-styles>`
	d, err := zipmake.Parse(t, opendocument.Format(), "", file(t, "text", `<text:h text:outline-level="1">A</text:h><text:h text:outline-level="2">B</text:h><text:h text:outline-level="2">C</text:h>`, "", zipmake.File{Name: "styles.xml", Content: styles}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("ACME\n\n# 1 A\n\n## 1.a B\n\n## 1.b C\n\nVAT 7\n", d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestScripts: raised and lowered characters by the styles of the document and of its text.
func TestScripts(t *testing.T) {
	style := func(name, base, position string) string {
		return `<style:style style:name="` + name + `" style:family="text" style:parent-style-name="` + base + `"><style:text-properties style:text-position="` + position + `"/></style:style>`
	}
	common := `<office:document-styles` + namespaces + `><office:styles>` + style("Power", "", "super 58%") + style("Loop", "Loop", "") +
		`</office:styles><style:master-page><style:header><text:p>area in m<text:span text:style-name="Power">2</text:span></text:p></style:header></style:master-page></office:document-styles>`
	own := style("T1", "", "sub 58%") + style("T2", "Power", "") + style("T3", "Power", "0% 100%") + style("T4", "", "33% 58%") + style("T5", "", "-33%") + style("T6", "", "x") +
		`<style:style style:name="P1" style:family="paragraph"><style:text-properties style:text-position="super"/></style:style>`
	span := func(style, text string) string {
		return `<text:span text:style-name="` + style + `">` + text + `</text:span>`
	}
	body := `<text:p text:style-name="P1">H` + span("T1", "2") + `O 10` + span("T2", "1"+span("Loop", "2")) + ` 10` + span("T3", "3") + ` x` + span("T4", "4"+span("T5", "5")+span("T6", "6")) + ` 1` + span("Power", "st") +
		` m` + span("Power", `2<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p>2</text:p></text:note-body></text:note>`) + `</text:p>`
	d, err := zipmake.Parse(t, opendocument.Format(), "", file(t, "text", body, own, zipmake.File{Name: "styles.xml", Content: common}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("area in m²\nH₂O 10¹² 103 x⁴₅6 1st m²[^1]\n\n[^1]: 2\n", d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHidden: what a style hides is no text.
func TestHidden(t *testing.T) {
	style := func(name, family, base, properties string) string {
		return `<style:style style:name="` + name + `" style:family="` + family + `" style:parent-style-name="` + base + `"><style:text-properties ` + properties + `/></style:style>`
	}
	const none = `text:display="none"`
	styles := style("P1", "paragraph", "", none) + style("P2", "paragraph", "P1", "") + style("P3", "paragraph", "P1", `text:display="true"`) + style("T1", "text", "", none) + style("T2", "text", "T1", `text:display="true"`) + style("P4", "text", "", none)

	const body = `<text:p text:style-name="P1">no</text:p><text:h text:style-name="P2">no</text:h><text:p text:style-name="P3">a</text:p>` +
		`<text:p text:style-name="P4">b <text:span text:style-name="T1">no <text:span>no</text:span></text:span>c</text:p>` +
		`<text:p text:style-name="P1">no <text:span text:style-name="T2">d</text:span> no<text:span text:style-name="T2"> e</text:span></text:p>`
	d, err := zipmake.Parse(t, opendocument.Format(), "", file(t, "text", body, styles))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a\nb c\nd e\n", d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHiddenAsides: boxes, notes and comments are hidden with the characters among which they stand, and
// what stands beside a paragraph with all of them.
func TestHiddenAsides(t *testing.T) {
	const styles = `<style:style style:name="P" style:family="paragraph"><style:text-properties text:display="none"/></style:style>` +
		`<style:style style:name="H" style:family="text"><style:text-properties text:display="none"/></style:style>` +
		`<style:style style:name="S" style:family="text"><style:text-properties text:display="true"/></style:style>`
	box := func(anchor, text string) string {
		return `<draw:frame text:anchor-type="` + anchor + `"><draw:text-box><text:p>` + text + `</text:p></draw:text-box></draw:frame>`
	}
	note := func(text string) string {
		return `<text:note><text:note-body><text:p>` + text + `</text:p></text:note-body></text:note>`
	}
	const comment = `<office:annotation><text:p>no</text:p></office:annotation>`
	const seen = `<text:p>end` // a document has some text

	for _, test := range []struct{ name, body, want string }{
		{"hidden paragraph", `<text:p text:style-name="P">no` + box("as-char", "no"+note("no")) + box("char", "no") + box("paragraph", "no"+note("no")) + note("no") + comment + `</text:p>` + seen, "end\n"},
		{"hidden shape", `<text:p text:style-name="P"><draw:custom-shape text:anchor-type="as-char"><text:p>no</text:p></draw:custom-shape>no</text:p>` + seen, "end\n"},
		{"hidden characters", `<text:p>a <text:span text:style-name="H">no` + box("as-char", "no") + note("no") + box("paragraph", "b"+note("c")) + `</text:span>d</text:p>` + seen, "a d\nb[^1]\nend\n\n[^1]: c\n"},
		{"all characters hidden", `<text:h><text:span text:style-name="H">no</text:span>` + box("paragraph", "no"+note("no")) + `</text:h>` + seen, "end\n"},
		{"no character to hide", `<text:p>` + box("paragraph", "a") + `</text:p>` + seen, "a\nend\n"},
		{"characters shown in a hidden paragraph", `<text:p text:style-name="P">no <text:span text:style-name="S">a` + box("as-char", "b") + note("c") + `</text:span>` + box("char", "d") + `</text:p>` + seen, "a[^1]\nb\nd\nend\n\n[^1]: c\n"},
		{"box shown in a hidden paragraph", `<text:p text:style-name="P">` + box("paragraph", "a") + `<text:span text:style-name="S">` + box("as-char", "b") + `</text:span></text:p>` + seen, "a\nb\nend\n"},
		{"hidden paragraph in a box", `<text:p>a` + `<draw:frame><draw:text-box><text:p text:style-name="P">no` + note("no") + `</text:p><text:p>b` + note("c") + `</text:p></draw:text-box></draw:frame></text:p>` + seen, "a\n\nb[^1]\nend\n\n[^1]: c\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := zipmake.Parse(t, opendocument.Format(), "", file(t, "text", test.body+`</text:p>`, styles))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFormulas: an object that is a formula is written where it stands, once, and others are
// not.
func TestFormulas(t *testing.T) {
	object := func(n, content string) zipmake.File {
		return zipmake.File{Name: "Object " + n + "/content.xml", Content: content}
	}
	const fraction = `<mfrac><mrow><mi>a</mi><mo stretchy="false">+</mo><mi>b</mi></mrow><mn>2</mn></mfrac>`
	frame := func(href string) string {
		return `<draw:frame><draw:object xlink:href="` + href + `"/><draw:image xlink:href="./ObjectReplacements/Object 1"/><svg:title xmlns:svg="svg">title</svg:title><svg:desc xmlns:svg="svg">{a + b} over 2</svg:desc></draw:frame>`
	}
	objects := []zipmake.File{
		object("1", `<?xml version="1.0"?><math xmlns="http://www.w3.org/1998/Math/MathML" display="block"><semantics>`+fraction+`<annotation encoding="StarMath 5.0">{a + b} over 2</annotation></semantics></math>`),
		object("2", `<!DOCTYPE math:math PUBLIC "-//OpenOffice.org//DTD Modified W3C MathML 1.01//EN" "math.dtd"><math:math xmlns:math="m"><math:msup><math:mi>x</math:mi><math:mn>2</math:mn></math:msup></math:math>`),
		object("3", `<office:document-content xmlns:office="o"><office:body>chart</office:body></office:document-content>`),
		object("4", "\x00\x01"),
	}
	inline := `<draw:frame><draw:object><math:math xmlns:math="m"><math:mi>y</math:mi></math:math></draw:object></draw:frame>`
	for _, test := range []struct{ name, kind, body, want string }{
		{"in a paragraph", "text", `<text:p>it is ` + frame("./Object 1") + ` so</text:p>`, "it is (a+b)/2 so\n"},
		{"alone", "text", `<text:p>` + frame("Object 2/") + `</text:p><text:p>` + inline + `</text:p>`, "x²\ny\n"},
		{"twice", "text", `<text:p>` + frame("./Object 1") + `, ` + frame("./Object 1") + `</text:p>`, "(a+b)/2, (a+b)/2\n"},
		{"beside a number", "text", `<text:p>3` + frame("../Object 1") + ` 3` + inline + `</text:p>`, "3(a+b)/2 3y\n"},
		{"other objects", "text", `<text:p>a` + frame("./Object 3") + frame("./Object 4") + frame("./Object 5") + frame("") + frame(".") + `</text:p>`, "a\n"},
		{"of a page", "text", frame("./Object 1") + `<text:p>a</text:p>`, "(a+b)/2\na\n"},
		{"in a cell", "text", `<table:table><table:table-row><table:table-cell><text:p>` + frame("./Object 2") + `</text:p></table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>`, "| x² | b |\n| --- | --- |\n"},
		{"on a slide", "presentation", `<draw:page>` + frame("./Object 2") + frame("./Object 3") + `</draw:page>`, "## Slide 1\n\nx²\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := zipmake.Parse(t, opendocument.Format(), "", file(t, test.kind, test.body, "", objects...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	large := object("1", `<math><mtext>`+strings.Repeat("x", 1<<20)+`</mtext></math>`)
	large.Stored = true
	for _, test := range []struct {
		name, body, want string
		object           zipmake.File
	}{
		{"large formulas", strings.Repeat(frame("./Object 1"), 100), "formulas of more than 67108864 bytes", large},
		{"deep formula", frame("./Object 1"), "elements within each other", object("1", "<math>"+strings.Repeat("<mrow>", 300))},
		{"formula cut off", frame("./Object 1"), "damaged: Object 1/content.xml", object("1", "<math><mi>x")},
		{"formula that expands", frame("./Object 1"), "expands to more than 300 times", object("1", "<math>"+strings.Repeat("<mi/>", 1<<20))},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := zipmake.Parse(t, opendocument.Format(), "", file(t, "text", `<text:p>`+test.body+`</text:p>`, "", test.object))
			if refused, ok := errors.AsType[*document.RefusedError](err); !ok || !strings.Contains(refused.Reason, test.want) {
				t.Errorf("got %v, want one that refuses for %q", err, test.want)
			}
		})
	}
}

func TestSheets(t *testing.T) {
	cell := func(attributes, text string) string {
		return `<table:table-cell ` + attributes + `><text:p>` + text + `</text:p></table:table-cell>`
	}
	row := func(cells ...string) string {
		return `<table:table-row>` + strings.Join(cells, "") + `<table:table-cell table:number-columns-repeated="16000"/></table:table-row>`
	}
	body := `<table:table table:name="One">` + row(cell("", "Name"), cell("", "Day"), cell("", "Sum")) +
		row(cell("", "a"), cell(`office:value-type="date" office:date-value="2024-03-04"`, "4.3.24"), cell(`office:value-type="float" office:value="1234.5"`, "1.234,50")) +
		row(`<table:table-cell/>`, `<table:covered-table-cell/>`, `<table:table-cell office:value-type="float" office:value="2.345"><office:annotation><dc:creator>Ann</dc:creator><text:p>hm</text:p></office:annotation><text:p>2.3</text:p></table:table-cell>`) +
		`<table:table-row table:number-rows-repeated="1048000"><table:table-cell table:number-columns-repeated="16384"/></table:table-row></table:table>`
	// What programs put above and below the sheets when they print them is no text of it.
	margins := `<office:document-styles` + namespaces + `><style:master-page><style:header><text:p><text:sheet-name>???</text:sheet-name></text:p></style:header><style:footer><text:p>Page <text:page-number>1</text:page-number></text:p></style:footer></style:master-page></office:document-styles>`
	d, err := zipmake.Parse(t, opendocument.Format(), "", file(t, "spreadsheet", body, "", zipmake.File{Name: "styles.xml", Content: margins}))
	if err != nil {
		t.Fatal(err)
	}
	want := "## One\n\n| Name | Day | Sum |\n| --- | --- | --- |\n| a | 4.3.24 (=2024-03-04) | 1.234,50 |\n|  |  | 2.3 (=2.345) |\n\nComment by Ann: hm\n"
	if diff := cmp.Diff(want, d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	at := strings.Index(d.Text, "2.345")
	if l := d.Layout.Locate(at, at+5); l == nil || l.Sheet != "One" || l.Cell != "C3" {
		t.Errorf("the sum is at %+v", l)
	}
}

// TestBooleans: a truth is read as in other workbooks, in whatever language it is shown.
func TestBooleans(t *testing.T) {
	row := func(name, truth, shown string) string {
		return `<table:table-row><table:table-cell><text:p>` + name + `</text:p></table:table-cell><table:table-cell office:value-type="boolean" office:boolean-value="` + truth + `">` + shown + `</table:table-cell></table:table-row>`
	}
	body := `<table:table table:name="One">` +
		row("English", "true", "<text:p>TRUE</text:p>") + row("German", "false", "<text:p>FALSCH</text:p>") + row("small", "true", "<text:p>true</text:p>") +
		row("none", "false", "") + row("narrow", "true", "<text:p>###</text:p>") + row("unknown", "1", "<text:p>yes</text:p>") + `</table:table>`
	d, err := zipmake.Parse(t, opendocument.Format(), "", file(t, "spreadsheet", body, ""))
	if err != nil {
		t.Fatal(err)
	}

	const want = "## One\n\n| English | TRUE |\n| --- | --- |\n| German | FALSCH (=FALSE) |\n| small | TRUE |\n| none | FALSE |\n| narrow | TRUE |\n| unknown | yes |\n"
	if diff := cmp.Diff(want, d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTimes: a time is as its cell shows it, with its part of a second. One that does not show is as it is
// stored.
func TestTimes(t *testing.T) {
	row := func(name, time, shown string) string {
		return `<table:table-row><table:table-cell><text:p>` + name + `</text:p></table:table-cell><table:table-cell office:value-type="time" office:time-value="` + time + `">` + shown + `</table:table-cell></table:table-row>`
	}
	body := `<table:table table:name="One">` +
		row("part", "PT26H30M15.789S", "<text:p>26:30:15.79</text:p>") + row("none", "PT26H30M15.789S", "") + row("narrow", "PT00H01M02S", "<text:p>###</text:p>") + `</table:table>`
	d, err := zipmake.Parse(t, opendocument.Format(), "", file(t, "spreadsheet", body, ""))
	if err != nil {
		t.Fatal(err)
	}

	const want = "## One\n\n| part | 26:30:15.79 |\n| --- | --- |\n| none | PT26H30M15.789S |\n| narrow | PT00H01M02S |\n"
	if diff := cmp.Diff(want, d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMergedCells: a cell that covers several rows stands in each of them, and a head that covers
// several columns names each of them.
func TestMergedCells(t *testing.T) {
	cell := func(attributes, text string) string {
		return `<table:table-cell ` + attributes + `><text:p>` + text + `</text:p></table:table-cell>`
	}
	row := func(cells ...string) string {
		return `<table:table-row>` + strings.Join(cells, "") + `</table:table-row>`
	}
	const covered = `<table:covered-table-cell/>`
	body := `<table:table table:name="One">` +
		row(cell(`table:number-rows-spanned="2"`, "Place"), cell(`table:number-columns-spanned="2"`, "Height"), covered) +
		row(covered, cell("", "1992"), cell("", "1993")) +
		row(cell(`table:number-rows-spanned="2"`, "Ost"), cell("", "1"), cell("", "2")) +
		row(covered, cell("", "3"), cell("", "4")) +
		row(cell("", "all"), cell(`table:number-columns-spanned="2"`, "10"), covered) + `</table:table>`
	d, err := zipmake.Parse(t, opendocument.Format(), "", file(t, "spreadsheet", body, ""))
	if err != nil {
		t.Fatal(err)
	}
	const want = "## One\n\n| Place | Height | Height |\n| Place | 1992 | 1993 |\n| --- | --- | --- |\n| Ost | 1 | 2 |\n| Ost | 3 | 4 |\n| all | 10 ||\n"
	if diff := cmp.Diff(want, d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSlides(t *testing.T) {
	frame := func(class, inside string) string {
		return `<draw:frame presentation:class="` + class + `"><draw:text-box>` + inside + `</draw:text-box></draw:frame>`
	}
	list := `<text:list><text:list-item><text:p>point</text:p></text:list-item></text:list>`
	body := `<draw:page>` + frame("outline", list) + frame("title", `<text:p>Title</text:p>`) + frame("page-number", `<text:p>1</text:p>`) +
		`<draw:g><draw:custom-shape><text:p>shape</text:p></draw:custom-shape></draw:g><presentation:notes>` + frame("notes", `<text:p>say</text:p>`) + frame("page-number", `<text:p>1</text:p>`) + `</presentation:notes></draw:page>` +
		`<draw:page><draw:frame><table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table></draw:frame></draw:page>`
	d, err := zipmake.Parse(t, opendocument.Format(), "", file(t, "presentation", body, ""))
	if err != nil {
		t.Fatal(err)
	}
	want := "## Title\n\n- point\n\nshape\n\nNotes: say\n\n## Slide 2\n\n| a | b |\n| --- | --- |\n"
	if diff := cmp.Diff(want, d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for word, slide := range map[string]int{"shape": 1, "say": 1, "b |": 2} {
		at := strings.Index(d.Text, word)
		if l := d.Layout.Locate(at, at+1); l == nil || l.Slide != slide {
			t.Errorf("%q is at %+v, want slide %d", word, l, slide)
		}
	}
}

func TestRefused(t *testing.T) {
	manifest := zipmake.File{Name: "META-INF/manifest.xml", Content: `<m><file-entry><encryption-data/></file-entry></m>`}
	cells := `<table:table><table:table-row table:number-rows-repeated="1000000"><table:table-cell table:number-columns-repeated="1000"><text:p>x</text:p></table:table-cell></table:table-row></table:table>`
	const repeats = `<table:table><table:table-row><table:table-cell table:number-columns-repeated="1000">`
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"encrypted", file(t, "text", "<text:p>x</text:p>", "", manifest), "encrypted"},
		{"empty", file(t, "text", "", ""), "no text"},
		{"no content", zipmake.Zip(t, zipmake.File{Name: "mimetype", Content: "application/vnd.oasis.opendocument.text", Stored: true}), "it lacks content.xml"},
		{"cells that repeat", file(t, "spreadsheet", cells, ""), "more than 4000000 cells"},
		{"cells of texts that repeat", file(t, "text", strings.Repeat(cells, 4), ""), "more than 4000000 cells"},
		{"cells that are covered", file(t, "text", "<table:table>"+strings.Repeat(`<table:table-row><table:covered-table-cell table:number-columns-repeated="1000"/></table:table-row>`, 5000)+"</table:table>", ""), "more than 4000000 cells"},
		{"rows that repeat", file(t, "text", "<table:table>"+strings.Repeat(`<table:table-row table:number-rows-repeated="1000"/>`, 5000)+"</table:table>", ""), "more than 4000000 cells"},
		{"tables that repeat in each other", file(t, "text", strings.Repeat(repeats, 4)+"<text:p>x</text:p>"+strings.Repeat("</table:table-cell></table:table-row></table:table>", 4), ""), "more than 16777216 bytes of cells that repeat"},
		{"columns that repeat", file(t, "spreadsheet", strings.ReplaceAll(cells, `"1000"`, `"20000"`), ""), "more than 16384 columns"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := zipmake.Parse(t, opendocument.Format(), "", test.data)
			if refused, ok := errors.AsType[*document.RefusedError](err); !ok || !strings.Contains(refused.Reason, test.want) {
				t.Errorf("got %v, want one that refuses for %q", err, test.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(0, []byte(`<text:p>a<text:note/></text:p><text:list><text:list-item><text:h>x</text:h></text:list-item></text:list>`))
	f.Add(1, []byte(`<table:table><table:table-row table:number-rows-repeated="7"><table:table-cell/></table:table-row></table:table>`))
	f.Add(2, []byte(`<draw:page><draw:frame><draw:text-box><text:p>a</text:p></draw:text-box></draw:frame></draw:page>`))
	f.Add(0, []byte(`<math><mi>x</mi><text:p>a<draw:object xlink:href="./Object 1"/></text:p></math>`))
	f.Add(0, []byte(`<text:p>a<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame><draw:object><math><mfrac><mi>a</mi><mn>2</mn></mfrac></math></draw:object></text:p>`))
	f.Fuzz(func(t *testing.T, kind int, body []byte) {
		kinds := []string{"text", "spreadsheet", "presentation"}
		data := file(t, kinds[uint(kind)%3], string(body), listStyles, zipmake.File{Name: "Object 1/content.xml", Content: string(body)})
		if _, err := zipmake.Parse(t, opendocument.Format(), "", data); err != nil && !errors.As(err, new(*document.RefusedError)) {
			t.Errorf("got %v, which does not refuse the file", err)
		}
	})
}
