package equation_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/equation"
	"github.com/coditect/mapreduce/internal/document/xmlread"
)

// readXML returns the text of an equation in XML.
func readXML(content string) (text string, err error) {
	d := xmlread.New("equation", strings.NewReader(`<m:math xmlns:m="m">`+content+`</m:math>`), document.Limits{})
	err = d.Document(func(e xml.StartElement) error {
		text, err = equation.ReadMathML(d, e)
		return err
	})
	return text, err
}

// readPage returns the texts of the equations of a page, and the page without them.
func readPage(page string) (equations []string, rest string) {
	z := html.NewTokenizer(strings.NewReader(page))
	var b strings.Builder
	var open *equation.Page
	end := func() {
		if open != nil {
			equations = append(equations, open.Text())
		}
		open = nil
	}
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			end()
			return equations, b.String()
		}
		raw := string(z.Raw())
		tag, more := []byte(nil), false
		if kind != html.TextToken {
			tag, more = z.TagName()
		}
		if open != nil {
			taken := open.Read(kind, string(tag), z, more)
			if open.Ended() {
				end()
			}
			if taken {
				continue
			}
		}
		if kind == html.StartTagToken {
			if open = equation.OnPage(string(tag), z, more); open != nil {
				continue
			}
		}
		b.WriteString(raw)
	}
}

// tag is an element of MathML with its content.
func tag(name string, content ...string) string {
	element, _, _ := strings.Cut(name, " ")
	return "<" + name + ">" + strings.Join(content, "") + "</" + element + ">"
}

// tokens are a token for each word: a number, a letter or a word, or an operator.
func tokens(words string) string {
	var b strings.Builder
	for w := range strings.FieldsSeq(words) {
		name := "mo"
		switch c, _ := utf8.DecodeRuneInString(w); {
		case '0' <= c && c <= '9':
			name = "mn"
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', 'α' <= c && c <= 'ω':
			name = "mi"
		}
		b.WriteString(tag(name, strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(w)))
	}
	return b.String()
}

// many is a row of tokens.
func many(words string) string { return tag("mrow", tokens(words)) }

// table is a table of rows of words; cells are parted by &.
func table(name string, rows ...string) string {
	var b strings.Builder
	for _, r := range rows {
		b.WriteString("<mtr>")
		for c := range strings.SplitSeq(r, "&") {
			b.WriteString(tag("mtd", tokens(c)))
		}
		b.WriteString("</mtr>")
	}
	return tag(name, b.String())
}

