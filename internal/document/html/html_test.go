package html_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/richtext"
)

// read returns the document that a page is.
func read(page, mediaType string) (*document.Document, error) {
	r, err := document.NewRegistry(html.Format())
	if err != nil {
		return nil, err
	}
	return r.Parse(context.Background(), document.Input{Name: "a.html", MediaType: mediaType, Content: strings.NewReader(page)})
}

func TestHTML(t *testing.T) {
	for _, test := range []struct {
		name string
		page string
		want string
	}{
		{"words", "one <b>two</b>three", "one twothree"},
		{"white space", " \n one \t\r\n <i> two</i> ", "one two"},
		{"paragraphs", "<p>one<p>two</p><div>three</div>four", "one\n\ntwo\n\nthree\nfour"},
		{"breaks", "one<br>two<br/><br>three<br><br><br>four", "one\ntwo\n\nthree\n\nfour"},
		{"heading", "<h1>Title</h1>text", "Title\n\ntext"},
		{"head", "<html><head><title>T &amp; U</title><style>x</style><meta x></head><body>text", "T & U\n\ntext"},
		{"list", "<ul><li>one<li>two</ul>three", "one\ntwo\n\nthree"},
		{"table", "<table><tr><td>a<td> b </td><th>c</th></tr>\n<tr><td>d</td><td></td><td>e</table>", "| a | b | c |\n| --- | --- | --- |\n| d |  | e |"},
		{"script", "one<script>if (a < b) '</p>'</script> two", "one two"},
		{"dropped in itself", "one<svg><svg>x</svg>y</svg>two<template>z</template>", "onetwo"},
		{"closed at once", "one<svg/>two", "onetwo"},
		{"dropped and never closed", "one<svg>two<noscript>three", "onetwothree"},
		{"script never closed", "one<script>two", "one"},
		{"comment", "one<!-- <p>two -->three", "onethree"},
		{"references", "a&amp;b &lt;c&gt; &#65;&#x42; &eacute;&nbsp;x&NotEqualTilde;", "a&b <c> AB é x≂̸"},
		{"references without semicolons", "&copy2011 &notit; &ampx &", "©2011 ¬it; &x &"},
		{"no references", "a & b &; &bogus; &# AT&T", "a & b &; &bogus; &# AT&T"},
		{"reference out of range", "x&#xFFFFFFF;y&#0;", "x\ufffdy\ufffd"},
		{"kept white space", "a<pre>\n one\r\n  two &amp;\tx\n</pre>b", "a\n\n one\n  two &\tx\n\n\nb"},
		{"raw text", "<xmp>a &amp; <b></xmp>c &amp;", "a &amp; <b>\n\nc &"},
		{"NUL", "a\x00b" + strings.Repeat("c", 100), "ab" + strings.Repeat("c", 100)},
		{"no-break spaces", "1\u00a0000&nbsp; &nbsp;x", "1 000 x"},
		{"not tags", "a < b > c <3", "a < b > c <3"},
		{"end of line in a tag", "one<p\nclass='x>y'>two", "one\n\ntwo"},
		{"cut off", "one<p class='", "one"},
		{"options", "<select><option>a<option selected>b</option><option>c</option></select>x", "b\nx"},
		{"options of which none is chosen", "<select><option>a</option><option>b</option></select>", "a\nb"},
		{"text area", "<textarea>\na\n b</textarea>", "a\n b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := read(test.page, "")
			if err != nil {
				t.Fatalf("Read: %v", err)
			}
			if diff := cmp.Diff(test.want, d.Text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			checkPage(t, test.page, d)
		})
	}
}

