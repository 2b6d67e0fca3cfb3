package producers_test

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
)

// A part is a heading, a paragraph, items of a list, or a table of a source.
type part struct {
	level int      // of a heading
	text  string   // of a heading or paragraph; "^" refers to a note
	items []string // of a list; a tab in front of one puts it a level deeper
	list  string   // its style
	marks []string // of the items, as a reader sees them
	table [][]string
	note  string // that the paragraph refers to
}

// source is a document of many parts, in several languages and scripts.
func source() []part {
	words := strings.Fields("The supplier delivers goods worth € 1,234.56 until 31 March 2024, größere Mengen später; " +
		"l’été à Québec, señor Núñez, Žluťoučký kůň, Договор № 7, Ελλάδα, 契約 書, \"quoted\" & <angled> 50% of A/B-C (see §4.2).")
	var parts []part
	n := 0
	sentence := func(length int) string {
		var s []string
		for range length {
			s = append(s, words[n*11%len(words)])
			n++
		}
		return strings.Join(s, " ")
	}
	for chapter := range 6 {
		parts = append(parts, part{level: 1, text: fmt.Sprintf("Chapter %c about deliveries", 'A'+chapter)})
		for section := range 3 {
			parts = append(parts, part{level: 2, text: fmt.Sprintf("Section %c%c: terms", 'A'+chapter, 'a'+section)},
				part{text: sentence(45)},
				part{text: sentence(30) + "^", note: fmt.Sprintf("Note number %d says: %s", chapter*3+section, sentence(6))},
				part{text: sentence(20)})
		}
		parts = append(parts,
			part{
				list: "Numbers", items: []string{"first " + sentence(5), "second " + sentence(5), "\tinner " + sentence(3), "\tdeeper " + sentence(3), "third " + sentence(4)},
				marks: []string{"1.", "2.", "a)", "b)", "3."},
			},
			part{text: sentence(12)},
			part{list: "Bullets", items: []string{"dot " + sentence(5), "dash " + sentence(4), "\tnested " + sentence(3)}, marks: []string{"-", "-", "-"}},
			part{text: sentence(9)},
			part{table: testTable(chapter)},
			part{text: sentence(25)})
	}
	return parts
}

// testTable returns a table whose cells have all that cells may have.
func testTable(n int) [][]string {
	rows := [][]string{{"Item", "Größe", "Price | EUR", "Remark"}}
	for i := range 6 {
		remark := ""
		if i%2 == 0 {
			remark = fmt.Sprintf("row %d, see \"%d\" & <more>", i, n)
		}
		rows = append(rows, []string{fmt.Sprintf("Part %d-%d", n, i), fmt.Sprintf("%d mm", i*10+5), fmt.Sprintf("%d.%02d", i*100+n, i), remark})
	}
	return rows
}

// sourceText returns the words of a source in their order, with or without the marks of
// items, and with its notes behind each chapter or all.
func sourceText(parts []part, marks, byChapter bool) string {
	var b strings.Builder
	var notes []string
	n := 0
	flush := func() {
		for i, note := range notes {
			fmt.Fprintf(&b, "%d %s\n", n-len(notes)+i+1, note)
		}
		notes = nil
	}
	for _, p := range parts {
		switch {
		case p.items != nil:
			for i, item := range p.items {
				if marks {
					b.WriteString(p.marks[i] + " ")
				}
				b.WriteString(strings.TrimSpace(item) + "\n")
			}
		case p.table != nil:
			for _, row := range p.table {
				b.WriteString(strings.Join(row, "\n") + "\n")
			}
		default:
			if byChapter && p.level == 1 {
				flush()
			}
			text := p.text
			if p.note != "" {
				notes = append(notes, p.note)
				n++
				text = strings.ReplaceAll(text, "^", fmt.Sprintf(" %d", n))
			}
			b.WriteString(text + "\n")
		}
	}
	flush()
	return b.String()
}

func escape(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		panic(err)
	}
	return b.String()
}

// cell is one of a sheet: as it is stored, and as its text should be.
type cell struct {
	kind, value, style string // of OpenDocument
	want               string
}