func TestMathML(t *testing.T) {
	square := func(base string) string { return tag("msup", base, tokens("2")) }
	matrix := table("mtable", "a & b", "c & d")
	toZero := tag("munder", tokens("lim"), many("x → 0"))
	for _, test := range []struct{ name, xml, want string }{
		{"quadratic formula", tokens("x =") + tag("mfrac", tag("mrow", tokens("- b ±"), tag("msqrt", square(tokens("b")), tokens("- 4 a c"))), many("2 a")), "x=(-b±√(b²-4ac))/(2a)"},
		{"a law of Maxwell", tokens("∇ ×") + tag("mover", tokens("E"), tokens("→")) + tokens("= −") + tag("mfrac", tag("mrow", tokens("∂"), tag("mover", tokens("B"), tokens("→"))), many("∂ t")), "∇×E\u20d7=−∂B\u20d7/∂t"},
		{"sum with limits", tag("munderover", tokens("∑"), many("k = 0"), tokens("n")) + tag("msup", tokens("x"), tokens("k")), "∑_(k=0)^n x^k"},
		{"sum with scripts", tag("msubsup", tokens("∑"), many("k = 0"), tokens("n")) + tokens("k"), "∑_(k=0)^n k"},
		{"sum in a row of its own", tokens("2") + tag("munder", tag("mstyle", tokens("∑")), tokens("i")) + tokens("x + y"), "2 ∑_i x+y"},
		{"integral", tag("msubsup", tokens("∫"), tokens("0"), tokens("1")) + tokens("f ( x )") + `<mspace width="0.167em"/>` + tokens("d x"), "∫₀¹ f(x) dx"},
		{"sum over all", tokens("a ∑ x"), "a ∑x"},
		{"nested roots", tag("msqrt", tokens("1 +"), tag("msqrt", tokens("2"), tag("mroot", tokens("x"), tokens("3")))), "√(1+√(2∛(x)))"},
		{"root of a degree", tag("mroot", many("x + 1"), tokens("n")), "√[n](x+1)"},
		{"limit", toZero + tag("mfrac", many("sin x"), tokens("x")), "lim_(x→0) (sin x)/x"},
		{"limit of a letter", toZero + tokens("x"), "lim_(x→0) x"},

		{"functions", tokens("2 sin x + cos ( y )"), "2 sin x+cos(y)"},
		{"applied function", tokens("f \u2061 ( x ) + g \u2061 y"), "f(x)+g y"},
		{"applied power", square(tokens("sin")) + tokens("\u2061 ( x )"), "sin²(x)"},
		{"index of a function", tag("msub", tokens("log"), tokens("b")) + tokens("( x )"), "log_b (x)"},
		{"products that are not shown", tokens("2 \u2062 3 \u2062 x"), "2 3x"},
		{"mixed number", tokens("3 \u2064") + tag("mfrac", tokens("1"), tokens("2")), "3 1/2"},
		{"indices that are not parted", tag("msub", tokens("a"), many("i \u2063 j")), "a_(ij)"},
		{"decimal comma", tokens("1") + many(",") + tokens("5"), "1,5"},
		{"words of an operator", tokens("a") + tag("mo", "mod") + tokens("n"), "a mod n"},
		{"text", tokens("x") + tag("mtext", "\u00a0if\u00a0") + tokens("x > 0"), "x if x>0"},
		{"text without spaces", tokens("5") + tag("mtext", " m ") + tokens("/") + tag("mtext", "s"), "5 m/s"},
		{"string", tag("ms", "a b"), `"a b"`},

		{"fraction of sums", tag("mfrac", many("a + b"), many("c - d")), "(a+b)/(c-d)"},
		{"fraction of an absolute value", tag("mfrac", tokens("1"), many("| x |")), "1/|x|"},
		{"fraction of values", tag("mfrac", tokens("1"), many("| x | + | y |")), "1/(|x|+|y|)"},
		{"binomial coefficient", tokens("(") + tag(`mfrac linethickness="0pt"`, tokens("n"), tokens("k")) + tokens(")"), "(n¦k)"},
		{"thick bar", tag(`mfrac linethickness="0.1em"`, tokens("n"), tokens("k")), "n/k"},
		{"power of brackets", square(many("( x + 1 )")), "(x+1)²"},
		{"power of the last bracket", tokens("2 ( x + 1") + square(tokens(")")) + tokens("y"), "2(x+1)²y"},
		{"power of the last bar", tokens("| x") + square(tokens("|")), "|x|²"},
		{"fraction below a bracket with a power", tag("mfrac", tokens("a"), tag("mrow", tokens("( x + 1"), square(tokens(")")))), "a/(x+1)²"},
		{"power of a sum", square(many("x + 1")), "(x+1)²"},
		{"prime", tag("msup", tokens("f"), tag("mo", "′")) + tokens("( x )"), "f′(x)"},
		{"both scripts", tag("msubsup", tokens("x"), tokens("1"), tokens("2")), "x₁²"},
		{"no base", tokens("H") + tag("msub", "<mrow/>", tokens("2")) + tokens("O"), "H₂O"},
		{"isotope", tag("mmultiscripts", tokens("C"), "<mprescripts/>", tokens("6"), tokens("14")), "₆¹⁴C"},
		{"tensor", tag("mmultiscripts", tokens("R"), tokens("i"), "<none/>", tokens("j"), tokens("k")), "R_(ij)^k"},
		{"scripts on both sides", tag("mmultiscripts", tokens("X"), "<mrow/>", tokens("2"), "<mprescripts/>", "<mrow/>", tokens("4")), "⁴X²"},
		{"scripts without a base", tag("mmultiscripts"), ""},

		{"accents", tag("mover", tokens("x"), tokens("^")) + tag("mover", tokens("y"), tokens("~")), "x\u0302y\u0303"},
		{"bars", tag("mover", tokens("x"), tokens("¯")) + tag("mover", many("a + b"), tokens("‾")) + tag("munder", tokens("z"), tokens("_")), "x\u0305¯(a+b)z\u0332"},
		{"brace", tag("munder", tag("munder", many("x + y"), tokens("⏟")), tag("mtext", "whole")), "⏟(x+y)_(whole)"},
		{"brace above", tag("mover", many("x + y"), tokens("⏞")), "⏞(x+y)"},
		{"above an operator", tokens("a") + tag("mover", tokens("="), tag("mtext", "def")) + tokens("b"), "a(=)^(def)b"},
		{"above and below", tag("munderover", tokens("→"), tokens("a"), tokens("b")), "(→)_a^b"},

		{"matrix", tokens("A =") + matrix, "A=[a b; c d]"},
		{"matrix in brackets", tokens("A = (") + matrix + tokens(") x"), "A=(a b; c d)x"},
		{"determinant", tag("mrow", tokens("|"), matrix, tokens("|")), "|a b; c d|"},
		{"transposed", tokens("[") + matrix + tag("msup", tokens("]"), tokens("T")), "[a b; c d]^T"},
		{"matrix and more in brackets", tokens("(") + matrix + tokens("+ 1 )"), "([a b; c d]+1)"},
		{"matrix in a fence", tag(`mfenced open="[" close="]"`, matrix), "[a b; c d]"},
		{"cases", tokens("f =") + tag("mrow", tokens("{"), table("mtable", "x", "- x")), "f={x; -x"},
		{"cases in a sum", tag("mrow", tokens("{"), tag("mrow", table("mtable", "x", "- x"))) + tokens("+ 1"), "{[x; -x]+1"},
		{"matrix in a row of its own and more in brackets", tokens("(") + tag("mrow", matrix) + tokens("+ 1 )"), "([a b; c d]+1)"},
		{"cases with conditions", tokens("{") + tag("mtable", tag("mtr", tag("mtd", tokens("x ,")), tag("mtd", tag("mtext", "if\u00a0"), tokens("x ≥ 0")))), "{x, (if x≥0)"},
		{"empty cells", table("mtable", "& 1", "2 &"), "[□ 1; 2 □]"},
		{"equations", table("mtable", "a = 1", "b = 2"), "a=1\nb=2"},
		{"aligned equations", table(`mtable displaystyle="true"`, "a & = 1", "b & = 2"), "a=1\nb=2"},
		{"aligned in a fraction", tag("mfrac", table(`mtable columnalign="right left"`, "a & = 1", "b & = 2"), tokens("2")), "[a=1; b=2]/2"},
		{"numbered equation", tag(`mtable displaystyle="true"`, tag("mlabeledtr", tag("mtd", tag("mtext", "(7)")), tag("mtd", tokens("a = 1")))), "a=1 (7)"},
		{"row without a table", tag("mtr", tag("mtd", tokens("a")), tag("mtd", tokens("b"))), "[a b]"},
		{"table without rows", tag("mtable", tokens("a"), tag("mtd", tokens("b"))), "a\nb"},

		{"fence", tokens("f") + tag("mfenced", tokens("x"), tokens("y")), "f(x,y)"},
		{"other fence", tag(`mfenced open="[" close="" separators=" ; "`, tokens("x"), many("y + 1")), "[x;y+1"},
		{"styles", tag("mstyle", tag("mpadded", tokens("a +"), tag("merror", tokens("b")))), "a+b"},
		{"phantom", tokens("a") + tag("mphantom", tokens("b")) + tag("mfrac", tag("mphantom", tokens("1")), tokens("2")), "a/2"},
		{"action", tag("maction", tokens("a"), tokens("b")), "ab"},
		{"enclosed", tag(`menclose notation="box"`, tokens("a + b")) + tag(`menclose notation="radical"`, tokens("2")), "a+b√(2)"},
		{"spaces", tokens("a") + `<mspace width="1em"/><mspace width="2em"/>` + tokens("b") + `<mspace width="0"/><mspace/><mspace width="-1em"/>` + tokens("c") + `<mspace linebreak="newline"/>` + tokens("d"), "a bc\nd"},
		{"annotations", tag("semantics", many("a + b"), tag(`annotation encoding="application/x-tex"`, "a+b"), tag(`annotation-xml encoding="MathML-Content"`, tag("apply", "<plus/>", tag("ci", "a")))), "a+b"},
		{"TeX alone", tag("semantics", tag(`annotation encoding="StarMath 5.0"`, "a over b"), tag(`annotation encoding="application/x-tex"`, ` \frac{a}{b} `)), `\frac{a}{b}`},
		{"StarMath alone", tag("semantics", tag(`annotation encoding="StarMath 5.0"`, "a over b")), ""},

		{"text beside elements", " a " + tag("mfrac", "b", tokens("1"), "c", tokens("2 3")), "a 1/2 bc3"},
		{"too few parts", tag("mfrac") + tag("msup", tokens("x")) + tag("munderover") + tag("mroot"), "/x√()"},
		{"elements in a token", tag("mi", "a", tokens("b")) + tokens("c"), "ab c"},
		{"unknown elements", tag("new", tokens("a"), "b"), "ab"},
		{"nothing", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := readXML(test.xml)
			if err != nil || got != test.want {
				t.Errorf("in XML: got %q, %v, want %q", got, err, test.want)
			}
			onPage, rest := readPage("<p><MATH>" + test.xml + "</MATH></p>")
			if len(onPage) != 1 || onPage[0] != test.want || rest != "<p></p>" {
				t.Errorf("on a page: got %q and %q, want %q", onPage, rest, test.want)
			}
		})
	}
}

