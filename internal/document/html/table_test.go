package html_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
)

// TestTables: tables of values stand in the text as tables, whatever their tags leave out.
func TestTables(t *testing.T) {
	for _, test := range []struct{ name, page, want string }{
		{"heads and caption", "<table><caption>Cups <b>won</b></caption><thead><tr><th>Team<th>Cups</thead><tbody><tr><td>Blues<td>1</table>", "Cups won\n\n| Team | Cups |\n| --- | --- |\n| Blues | 1 |"},
		{"two rows of heads", "<table><thead><tr><th rowspan=2>Month<th colspan=2>Money<tr><th>in<th>out</thead><tr><td>May<td>3<td>2</table>", "| Month | Money | Money |\n| Month | in | out |\n| --- | --- | --- |\n| May | 3 | 2 |"},
		{"a head that goes on in values", "<table><tr><th rowspan=2>Part<th colspan=2>Net<tr><td>EUR<td>USD<tr><td>Bolt<td>1<td>2</table>", "| Part | Net | Net |\n| Part | EUR | USD |\n| --- | --- | --- |\n| Bolt | 1 | 2 |"},
		{"a first row that is not said to be a head", "<table><tr><td rowspan=2>Part<td colspan=2>Net<tr><td>EUR<td>USD<tr><td>Bolt<td>1<td>2</table>", "| Part | Net | Net |\n| Part | EUR | USD |\n| --- | --- | --- |\n| Bolt | 1 | 2 |"},
		{"a form", "<table><tr><td rowspan=2>Buyer<td colspan=2>ACME<tr><td>Street 5<td>Paris<tr><td>Sum<td>1<td>2</table>", "| Buyer | ACME | ACME |\n| --- | --- | --- |\n| Buyer | Street 5 | Paris |\n| Sum | 1 | 2 |"},
		{"a cell of several rows and columns", "<table><tr><td rowspan=2 colspan=2>Logo<td>Net<tr><td>EUR<tr><td>Bolt<td>M<td>1</table>", "| Logo | Logo | Net |\n| --- | --- | --- |\n| Logo || EUR |\n| Bolt | M | 1 |"},
		{"a name of several rows and columns", "<table><tr><th rowspan=2 colspan=2>Logo<th>Net<tr><td>EUR<tr><td>Bolt<td>M<td>1</table>", "| Logo | Logo | Net |\n| --- | --- | --- |\n| Logo || EUR |\n| Bolt | M | 1 |"},
		{"a cell of several rows", "<table><tr><th>Year<th>Month<tr><td rowspan=2>2025<td>May<tr><td>June</table>", "| Year | Month |\n| --- | --- |\n| 2025 | May |\n| 2025 | June |"},
		{"rows to the end", "<table><tr><th>Year<th>Month<tr><td rowspan=0>2025<td>May<tr><td>June</table>", "| Year | Month |\n| --- | --- |\n| 2025 | May |\n| 2025 | June |"},
		{"heads that are taller than their part", "<table><thead><tr><th rowspan=2>a<th rowspan=2>b</thead><tbody><tr><td>1<td>2<tr><td>3<td>4</table>", "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |"},
		{"cells to the end of their part", "<table><tr><th>Year<th>Month<tbody><tr><td rowspan=0>2025<td>May<tr><td>June<tbody><tr><td rowspan=9>2026<td>May</tbody><tr><td>2027<td>May</table>", "| Year | Month |\n| --- | --- |\n| 2025 | May |\n| 2025 | June |\n| 2026 | May |\n| 2027 | May |"},
		{"a cell of several columns", "<table><tr><th>a<th>b<th>c<tr><td colspan=2>sum<td>5</table>", "| a | b | c |\n| --- | --- | --- |\n| sum || 5 |"},
		{"a foot above", "<table><tr><th>a<th>b<tfoot><tr><td>sum<td>1</tfoot><tbody><tr><td>x<td>1</table>", "| a | b |\n| --- | --- |\n| x | 1 |\n| sum | 1 |"},
		{"nested", "<table><tr><th>step<th>do<tr><td>1<td>see <table><tr><th>if<th>then<tr><td>yes<td>go</table> below</table>", "| step | do |\n| --- | --- |\n| 1 | see below |\n\n| if | then |\n| --- | --- |\n| yes | go |"},
		{"in one that lays out", "<table role=presentation><tr><td>menu<td><table><tr><th>a<th>b<tr><td>1<td>2</table></table>", "menu\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"},
		{"bars, lines and spaces", "<table><tr><th>a|b<th>c<tr><td> x<br>y&nbsp; z <td><p>1</p></table>", "| a\\|b | c |\n| --- | --- |\n| x y z | 1 |"},
		{"hidden", "<table><tr><th>a<th>b<tr><td>1<span style='display: none'>007</span><td hidden>x<td>2</table>", "| a | b |\n| --- | --- |\n| 1 | 2 |"},
		{"inputs", "<table><tr><th>Name<th>Paid<tr><td><input value='Bob'><td><input type=checkbox checked><input type=hidden value=7></table>", "| Name | Paid |\n| --- | --- |\n| Bob | [x] |"},
		{"empty cells", "<table><tr><th>a<th>b<th>c<tr><td><td>2<td><tr><td></table>", "| a | b | c |\n| --- | --- | --- |\n|  | 2 |  |"},
		{"rows that overlap", "<table><tr><th>a<th>b<tr><td>1<td rowspan=3>x<tr><td colspan=2>2<tr><td>3</table>", "| a | b |\n| --- | --- |\n| 1 | x |\n| 2 ||\n| 3 | x |"},
		{"never closed", "<table><tr><th>a<th>b<tr><td>1<td>2", "| a | b |\n| --- | --- |\n| 1 | 2 |"},
		{"beside text", "<p>one<table><tr><th>a<th>b<tr><td>1<td>2</table>two", "one\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\ntwo"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := html.FullFormat().Parse(t.Context(), document.Input{Content: strings.NewReader(test.page)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkPage(t, test.page, d)
		})
	}
}

// TestTablesOfMainText: what is beside the main text is left out, and its tables are kept.
func TestTablesOfMainText(t *testing.T) {
	page := "<body><nav><a href=x>Home</a></nav><main><p>" + strings.Repeat("The supplier delivers the goods. ", 20) + "</p><table><tr><th>Team<th>Cups<tr><td>Blues<td>1</table></main></body>"
	d, err := html.Format().Parse(t.Context(), document.Input{Content: strings.NewReader(page)})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(d.Text, "Home") || !strings.HasSuffix(d.Text, "| Team | Cups |\n| --- | --- |\n| Blues | 1 |") {
		t.Errorf("got %q", d.Text)
	}
}

// TestTablesThatCostMuch reads tables that say much in few bytes: in time, and within their
// bounds, or they are refused.
func TestTablesThatCostMuch(t *testing.T) {
	testenv.Lengthy(t)

	for name, page := range map[string]string{
		"a million columns":    "<table><tr><th>a<th>b<tr>" + strings.Repeat("<td>", 1_000_000),
		"wide and long":        "<table><tr>" + strings.Repeat("<td colspan=1000>", 3000) + strings.Repeat("<tr><td>x", 100_000),
		"tall cells":           "<table><tr><th>a<th>b" + strings.Repeat("<tr><td rowspan=65534>"+strings.Repeat("x", 1000), 2000),
		"wide heads":           "<table><tr>" + strings.Repeat("<th colspan=1000>"+strings.Repeat("x", 1000), 100),
		"tables within tables": strings.Repeat("<table><tr><th>a<th>b<tr><td>", 3000),
		"a long cell":          "<table><tr><th>a<th>b<tr><td>" + strings.Repeat("x ", 1<<20) + "<td>1",
		"a long head":          "<table><tr><th>" + strings.Repeat("x", 1<<20) + "<th>b" + strings.Repeat("<tr><td>1<td>"+strings.Repeat("y", 1<<13), 500),
		"spans without an end": "<table>" + strings.Repeat("<tr><td rowspan=0 colspan=9>x<td>y", 3000),
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			d, err := html.FullFormat().Parse(t.Context(), document.Input{Content: strings.NewReader(page)})
			if err == nil && len(d.Text) > 64<<20 {
				t.Errorf("a text of %d bytes of a page of %d", len(d.Text), len(page))
			}
			t.Logf("%v, %v", time.Since(begun).Round(time.Millisecond), err)
		})
	}
}