// sheetRows returns a sheet of all kinds of values.
func sheetRows() [][]cell {
	text := func(s string) cell { return cell{kind: "string", value: s, want: s} }
	rows := [][]cell{{text("Name"), text("Date"), text("Amount"), text("Share"), text("Rounded"), text("Paid"), text("Remark")}}
	for i := range 40 {
		day := i%28 + 1
		rounded := float64(i) + 0.26 + float64(i)/1000
		shown := fmt.Sprintf("%.1f", rounded)
		if fmt.Sprintf("%.10g", rounded) != shown {
			shown += fmt.Sprintf(" (%.10g)", rounded)
		}
		paid := i%3 == 0
		row := []cell{
			text(fmt.Sprintf("Käufer %d | Söhne", i)),
			{kind: "date", value: fmt.Sprintf("2024-%02d-%02d", i%12+1, day), style: "day", want: fmt.Sprintf("%02d.%02d.2024 (2024-%02d-%02d)", day, i%12+1, i%12+1, day)},
			{kind: "float", value: fmt.Sprintf("%d.5", 1000*i), style: "money", want: grouped(1000*i) + ".50"},
			{kind: "percentage", value: fmt.Sprintf("0.%02d", i), style: "share", want: fmt.Sprintf("%d%%", i)},
			{kind: "float", value: fmt.Sprintf("%.10g", rounded), style: "one", want: shown},
			{kind: "boolean", value: fmt.Sprint(paid), style: "truth", want: strings.ToUpper(fmt.Sprint(paid))},
			text(map[bool]string{true: "see <note> & \"quote\"", false: ""}[i%5 == 0]),
		}
		rows = append(rows, row)
	}
	return rows
}

// grouped writes a number with its thousands grouped.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// flatSheets returns sheets as a flat OpenDocument spreadsheet.
func flatSheets(names []string, rows [][]cell) string {
	var b strings.Builder
	fmt.Fprintf(&b, flatBegin, "spreadsheet")
	b.WriteString(`<office:automatic-styles>
<number:date-style style:name="N1"><number:day number:style="long"/><number:text>.</number:text><number:month number:style="long"/><number:text>.</number:text><number:year number:style="long"/></number:date-style>
<number:number-style style:name="N2"><number:number number:decimal-places="2" number:min-integer-digits="1" number:grouping="true"/></number:number-style>
<number:percentage-style style:name="N3"><number:number number:decimal-places="0" number:min-integer-digits="1"/><number:text>%</number:text></number:percentage-style>
<number:number-style style:name="N4"><number:number number:decimal-places="1" number:min-decimal-places="1" number:min-integer-digits="1"/></number:number-style>
<number:boolean-style style:name="N5"><number:boolean/></number:boolean-style><style:style style:name="truth" style:family="table-cell" style:data-style-name="N5"/>
<style:style style:name="day" style:family="table-cell" style:data-style-name="N1"/><style:style style:name="money" style:family="table-cell" style:data-style-name="N2"/><style:style style:name="share" style:family="table-cell" style:data-style-name="N3"/><style:style style:name="one" style:family="table-cell" style:data-style-name="N4"/>
</office:automatic-styles><office:body><office:spreadsheet>`)
	for _, name := range names {
		fmt.Fprintf(&b, `<table:table table:name="%s"><table:table-row><table:table-cell office:value-type="string"><text:p>Overview of %s</text:p></table:table-cell></table:table-row><table:table-row/>`, escape(name), escape(name))
		for _, row := range rows {
			b.WriteString("<table:table-row>")
			for _, c := range row {
				attribute := map[string]string{"date": "date-value", "boolean": "boolean-value", "float": "value", "percentage": "value"}[c.kind]
				switch {
				case c.value == "":
					b.WriteString("<table:table-cell/>")
				case c.kind == "string":
					fmt.Fprintf(&b, `<table:table-cell office:value-type="string"><text:p>%s</text:p></table:table-cell>`, escape(c.value))
				default:
					fmt.Fprintf(&b, `<table:table-cell table:style-name="%s" office:value-type="%s" office:%s="%s"/>`, c.style, c.kind, attribute, c.value)
				}
			}
			b.WriteString("</table:table-row>")
		}
		b.WriteString("</table:table>")
	}
	b.WriteString("</office:spreadsheet></office:body></office:document>")
	return b.String()
}