// TestOnPage: an equation of a page ends where a browser ends it, so that one that never
// ends does not take in the rest of the page.
func TestOnPage(t *testing.T) {
	for page, want := range map[string]struct{ equations, rest string }{
		"a<math><mi>x</mi></math>b":                                      {"x", "ab"},
		"a<math><mi>x</mi><p>b<math><mi>y</mi></math>":                   {"x|y", "a<p>b"},
		"<td><math><mi>x</mi></td><td>b":                                 {"x", "<td></td><td>b"},
		"<a href=x><math><mi>x</mi></a>b":                                {"x", "<a href=x></a>b"},
		"<math><mi>x":                                                    {"x", ""},
		"<math><a href=y><mi>x</mi></a><mi>y</mi></math>b":               {"xy", "b"},
		"<math><mtext>if <b>not</b><br> x</mtext><mi>y</mi></math>b":     {"if not x y", "b"},
		"<math><mtext><b>x</mtext></p>b":                                 {"x", "</p>b"},
		"<math><mtext>x<script>b</script>":                               {"x", "<script>b</script>"},
		"<math><mi>x</mi><math><mi>y</mi></math><mi>z</mi></math>b":      {"xyz", "b"},
		"<math><mfrac><mn>1</mn><mn>2</math>b":                           {"1/2", "b"},
		"<math><mn>1</mn></mfrac></mi><mi>x</mi></math>b":                {"1x", "b"},
		"<m:math><m:msup><m:mi>x</m:mi><m:mn>2</m:mn></m:msup></m:math>": {"x²", ""},
		"<math><mspace width='1em'/><mi/><mi>x&minus;&amp;</mi></math>":  {"x−&", ""},
		"<math/>b": {"", "<math/>b"},
		"<math><!-- x --><mi>\x00y\u200b</mi></math>": {"y", ""},
		"<math><semantics><mi>x</mi><annotation-xml encoding='text/html'><p>x</p></annotation-xml></semantics></math><p>b": {"x", "<p>b"},
	} {
		equations, rest := readPage(page)
		if got := strings.Join(equations, "|"); got != want.equations || rest != want.rest {
			t.Errorf("%s: got %q and %q, want %q and %q", page, got, rest, want.equations, want.rest)
		}
	}
}

