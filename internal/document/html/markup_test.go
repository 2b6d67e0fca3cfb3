package html_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/richtext"
)

const fraction = "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac></math>"

func TestWrite(t *testing.T) {
	for _, test := range []struct{ name, page, want string }{
		{"blocks", "<div> a\n <b>b</b>c<p>d<br>e&nbsp;f<hr>g", "a bc\nd\ne f\ng\n"},
		{"headings", "<h2>A <i>b</i></h2>x<h1>C</h1>", "## A b\n\nx\n\n# C\n"},
		{"left out", "<head><title>x</title></head><style>y</style><script>if (a<b) c</script>z<svg><text>q</text></svg><ruby>漢<rt>kan</rt></ruby>", "z漢\n"},
		{"lists", "<ul><li>a<ul><li>b</ul><li><p>c</p><p>d</p></ul><ol><li>e<li value=5>f</ol>g", "- a\n  - b\n- c\n  d\n1. e\n5. f\n\ng\n"},
		{"as it is", "<pre>a\n  b</pre>c", "a\n  b\nc\n"},
		{"tables", "x<table><thead><tr><th>A<th colspan=2>B|C</thead><tr><td rowspan=2>1<td>2<br>3<td><ul><li>4</ul><tr><td>5<td>6</table>y", "x\n\n| A | B\\|C | B\\|C |\n| --- | --- | --- |\n| 1 | 2 3 | - 4 |\n| 1 | 5 | 6 |\n\ny\n"},
		{"tables in tables", "<table><tr><td>a<table><tr><td>b<td>c</table><td>d</table>", "| a b c | d |\n| --- | --- |\n"},
		{
			"tables of values in tables", "<table><tr><td>a<table><tr><th>k<th>v<tr><td>x<td>1<tr><td>y<td>2</table><td>d<tr><td>e<td>f</table>",
			"| a | d |\n| --- | --- |\n| e | f |\n\n| k | v |\n| --- | --- |\n| x | 1 |\n| y | 2 |\n",
		},
		{
			"heads of two rows", "<table><tr><th rowspan=2>P<th colspan=2>H<tr><th>1<th>2<tr><td>x<td colspan=2>9</table>",
			"| P | H | H |\n| P | 1 | 2 |\n| --- | --- | --- |\n| x | 9 ||\n",
		},
		{
			"cells taller than their part", "<table><thead><tr><th rowspan=2>a<th rowspan=2>b<tbody><tr><td>1<td rowspan=5>2<tr><td>3</tbody><tfoot><tr><td>4<td>5</table>",
			"| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 2 |\n| 4 | 5 |\n",
		},
		{"deep", strings.Repeat("<table><tr><td>", 60) + "x" + strings.Repeat("</table>", 60) + "y", "x\ny\n"},
		{"a frame", "<table><tr><td><p>a<p>b</table>", "a\nb\n"},
		{"raised", "m<sup>2</sup> x<sup><a href=#1>3</a></sup>. <a href=x>link</a>", "m² x[^3]. link\n"},
		{"raised and lowered", "10<sup>&minus;6</sup> H<sub>2</sub>O 1<sup>st</sup> 10<sup><i>0</i>.5</sup> x<sub>i<sup>2</sup></sub> m<sup>2<a href=#1>3</a></sup>", "10⁻⁶ H₂O 1st 10^0.5 xi2 m²[^3]\n"},
		{"raised and never ended", "<p>a<sup>2<p>3</sup>4", "a²\n34\n"},
		{"equations", "it is " + fraction + ", so 3<math><mn>2</mn></math> 10<sup><math><mn>6</mn></math></sup><m:math><m:mi>x</m:mi></m:math>", "it is (a+b)/2, so 3 2 10⁶x\n"},
		{"equations on lines", "a<math display='block'><mi>x</mi></math>b<p><math><mi>y</mi><p>c<math><mi>z", "a\nx\nb\ny\ncz\n"},
		{"equations twice", "<span><span>" + fraction + "</span><img alt='x'><span aria-hidden='true'>a<span>+b</span></span></span>.<p aria-hidden='true'>c", "(a+b)/2.\nc\n"},
		{"equations in cells", "<table><tr><td>" + fraction + "<td>b</table>", "| (a+b)/2 | b |\n| --- | --- |\n"},
		{"equations left out", "<svg>" + fraction + "</svg>a", "a\n"},
		{"unclosed", "a<td>b</li></table></ul></h1>c", "a\nb\nc\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w richtext.Writer
			if err := html.Write(t.Context(), &w, strings.NewReader(test.page), html.Options{}); err != nil {
				t.Fatal(err)
			}
			d, err := w.Document()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("ended")
	cancel(ended)
	if err := html.Write(ctx, new(richtext.Writer), strings.NewReader("<p>x"), html.Options{}); !errors.Is(err, ended) {
		t.Errorf("got %v, want the cause of the context", err)
	}
}

// TestManyCells reads small tables of more cells than a document may have.
func TestManyCells(t *testing.T) {
	for _, test := range []struct {
		name, page string
		most       uint64 // bytes that are allocated in all
	}{
		{"columns", "<table>" + strings.Repeat("<tr><td colspan=1000>", 50_000), 32 << 20},
		{"rows", "<table><tr><td colspan=1000 rowspan=200000>" + strings.Repeat("<tr>", 200_000), 32 << 20},
		{"tables", strings.Repeat("<table><tr><td colspan=1000></table>", 5000), 400 << 20}, // the text has 36 MB, and grows
	} {
		t.Run(test.name, func(t *testing.T) {
			var w richtext.Writer
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := html.Write(t.Context(), &w, strings.NewReader(test.page), html.Options{})
			runtime.ReadMemStats(&after)
			if refused, ok := errors.AsType[*document.RefusedError](err); !ok || !strings.Contains(refused.Reason, "more than 4000000 cells") {
				t.Errorf("got %v, want one that refuses", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > test.most {
				t.Errorf("it took %d bytes", took)
			}
		})
	}
}