// TestScripts: raised and lowered digits and signs are such characters, and others do not
// lengthen a number.
func TestScripts(t *testing.T) {
	long := strings.Repeat("1", 400)
	for page, want := range map[string]string{
		"10<sup>6</sup> m<sup>2</sup> H<sub>2</sub>O":         "10⁶ m² H₂O",
		"10<sup>&minus;6</sup>, 10<SUP>\u22129</SUP>":         "10⁻⁶, 10⁻⁹",
		"10<sup> <b>1</b>2 </sup>m":                           "10 ¹² m",
		"1<sup>st</sup> x<sup>n</sup> Acme<sup>TM</sup>":      "1st xn AcmeTM",
		"10<sup>0.5</sup> 10<sup>n+1</sup> 10 <sup>1,2</sup>": "10^0.5 10^(n+1) 10 1,2",
		"10<sup>1,2 </sup>x 10<sub>a1</sub>":                  "10^(1,2) x 10_(a1)",
		"2015<sup>[1]</sup> 2015<sup> 1,2</sup>":              "2015[1] 2015 1,2",
		"2015<sup><a href=#n>1</a></sup>":                     "2015 1",
		"<a href=#n>2015<sup>1</sup></a>":                     "2015 1",
		"x<sub>i<sup>2</sup></sub>1":                          "xi²1",
		"a<sup>2 b<p>3":                                       "a2 b\n\n3",
		"a<sup>2<br>3</sup>4<sup/>5":                          "a2\n345",
		"a<sup>" + long + "</sup>1":                           "a" + long + "1",
		"a<sup></sup>1<sup> </sup>2":                          "a1 2",
		"<script><sup>1</script>2</sup>3":                     "23",
	} {
		d, err := read(page, "")
		if err != nil {
			t.Fatal(err)
		}
		if d.Text != want {
			t.Errorf("%s is %q, want %q", page, d.Text, want)
		}
		checkPage(t, page, d)
	}
}

// checkPage fails unless each character of a page's text comes from where the
// map says: the same character, one that is raised or lowered there, a reference, white
// space, or a place between two characters for white space or a sign that stands for an
// element.
func checkPage(t *testing.T, page string, d *document.Document) {
	t.Helper()
	var last [2]int
	for i, r := range d.Text {
		from, to := d.Source.Source(i, i+utf8.RuneLen(r))
		if same := [2]int{from, to} == last; from < last[1] && !same && !strings.Contains(d.Text, "| --- |") || to < from || to > len(page) {
			t.Fatalf("%q at %d comes from [%d, %d) of %d, behind %d", r, i, from, to, len(page), last)
		}
		last = [2]int{from, to}
		raised, _ := richtext.Form(page[from:to], richtext.Raised)
		lowered, _ := richtext.Form(page[from:to], richtext.Lowered)
		switch source := page[from:to]; {
		case isEquation(source):
		case source == string(r), raised == string(r), lowered == string(r), strings.HasPrefix(source, "&"):
		case source == "" && strings.ContainsRune("^_()|-\\", r), strings.HasPrefix(strings.ToLower(source), "<input"):
		case (r == ' ' || r == '\t' || r == '\n') && (source == "" || strings.IndexAny(source, " \t\r\n\f\u00a0") == 0):
		default:
			t.Fatalf("%q at %d comes from %q", r, i, source)
		}
	}
}

// isEquation reports whether a part of a page is an equation.
func isEquation(source string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.ToLower(source), "<"), ">")
	name, _, _ = strings.Cut(name, "/")
	name, _, _ = strings.Cut(strings.Join(strings.Fields(name), " "), " ")
	return strings.HasPrefix(source, "<") && (name == "math" || strings.HasSuffix(name, ":math"))
}