// A slide is one of a presentation.
type slide struct {
	title  string
	points []string
	table  [][]string
	notes  string
}

func slides() []slide {
	var all []slide
	for i := range 8 {
		s := slide{title: fmt.Sprintf("Slide about matter %d & more", i), notes: fmt.Sprintf("Remember to mention €%d,000", i+1)}
		for k := range 3 {
			s.points = append(s.points, fmt.Sprintf("Point %d of %d: größere Mengen, été %d%%", k, i, k*10))
		}
		if i%2 == 1 {
			s.table = testTable(i)
		}
		all = append(all, s)
	}
	return all
}

// flatSlides returns slides as a flat OpenDocument presentation.
func flatSlides(all []slide) string {
	var b strings.Builder
	fmt.Fprintf(&b, flatBegin, "presentation")
	b.WriteString(`<office:styles><style:style style:name="Default-title" style:family="presentation"/><style:style style:name="Default-outline1" style:family="presentation"/><style:style style:name="Default-notes" style:family="presentation"/></office:styles><office:automatic-styles><style:style style:name="pr1" style:family="presentation" style:parent-style-name="Default-title"/><style:style style:name="pr2" style:family="presentation" style:parent-style-name="Default-outline1"/><style:style style:name="pr3" style:family="presentation" style:parent-style-name="Default-notes"/><style:page-layout style:name="PM"><style:page-layout-properties fo:page-width="28cm" fo:page-height="21cm"/></style:page-layout></office:automatic-styles><office:master-styles><style:master-page style:name="Default" style:page-layout-name="PM"/></office:master-styles><office:body><office:presentation>`)
	for i, s := range all {
		fmt.Fprintf(&b, `<draw:page draw:name="p%d" draw:master-page-name="Default"><draw:frame presentation:style-name="pr1" presentation:class="title" svg:width="25cm" svg:height="3cm" svg:x="1cm" svg:y="1cm"><draw:text-box><text:p>%s</text:p></draw:text-box></draw:frame>`, i, escape(s.title))
		b.WriteString(`<draw:frame presentation:style-name="pr2" presentation:class="outline" svg:width="25cm" svg:height="6cm" svg:x="1cm" svg:y="5cm"><draw:text-box>`)
		for _, p := range s.points {
			fmt.Fprintf(&b, "<text:list><text:list-item><text:p>%s</text:p></text:list-item></text:list>", escape(p))
		}
		b.WriteString("</draw:text-box></draw:frame>")
		if s.table != nil {
			b.WriteString(`<draw:frame svg:width="25cm" svg:height="6cm" svg:x="1cm" svg:y="12cm">`)
			writeFlatTable(&b, fmt.Sprintf("T%d", i), s.table)
			b.WriteString("</draw:frame>")
		}
		fmt.Fprintf(&b, `<presentation:notes><draw:frame presentation:style-name="pr3" presentation:class="notes" svg:width="16cm" svg:height="10cm" svg:x="2cm" svg:y="14cm"><draw:text-box><text:p>%s</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>`, escape(s.notes))
	}
	b.WriteString("</office:presentation></office:body></office:document>")
	return b.String()
}

const flatBegin = `<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0" xmlns:number="urn:oasis:names:tc:opendocument:xmlns:datastyle:1.0" office:version="1.3" office:mimetype="application/vnd.oasis.opendocument.%s">
`