// TestBlock tells equations on lines of their own.
func TestBlock(t *testing.T) {
	for begin, want := range map[string]bool{"<math>": false, "<math display=block>": true, "<math mode=display>": true, "<math displaystyle=true display=inline>": false} {
		z := html.NewTokenizer(strings.NewReader(begin))
		z.Next()
		name, more := z.TagName()
		if got := equation.OnPage(string(name), z, more).Block(); got != want {
			t.Errorf("%s is a block: %t, want %t", begin, got, want)
		}
	}
}

// TestHostileMathML: an equation made to be large is not much larger than its MathML, and is
// read in time that is linear in that.
func TestHostileMathML(t *testing.T) {
	nested := func(n int, begin, end string) string {
		return strings.Repeat(begin, n) + "<mi>x</mi>" + strings.Repeat(end, n)
	}
	long := strings.Repeat("x+", 500_000)
	for _, test := range []struct{ name, page, want string }{
		{"deep roots", nested(80, "<msqrt>", "</msqrt>"), strings.Repeat("√(", 50) + "x" + strings.Repeat(")", 50)},
		{"deep rows", nested(120_000, "<mrow>", "</mrow>"), "x"},
		{"deep rows never ended", strings.Repeat("<mrow>", 90_000) + strings.Repeat("</mfrac>", 200_000), ""},
		{"deep fractions", nested(100_000, "<mfrac>", "<mi>y</mi></mfrac>"), ""},
		{"deep tokens", nested(120_000, "<mi>", "</mi>"), "x"},
		{"deep meanings of a long text", strings.Repeat("<semantics><mrow><mi>y</mi>", 80) + long, ""},
		{"long text in deep scripts", strings.Repeat("<msup><mrow><mi>y</mi>", 80) + tag("mtext", long), ""},
		{"many elements", strings.Repeat("<mi>x</mi>", 150_000), strings.Repeat("x", 150_000)},
		{"many cells", tag("mtable", strings.Repeat("<mtr><mtd/></mtr>", 120_000)), ""},
		{"many scripts", tag("mmultiscripts", strings.Repeat("<mi>x</mi>", 90_000)), ""},
		{"long separators", tag(`mfenced separators="`+strings.Repeat(";", 10_000)+`"`, strings.Repeat("<mi/>", 10_000)), "(" + strings.Repeat(";", 9_999) + ")"},
		{"tables in brackets", strings.Repeat("(<mtable><mtr><mtd><mi>x</mi></mtd></mtr></mtable>", 10_000), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			equations, _ := readPage("<math>" + test.page)
			if len(equations) != 1 || len(equations[0]) > 3*len(test.page) {
				t.Fatalf("got %d equations, of %d bytes: %.100q", len(equations), len(test.page), equations)
			}
			if got := equations[0]; test.want != "" && got != test.want {
				t.Errorf("got %.200q, want %.200q", got, test.want)
			}
		})
	}
}

// TestMathMLErrors ends with what reading the XML ends with.
func TestMathMLErrors(t *testing.T) {
	for _, content := range []string{"<mi>x", strings.Repeat("<mrow>", 300)} {
		if _, err := readXML(content); !errors.As(err, new(*document.RefusedError)) || errors.Is(err, io.EOF) {
			t.Errorf("%.20s: got %v, want a refusal", content, err)
		}
	}
}
