package xmlfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
)

// workbookOf returns a workbook of one sheet as Excel 2003 writes it, with what its table has.
func workbookOf(table string) string {
	return `<?xml version="1.0"?>
<?mso-application progid="Excel.Sheet"?>
<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet" xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet">
 <DocumentProperties xmlns="urn:schemas-microsoft-com:office:office"><Title>Sales</Title><Author>A</Author></DocumentProperties>
 <Styles>
  <Style ss:ID="Default" ss:Name="Normal"><NumberFormat/></Style>
  <Style ss:ID="s1"><NumberFormat ss:Format="Short Date"/></Style>
  <Style ss:ID="s2"><NumberFormat ss:Format="Percent"/></Style>
  <Style ss:ID="s3"><NumberFormat ss:Format="#,##0.00"/></Style>
  <Style ss:ID="s4" ss:Parent="s3"><Font ss:Bold="1"/></Style>
  <Style ss:ID="loop" ss:Parent="loop"/>
  <Style ss:ID="s5"><NumberFormat ss:Format="[h]:mm"/></Style>
 </Styles>
 <Worksheet ss:Name="One"><Table>` + table + `</Table>
  <WorksheetOptions xmlns="urn:schemas-microsoft-com:office:excel"><PageSetup><Header x:Data="no text"/></PageSetup></WorksheetOptions>
 </Worksheet>
</Workbook>`
}

// rows writes rows of a table of SpreadsheetML: "|" parts cells, and each cell is an element.
func rows(all ...string) string { return "<Row>" + strings.Join(all, "</Row>\n<Row>") + "</Row>" }

// cell writes a cell with attributes and a value of a type.
func cell(attrs, kind, value string) string {
	return "<Cell " + attrs + `><Data ss:Type="` + kind + `">` + value + "</Data></Cell>"
}

func str(value string) string { return cell("", "String", value) }

// TestWorkbooksOfXML reads workbooks that Excel 2003 writes in XML as tables.
func TestWorkbooksOfXML(t *testing.T) {
	head := str("Name") + str("Value")
	tests := []struct{ name, table, want string }{
		{"texts and numbers", rows(head, str("a")+cell("", "Number", "12")), "| Name | Value |\n| --- | --- |\n| a | 12 |\n"},
		{"a number as its format shows it", rows(head, str("a")+cell(`ss:StyleID="s3"`, "Number", "1234.5")), "| Name | Value |\n| --- | --- |\n| a | 1,234.50 |\n"},
		{"a format of the style above", rows(head, str("a")+cell(`ss:StyleID="s4"`, "Number", "1234.5")), "| Name | Value |\n| --- | --- |\n| a | 1,234.50 |\n"},
		{"a share", rows(head, str("a")+cell(`ss:StyleID="s2"`, "Number", "0.125")), "| Name | Value |\n| --- | --- |\n| a | 12.50% (=0.125) |\n"},
		{"a style of itself", rows(head, str("a")+cell(`ss:StyleID="loop"`, "Number", "0.125")), "| Name | Value |\n| --- | --- |\n| a | 0.125 |\n"},
		{"the style of a row", rows(head) + `<Row ss:StyleID="s3">` + str("a") + cell("", "Number", "1234.5") + "</Row>", "| Name | Value |\n| --- | --- |\n| a | 1,234.50 |\n"},
		{"the style of a column", `<Column/><Column ss:StyleID="s3"/>` + rows(head, str("a")+cell("", "Number", "1234.5")), "| Name | Value |\n| --- | --- |\n| a | 1,234.50 |\n"},
		{"a date", rows(head, str("a")+cell(`ss:StyleID="s1"`, "DateTime", "2006-02-28T00:00:00.000")), "| Name | Value |\n| --- | --- |\n| a | 02-28-06 (=2006-02-28) |\n"},
		{"a date before March of 1900", rows(head, str("a")+cell(`ss:StyleID="s1"`, "DateTime", "1900-01-05T00:00:00.000")), "| Name | Value |\n| --- | --- |\n| a | 01-05-00 (=1900-01-05) |\n"},
		{"a date without a format", rows(head, str("a")+cell("", "DateTime", "2006-02-28T00:00:00.000")), "| Name | Value |\n| --- | --- |\n| a | 2006-02-28 |\n"},
		{"a time without a format", rows(head, str("a")+cell("", "DateTime", "1899-12-31T12:30:00.000")), "| Name | Value |\n| --- | --- |\n| a | 12:30:00 |\n"},
		{"a duration", rows(head, str("a")+cell(`ss:StyleID="s5"`, "DateTime", "1900-01-01T01:30:00.000")), "| Name | Value |\n| --- | --- |\n| a | 25:30 (=PT25H30M) |\n"},
		{"truths and errors", rows(head, cell("", "Boolean", "1")+cell("", "Error", "#DIV/0!")), "| Name | Value |\n| --- | --- |\n| TRUE | #DIV/0! |\n"},
		{"an empty cell by an index", rows(str("A")+str("B")+str("C"), str("1")+cell(`ss:Index="3"`, "Number", "3")), "| A | B | C |\n| --- | --- | --- |\n| 1 |  | 3 |\n"},
		{"an index that goes back", rows(head, str("1")+cell(`ss:Index="1"`, "Number", "3")), "| Name | Value |\n| --- | --- |\n| 1 | 3 |\n"},
		{"an empty row by an index", rows(head, str("a")+str("b")) + `<Row ss:Index="9">` + str("c") + str("d") + "</Row>" + rows(str("e")+str("f")), "| Name | Value |\n| --- | --- |\n| a | b |\n\n| c | d |\n| --- | --- |\n| e | f |\n"},
		{"merged cells", rows(str("A")+str("B")+str("C"), cell(`ss:MergeDown="1"`, "String", "x")+str("1")+str("2"), `<Cell ss:Index="2"><Data ss:Type="Number">3</Data></Cell>`+str("4")), "| A | B | C |\n| --- | --- | --- |\n| x | 1 | 2 |\n| x | 3 | 4 |\n"},
		{"text with a form", rows(head, str("a")+`<Cell><ss:Data ss:Type="String" xmlns="http://www.w3.org/TR/REC-html40">1 <B>bold</B></ss:Data></Cell>`), "| Name | Value |\n| --- | --- |\n| a | 1 bold |\n"},
		{"a formula with its result", rows(head, str("a")+cell(`ss:Formula="=R[-1]C*2"`, "Number", "6")), "| Name | Value |\n| --- | --- |\n| a | 6 |\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := read(t, "book.xml", workbookOf(tt.table))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("## One\n\n"+tt.want, d.Text); diff != "" {
				t.Error(diff)
			}
			if d.Title != "Sales" || len(d.Notes) > 0 {
				t.Errorf("title %q, notes %q", d.Title, d.Notes)
			}
		})
	}
}