// flatText returns a source as a flat OpenDocument text, which LibreOffice converts.
func flatText(parts []part) string {
	var b strings.Builder
	fmt.Fprintf(&b, flatBegin, "text")
	b.WriteString(`<office:styles><style:style style:name="Standard" style:family="paragraph"/></office:styles><office:automatic-styles>
<text:list-style style:name="Numbers"><text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."><style:list-level-properties text:space-before="0.5cm" text:min-label-width="0.5cm"/></text:list-level-style-number><text:list-level-style-number text:level="2" style:num-format="a" style:num-suffix=")"><style:list-level-properties text:space-before="1cm" text:min-label-width="0.5cm"/></text:list-level-style-number></text:list-style>
<text:list-style style:name="Bullets"><text:list-level-style-bullet text:level="1" text:bullet-char="•"><style:list-level-properties text:space-before="0.5cm" text:min-label-width="0.5cm"/></text:list-level-style-bullet><text:list-level-style-bullet text:level="2" text:bullet-char="–"><style:list-level-properties text:space-before="1cm" text:min-label-width="0.5cm"/></text:list-level-style-bullet></text:list-style>
</office:automatic-styles><office:body><office:text>
`)
	notes := 0
	for i, p := range parts {
		switch {
		case p.level > 0:
			fmt.Fprintf(&b, "<text:h text:outline-level=\"%d\">%s</text:h>\n", p.level, escape(p.text))
		case p.items != nil:
			writeFlatList(&b, p)
		case p.table != nil:
			writeFlatTable(&b, fmt.Sprintf("Table%d", i), p.table)
		default:
			text := escape(p.text)
			if p.note != "" {
				notes++
				text = strings.ReplaceAll(text, "^", fmt.Sprintf(`<text:note text:id="ftn%d" text:note-class="footnote"><text:note-citation>%d</text:note-citation><text:note-body><text:p>%s</text:p></text:note-body></text:note>`, notes, notes, escape(p.note)))
			}
			fmt.Fprintf(&b, "<text:p>%s</text:p>\n", text)
		}
	}
	b.WriteString("</office:text></office:body></office:document>\n")
	return b.String()
}

func writeFlatList(b *strings.Builder, p part) {
	fmt.Fprintf(b, `<text:list text:style-name="%s">`, p.list)
	open := false // an item is, as deeper ones may follow
	deep := false
	for _, item := range p.items {
		text, deeper := strings.CutPrefix(item, "\t")
		switch {
		case deeper && !deep:
			b.WriteString("<text:list>")
		case !deeper && deep:
			b.WriteString("</text:list>")
		}
		if !deeper && open {
			b.WriteString("</text:list-item>")
		}
		deep = deeper
		fmt.Fprintf(b, "<text:list-item><text:p>%s</text:p>", escape(text))
		if deeper {
			b.WriteString("</text:list-item>")
		} else {
			open = true
		}
	}
	if deep {
		b.WriteString("</text:list>")
	}
	b.WriteString("</text:list-item></text:list>\n")
}

func writeFlatTable(b *strings.Builder, name string, rows [][]string) {
	fmt.Fprintf(b, `<table:table table:name="%s"><table:table-column table:number-columns-repeated="%d"/>`, name, len(rows[0]))
	for _, row := range rows {
		b.WriteString("<table:table-row>")
		for _, cell := range row {
			fmt.Fprintf(b, `<table:table-cell office:value-type="string"><text:p>%s</text:p></table:table-cell>`, escape(cell))
		}
		b.WriteString("</table:table-row>")
	}
	b.WriteString("</table:table>\n")
}

// markdownTables returns the cells of the tables of a text. Those of one header that
// follow each other are one.
func markdownTables(text string) [][][]string {
	var tables [][][]string
	var table [][]string
	end := func() {
		if table == nil {
			return
		}
		if n := len(tables); n > 0 && strings.Join(tables[n-1][0], "\t") == strings.Join(table[0], "\t") && strings.Contains(table[0][0], "Repeated") {
			tables[n-1] = append(tables[n-1], table[1:]...)
		} else {
			tables = append(tables, table)
		}
		table = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, "| ") && line != "| |" {
			end()
			continue
		}
		line = strings.ReplaceAll(line, `\|`, "\x00")
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), "\x00", "|")
		}
		if strings.Trim(strings.Join(cells, ""), "-") == "" && strings.Contains(line, "---") {
			continue
		}
		table = append(table, cells)
	}
	end()
	return tables
}

func TestMarkdownTables(t *testing.T) {
	got := fmt.Sprint(markdownTables("x\n| a | b\\|c |\n| --- | --- |\n| 1 |  |\n\n| d |\n| --- |\n"))
	if want := "[[[a b|c] [1 ]] [[d]]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