// TestEquations: an equation is written on a line, once, and comes from its element.
func TestEquations(t *testing.T) {
	const fraction = "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac></math>"
	const mathML = `<math alttext="{\displaystyle x^{2}}"><semantics><mrow class="MJX-TeXAtom-ORD"><mstyle displaystyle="true"><msup><mi>x</mi><mn>2</mn></msup></mstyle></mrow><annotation encoding="application/x-tex">{\displaystyle x^{2}}</annotation></semantics></math>`
	number := func(n string) string { return "<math><mn>" + n + "</mn></math>" }
	const array = "<math display=block><mtable><mtr><mtd>a</mtd></mtr><mtr><mtd>b</math>"
	for page, want := range map[string]string{
		"<p>it is " + fraction + ", so": "it is (a+b)/2, so",
		`<p>it is <span class="mwe-math-element"><span class="mwe-math-mathml-inline" style="display: none;">` + mathML + `</span><img src="x.svg" aria-hidden="true" alt="{\displaystyle x^{2}}"></span>.`: "it is x².",
		`it is <span class="katex"><span class="katex-mathml">` + mathML + `</span><span class="katex-html" aria-hidden="true"><span class="base">x<span>2</span></span></span></span>.`:                    "it is x².",
		`a <span class="katex-display"><span class="katex-mathml">` + strings.Replace(mathML, "<math", `<math display="block"`, 1) + `</span><span aria-hidden="true">x2</span></span>b`:                    "a\nx²\nb",
		mathML + ` <span aria-hidden="true">b</span>`:                      "x² b",
		mathML + `c<span aria-hidden="true">b</span>`:                      "x²cb",
		mathML + `<span aria-hidden="true">b`:                              "x²b",
		mathML + `<i aria-hidden="true">b</i>`:                             "x²b",
		"a" + strings.ReplaceAll(array, "<m", "<M") + "b":                  "a\na\nb\nb",
		"<p>a</p>" + array + "<p>b":                                        "a\n\na\nb\n\nb",
		"<table><tr><td>" + fraction + "</td><td>b</table>":                "(a+b)/2\tb",
		"3" + number("2") + number("4"):                                    "3 2 4",
		"10<sup>" + number("6") + "</sup> H<sub>" + number("2") + "</sub>": "10⁶ H₂",
		"10<sup>" + fraction + "</sup> 10<sup>" + number("n") + "x":        "10^((a+b)/2) 10nx",
		"a<math><mi>x</mi><p>b":                                            "ax\n\nb",
		"a<math><mi>x":                                                     "ax",
		"a <math></math> b<math/>c":                                        "a bc",
		"<svg>" + fraction + "</svg>b":                                     "b",
		"<m:math><m:mi>x</m:mi></m:math>":                                  "x",
	} {
		d, err := read(page, "")
		if err != nil {
			t.Fatal(err)
		}
		if d.Text != want {
			t.Errorf("%s is %q, want %q", page, d.Text, want)
		}
		checkPage(t, page, d)
	}
	page := "<p>it is " + fraction + ", so"
	d, err := read(page, "")
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(d.Text, "+b")
	if from, to := d.Source.Source(at, at+2); page[from:to] != fraction {
		t.Errorf("a part of an equation comes from %q, want all of it", page[from:to])
	}
}

// TestBoundsOfPages: what a page may make the parser hold is bounded.
func TestBoundsOfPages(t *testing.T) {
	parse := func(page string) (*document.Document, error) {
		return html.Format().Parse(t.Context(), document.Input{Content: strings.NewReader(page)})
	}
	var refused *document.RefusedError
	if _, err := parse("<p>" + strings.Repeat("&amp;", 2_000_001)); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "character references") {
		t.Errorf("of many references: %v", err)
	}
	prose := strings.Repeat("The supplier delivers the goods. ", 20)
	for depth, kept := range map[int]bool{10: false, 20_000: true} {
		d, err := parse("<nav>Basket</nav>" + strings.Repeat("<div>", depth) + prose + strings.Repeat("</div>", depth))
		if err != nil || strings.Contains(d.Text, "Basket") != kept || !strings.Contains(d.Text, "supplier") {
			t.Errorf("of %d elements within each other: navigation is kept: %t, want %t, %v", depth, !kept, kept, err)
		}
	}
}