// TestWorkbooksOfXMLSayMore has what stands beside the cells of such a workbook.
func TestWorkbooksOfXMLSayMore(t *testing.T) {
	d, err := read(t, "book.xml", workbookOf(rows(str("Name")+str("Value"),
		str("a")+`<Cell ss:Formula="=SUM(R1C1)"/>`,
		str("b")+`<Cell><Data ss:Type="Number">7</Data><Comment ss:Author="x"><ss:Data xmlns="http://www.w3.org/TR/REC-html40"><B>why</B> 7</ss:Data></Comment></Cell>`)))
	if err != nil {
		t.Fatal(err)
	}

	if !strings.Contains(d.Text, "Comment on One!B3:") || !strings.Contains(d.Text, "why 7") {
		t.Errorf("text %q, want the comment", d.Text)
	}
	if len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "without a stored result, which have no value here: 1") {
		t.Errorf("notes %q, want that of one formula", d.Notes)
	}

	at := strings.Index(d.Text, "7 |")
	place := d.Layout.Locate(at, at+1)
	if place == nil || place.Sheet != "One" || place.Cell != "B3" {
		t.Errorf("the place of 7 is %+v, want One!B3", place)
	}
}

// TestHostileWorkbooksOfXML has workbooks whose counts lie.
func TestHostileWorkbooksOfXML(t *testing.T) {
	tests := []struct{ name, table, refusal string }{
		{"a cell far to the right", rows(cell(`ss:Index="2000000000"`, "String", "x")), "columns"},
		{"a row far down", `<Row ss:Index="99999999999999999999">` + str("a") + `</Row><Row ss:Index="2000000000">` + str("b") + "</Row>", ""},
		{"merged beyond the sheet", rows(cell(`ss:MergeAcross="2000000000" ss:MergeDown="2000000000"`, "String", "x"), str("y")), ""},
		{"a span of rows", `<Row ss:Span="2000000000"/>` + rows(str("a")), ""},
		{"a column for each", `<Column ss:Span="2000000000" ss:StyleID="s1"/>` + rows(str("a")), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := read(t, "book.xml", workbookOf(tt.table))
			switch refused := new(document.RefusedError); {
			case tt.refusal == "" && err != nil:
				t.Error(err)
			case tt.refusal == "" && !strings.HasPrefix(d.Text, "## One\n\n"):
				t.Errorf("text %q", d.Text)
			case tt.refusal != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tt.refusal)):
				t.Errorf("error %v, want one of %s", err, tt.refusal)
			}
		})
	}
}