func FuzzHTML(f *testing.F) {
	for _, seed := range []string{
		"<p>one<p>two</p>", "a&ampb&#x;<pre>\n x\r\n</pre>", "<table><tr><td>a<td>b", "<svg><noscript><template>x", "<title>x</tit",
		"<script>a</scr", "<!-- x", "<![CDATA[x]]>", "</", "<xmp>&amp;", "&NotEqualTilde;&notit;&#65", "\u00a0 \x00", "<textarea>\r\nx",
		"10<sup>&minus;6</sup> 10<sup>a1 </sup> H<sub>2</sub>O 1<sup><a>1</a>", "<plaintext>a</plaintext>&lt;", "<a b='c", "<?x?>y",
		"<math><mfrac><mi>a</mi><mn>2</mn></mfrac></math><span aria-hidden=true>x</span>", "10<sup><math><mn>6<p>x", "<td><math display=block><mtable><mtr><mtd>a<mtr></td>b",
		"<nav>" + menu + "</nav>" + story + "<footer>x</footer>", story + "<div class=ad>x<svg></div></svg></div>",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, page string) {
		if !utf8.ValidString(page) || strings.HasPrefix(page, "\ufeff") {
			t.Skip("offsets of the page are not those of the file")
		}
		d, err := read(page, "text/html; charset=utf-8")
		if err != nil {
			if !errors.As(err, new(*document.RefusedError)) {
				t.Fatalf("Read: %v", err)
			}
			return
		}
		if !utf8.ValidString(d.Text) {
			t.Fatalf("text is not UTF-8: %q", d.Text)
		}
		checkPage(t, page, d)
	})
}

func TestHTMLOfACharset(t *testing.T) {
	page := "<p>Gr\xf6\xdfe &auml;<b>x</b>"
	d, err := read(page, "text/html; charset=latin1")
	if err != nil {
		t.Fatal(err)
	}
	if d.Text != "Größe äx" {
		t.Fatalf("got %q", d.Text)
	}
	for _, test := range []struct{ text, source string }{{"Größe", "Gr\xf6\xdfe"}, {"ß", "\xdf"}, {"ä", "&auml;"}, {"x", "x"}} {
		i := strings.Index(d.Text, test.text)
		from, to := d.Source.Source(i, i+len(test.text))
		if got := page[from:to]; got != test.source {
			t.Errorf("%q comes from %q, want %q", test.text, got, test.source)
		}
	}
}

// TestCells: the cells of a row stand on a line, with tabs between them, also those that
// have paragraphs in them, and empty ones; tables that lay out a page do not join their
// columns.
func TestCells(t *testing.T) {
	for page, want := range map[string]string{
		"<table><tr><td><p>a</p></td><td><p>b</p></td></tr><tr><td><p>1</p></td><td><p>2</p></td></tr></table>x": "| a | b |\n| --- | --- |\n| 1 | 2 |\n\nx",
		"<table><tr><th>a<th>b<th>c<tr><td><td>2<td><tr><td>3<td><td>5</table>":                                  "| a | b | c |\n| --- | --- | --- |\n|  | 2 |  |\n| 3 |  | 5 |",
		"y<table><tr><td><div></div></td><td><div>2</div></td></tr></table>":                                     "y\n\n\t2",
		"<table><tr><td><p>menu</p><p>more</p></td><td><p>main</p></td></tr></table>":                            "menu\n\nmore\n\nmain",
		"<table><tr><td>a<table><tr><td>b</td><td>c</td></tr></table></td><td>d</td></tr></table>":               "a\n\nb\tc\n\nd",
		`in March<a href="#n"><sup>1</sup></a> and 10<sup>2</sup>`:                                               "in March 1 and 10²",
	} {
		d, err := read(page, "")
		if err != nil {
			t.Fatal(err)
		}
		if d.Text != want {
			t.Errorf("%s is %q, want %q", page, d.Text, want)
		}
	}
}
