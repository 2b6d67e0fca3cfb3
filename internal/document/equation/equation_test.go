package equation_test

import (
	"encoding/xml"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/equation"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/xmlread"
)

// read returns the text of an equation.
func read(content string) (string, error) { return write("oMath", content) }

// write returns the text of an element.
func write(name, content string) (string, error) {
	d := xmlread.New("equation", strings.NewReader(`<m:`+name+` xmlns:m="m" xmlns:w="w">`+content+`</m:`+name+`>`), document.Limits{})
	whole := new(richtext.Runs)
	text := whole
	var inline func(e xml.StartElement) error
	inline = func(e xml.StartElement) error {
		switch e.Name.Local {
		case "br":
			text.WriteRune('\n')
			return d.Skip()
		case "broken":
			return errBroken
		case "oMath":
			return equation.Write(&text, d, e, inline)
		case "t":
			s, err := d.Text()
			text.WriteString(s)
			return err
		}
		return d.Each(inline, nil)
	}
	err := d.Document(func(e xml.StartElement) error { return equation.Write(&text, d, e, inline) })
	return whole.String(), err
}

var errBroken = errors.New("broken")

// r is a run of characters.
func r(text string) string {
	return `<m:r><m:rPr><m:sty m:val="p"/></m:rPr><m:t>` + text + `</m:t></m:r>`
}

// of is an element of parts.
func of(name string, parts ...string) string {
	return "<m:" + name + ">" + strings.Join(parts, "") + "</m:" + name + ">"
}

// pr says properties of an element, each NAME=VALUE.
func pr(name string, properties ...string) string {
	var b strings.Builder
	for _, p := range properties {
		name, value, _ := strings.Cut(p, "=")
		b.WriteString(`<m:` + name + ` m:val="` + value + `"/>`)
	}
	return of(name+"Pr", b.String(), `<m:ctrlPr><w:rPr><w:i/></w:rPr></m:ctrlPr>`)
}

func e(parts ...string) string { return of("e", parts...) }

func frac(over, under string) string { return of("f", pr("f"), of("num", over), of("den", under)) }

func sup(base, raised string) string { return of("sSup", e(base), of("sup", raised)) }

func sub(base, lowered string) string { return of("sSub", e(base), of("sub", lowered)) }

func both(base, lowered, raised string) string {
	return of("sSubSup", e(base), of("sub", lowered), of("sup", raised))
}

func root(parts ...string) string { return of("rad", of("deg"), e(parts...)) }

func d(parts ...string) string { return of("d", e(parts...)) }

func nary(sign, lowered, raised, operand string) string {
	return of("nary", pr("nary", "chr="+sign), of("sub", lowered), of("sup", raised), e(operand))
}

func function(name, argument string) string { return of("func", of("fName", name), e(argument)) }

func TestRead(t *testing.T) {
	row := func(cells ...string) string {
		for i := range cells {
			cells[i] = e(cells[i])
		}
		return of("mr", cells...)
	}
	matrix := of("m", pr("m"), row(r("a"), r("b")), row(r("c"), r("d")))
	array := of("eqArr", e(r("x&amp;=1")), e(r("y&amp;=2#"), d(r("7"))))
	toZero := of("limLow", e(r("lim")), of("lim", r("x→0")))
	for _, test := range []struct{ name, xml, want string }{
		{"quadratic formula", r("x=") + frac(r("-b±")+root(sup(r("b"), r("2")), r("-4"), r("ac")), r("2a")), "x=(-b±√(b²-4ac))/(2a)"},
		{"area", r("A=π") + sup(r("r"), r("2")), "A=πr²"},

		{"fraction of products", frac(r("nπx"), r("L")), "nπx/L"},
		{"fraction of numbers", frac(r("1.5"), r("1,000")), "1.5/1,000"},
		{"fraction below a product", frac(r("a"), r("bc")), "a/(bc)"},
		{"fraction of sums", frac(r("a+b"), r("c-d")), "(a+b)/(c-d)"},
		{"fraction of a sum in brackets", frac(r("(a+b)c"), r("(c-d)")), "(a+b)c/(c-d)"},
		{"fraction in a fraction", frac(frac(r("a"), r("b")), frac(r("c"), r("d"))), "(a/b)/(c/d)"},
		{"fraction of powers", frac(sup(r("x"), r("2")), sup(r("y"), r("2"))), "x²/y²"},
		{"fraction of roots", frac(r("1"), root(r("2"))), "1/√(2)"},
		{"derivative", frac(r("dy"), r("dx")), "dy/dx"},
		{"factorial", frac(sup(r("x"), r("3")), r("3!")), "x³/3!"},
		{"with units", frac(r("550 mm"), r("2.5 mm")), "(550 mm)/(2.5 mm)"},
		{"list of numbers", frac(r("1,a"), r("2")), "(1,a)/2"},
		{"mixed number", r("3") + frac(r("1"), r("2")), "3 1/2"},
		{"fraction among letters", r("x") + frac(r("1"), r("2")) + r("y") + frac(r("1"), r("2")) + r("+1"), "x 1/2 y 1/2+1"},
		{"fraction without a bar", of("d", e(of("f", pr("f", "type=noBar"), of("num", r("n")), of("den", r("k"))))), "(n¦k)"},
		{"slanted fraction", of("f", pr("f", "type=skw"), of("num", r("1")), of("den", r("2"))), "1/2"},

		{"power", sup(r("10"), r("-6")), "10⁻⁶"},
		{"powers beside numbers", r("5") + sup(r("10"), r("6")) + r("2"), "5 10⁶2"},
		{"power with letters", sup(r("x"), r("n")), "x^n"},
		{"power of a sum", sup(r("x"), r("n+1")), "x^(n+1)"},
		{"power with decimals", sup(r("x"), r("0.5")) + r("y"), "x^0.5 y"},
		{"power in a power", sup(r("e"), r("-")+sup(r("x"), r("2"))), "e^(-x²)"},
		{"power of a power", sup(sup(r("x"), r("2")), r("3")), "(x²)³"},
		{"power of a fraction", sup(frac(d(r("x-c")), r("v")), r("2")), "((x-c)/v)²"},
		{"power of brackets", sup(d(r("x+a")), r("2")), "(x+a)²"},
		{"power of a product", sup(r("2x"), r("2")), "(2x)²"},
		{"power of a word", sup(r("cm"), r("2")), "cm²"},
		{"letters behind a power", sup(r("x"), r("k")) + sup(r("a"), r("n-k")) + r("b"), "x^k a^(n-k)b"},
		{"degrees and primes", sup(r("45.0"), r("∘")) + r(",") + sup(r("f"), r("′")), "45.0°,f′"},
		{"subscript", sub(r("x"), r("1")), "x₁"},
		{"subscript of letters", sub(r("τ"), r("max")) + sub(r("x"), r("i")) + r("y"), "τ_(max)x_i y"},
		{"subscript without a base", r("H") + sub("", r("2")) + r("O"), "H₂O"},
		{"squared subscript", sup(sub(r("x"), r("1")), r("2")), "x₁²"},
		{"squared letter of a subscript", sup(sub(r("x"), r("i")), r("2")), "x_i^2"},
		{"both scripts", both(r("x"), r("1"), r("2")), "x₁²"},
		{"both scripts of letters", both(r("N"), r("s"), r("2")), "N_s^2"},
		{"scripts in front", r("n") + of("sPre", of("sub", r("6")), of("sup", r("14")), e(r("C"))), "n ₆¹⁴C"},
		{"scripts of letters in front", of("sPre", of("sub", r("Z")), of("sup", r("A")), e(r("X"))), "(_Z^A)X"},

		{"root", root(r("b"), r("+1")), "√(b+1)"},
		{"cube root", of("rad", of("deg", r("3")), e(r("x"))), "∛(x)"},
		{"fourth root", of("rad", of("deg", r("4")), e(r("x"))), "∜(x)"},
		{"root of a degree", of("rad", of("deg", r("n+1")), e(r("x"))), "√[n+1](x)"},
		{"hidden degree", of("rad", pr("rad", "degHide=1"), of("deg", r("3")), e(r("x"))), "√(x)"},

		{"sum", nary("∑", r("k=0"), r("n"), sup(r("x"), r("k"))), "∑_(k=0)^n x^k"},
		{"sum over a sum", nary("∑", r("k"), "", r("a+b")) + r("y"), "∑_k (a+b) y"},
		{"integral", nary("∫", r("0"), r("1"), r("xdx")), "∫₀¹ xdx"},
		{"integral by default", of("nary", e(d(r("2x+1"))+r("dx"))), "∫(2x+1)dx"},
		{"integral to a product", nary("∯", r("0"), r("2π"), r("idt")), "∯₀^(2π) idt"},
		{"hidden limits", of("nary", pr("nary", "chr=∑", "subHide=on", "supHide=1"), of("sub", r("a")), of("sup", r("b")), e(r("x"))), "∑x"},
		{"operand behind", nary("∑", r("i"), "", "") + r("x"), "∑_i x"},

		{"brackets", r("f") + d(r("x")), "f(x)"},
		{"other brackets", of("d", pr("d", "begChr=[", "sepChr=,", "endChr=)"), e(r("0")), e(r("1"))), "[0,1)"},
		{"bars", frac(r("1"), of("d", pr("d", "begChr=|", "endChr=|"), e(r("x")))), "1/|x|"},
		{"no bracket", of("d", pr("d", "begChr={", "endChr="), e(array)), "{x=1; y=2 (7)"},
		{"separated", of("d", e(r("a")), e(r("b"))), "(a|b)"},

		{"function", r("2") + function(r("cos"), r("x")) + r("y"), "2 cos x y"},
		{"function of brackets", r("y=") + function(r("log"), d(r("x"))), "y=log(x)"},
		{"function of a fraction", sub(r("a"), r("n")) + function(r("cos"), frac(r("nπx"), r("L"))), "a_n cos(nπx/L)"},
		{"function of a sum", function(r("ln"), r("x+1")), "ln(x+1)"},
		{"function of a function", function(r("sin"), function(r("cos"), r("x"))), "sin(cos x)"},
		{"function of a power of brackets", function(r("log"), sup(d(r("x")), r("2"))), "log((x)²)"},
		{"inverse function", function(sup(r("sin"), r("-1")), r("x")), "sin⁻¹ x"},
		{"function with an index", function(sub(r("log"), r("b")), d(r("x"))), "log_b (x)"},
		{"fraction of functions", frac(function(r("sin"), r("x")), function(r("cos"), r("x"))), "(sin x)/(cos x)"},
		{"limit", function(toZero, frac(function(r("sin"), r("x")), r("x"))), "lim_(x→0) (sin x)/x"},
		{"limit of brackets", function(toZero, sup(d(r("1+x")), r("n"))), "lim_(x→0) (1+x)^n"},
		{"limit of a sum", function(toZero, r("x+1")), "lim_(x→0) (x+1)"},
		{"limit above", of("limUpp", e(r("=")), of("lim", r("def"))), "(=)^(def)"},
		{"number below", of("limLow", e(r("max")), of("lim", r("1"))), "max_1"},
		{"function sign", r("sin\u2061θ=2\u2062x"), "sin θ=2x"},

		{"accents", of("acc", e(r("x"))) + of("acc", pr("acc", "chr=⃗"), e(r("AB"))) + of("acc", pr("acc", "chr=~"), e(r("y"))), "x\u0302(AB)\u20d7y\u0303"},
		{"accent that is none", of("acc", pr("acc", "chr=☂"), e(r("x"))), "☂(x)"},
		{"bar", of("bar", pr("bar", "pos=top"), e(r("x"))) + of("bar", e(r("y"))), "x\u0305y\u0332"},
		{"bar above digits", r("0.1") + of("acc", pr("acc", "chr=\u0305"), e(r("42"))), "0.14\u03052\u0305"},
		{"bar above a sum", of("bar", pr("bar", "pos=top"), e(r("a+b"))), "¯(a+b)"},
		{"brace", of("limLow", e(of("groupChr", e(r("x+y")))), of("lim", r("whole"))), "⏟(x+y)_(whole)"},
		{"brace above", of("groupChr", pr("groupChr", "chr=⏞", "pos=top"), e(r("x"))), "⏞(x)"},
		{"boxes", of("borderBox", e(of("box", e(r("a+b"))))), "a+b"},
		{"phantom", of("phant", pr("phant", "show=0"), e(r("gone"))) + of("phant", e(r("seen"))), "seen"},

		{"matrix", r("A=") + matrix, "A=[a b; c d]"},
		{"matrix in brackets", d(matrix), "(a b; c d)"},
		{"determinant", of("d", pr("d", "begChr=|", "endChr=|"), e(matrix)), "|a b; c d|"},
		{"empty and wide cells", of("m", row("", r("1 m")), row(r("x"), "")), "[□ (1 m); x □]"},
		{"array", r("z=0") + array, "z=0x=1\ny=2 (7)"},
		{"array in a fraction", frac(array, r("2")), "(x=1; y=2 (7))/2"},

		{"changes", `<w:del>` + r("old") + `</w:del><w:ins>` + sup(r("x"), r("2")) + `</w:ins>`, "x²"},
		{"hidden", r("a") + `<m:r><w:rPr><w:vanish/></w:rPr><m:t>b</m:t></m:r><m:r><w:rPr><w:vanish w:val="0"/></w:rPr><m:t>c</m:t></m:r>`, "ac"},
		{"unknown", of("new", of("newPr", r("x")), of("part", r("a"), frac(r("1"), r("2")))), "a 1/2"},
		{"text in no part", of("f", of("num", r("1")), of("den", r("2")), r("x")), "1/2 x"},
		{"alternatives", `<AlternateContent><Choice>` + r("a") + `</Choice><Fallback>` + r("b") + `</Fallback></AlternateContent>`, "a"},
		{"lines", `<m:r><m:t>a</m:t><w:br/><m:t>b</m:t></m:r>` + d(`<m:r><w:br/></m:r>`), "a\nb()"},
		{"space around", sub(r("P "), r(" x")) + frac(r(" a"), r("b ")), "P_x a/b"},
		{"nothing", "", ""},
		{"empty objects", frac("", "") + sup("", "") + root("") + d("") + of("m") + of("eqArr") + nary("", "", "", "") + function("", "") + of("acc") + of("bar") + of("sPre"), "/√()()[]()\u0302▁()"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := read(test.xml)
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// TestHostile: an equation made to be large is no larger than its XML, and one made to be
// deep is written as its letters from some depth on.
func TestHostile(t *testing.T) {
	nested := func(n int, begin, end string) string {
		return strings.Repeat(begin, n) + r("x") + strings.Repeat(end, n)
	}
	for _, test := range []struct{ name, xml, want string }{
		{"deep roots", nested(80, "<m:rad><m:e>", "</m:e></m:rad>"), nested(50, "√(", ")")},
		{"deep bars", nested(80, "<m:bar><m:e>", "</m:e></m:bar>"), ""},
		{"deep fractions", nested(80, "<m:f><m:num>", "</m:num><m:den/></m:f>"), ""},
		{"long separator", of("d", `<m:dPr><m:sepChr m:val="`+strings.Repeat(";", 10_000)+`"/></m:dPr>`, strings.Repeat("<m:e/>", 10_000)), "(" + strings.Repeat(";", 9_999) + ")"},
		{"long brackets", strings.Repeat(of("d", `<m:dPr><m:begChr m:val="(((("/></m:dPr>`), 3), "()()()"},
		{"bar above a long text", of("bar", e(r(strings.Repeat("x", 10_000)))), "▁(" + strings.Repeat("x", 10_000) + ")"},
		{"cells", of("m", of("mr", strings.Repeat("<m:e/>", 10_000))), ""},
		{"powers", nested(40, "<m:sSup><m:sup><m:r><m:t>22222222</m:t></m:r></m:sup><m:e>", "</m:e></m:sSup>"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := read(test.xml)
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.ReplaceAll(test.want, r("x"), "x"); want != "" && got != want {
				t.Errorf("got %.100q, want %.100q", got, want)
			}
			if len(got) > 3*len(test.xml) {
				t.Errorf("got %d bytes of %d", len(got), len(test.xml))
			}
		})
	}
	refused, ok := errors.AsType[*document.RefusedError](func() error { _, err := read(nested(300, "<m:box><m:e>", "</m:e></m:box>")); return err }())
	if !ok || !strings.Contains(refused.Reason, "within each other") {
		t.Errorf("got %v, want a refusal for the depth", refused)
	}
}

// TestParagraph writes each equation of a paragraph on a line.
func TestParagraph(t *testing.T) {
	got, err := write("oMathPara", of("oMathParaPr", of("jc"))+of("oMath", r("a=b"))+of("oMath", sup(r("c"), r("2"))))
	if want := "a=b\nc²"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestErrors ends with what reading a run ends with.
func TestErrors(t *testing.T) {
	if _, err := read(frac(r("x"), of("r", of("broken")))); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want the error of the run", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(r("x=") + frac(r("-b±")+root(sup(r("b"), r("2")), r("-4ac")), r("2a")) + nary("∑", r("k=0"), r("n"), r("k")))
	f.Add(of("d", pr("d", "begChr=[", "sepChr=,", "endChr="), e(of("m", of("mr", e(r("1")), e(r("2"))))), e(of("eqArr", e(r("a&amp;#")), e(r("b"))))))
	f.Add(function(of("limLow", e(r("lim")), of("lim", r("x→0"))), of("acc", e(r("x")))) + of("bar", e(r("12"))) + of("groupChr", e(r("y"))))
	f.Add(of("sPre", of("sub", r("6")), of("sup", r("14")), e(r("C"))) + both(r("x"), r("i"), r("2")) + of("phant", e(r("\u2061z"))))
	f.Add(nary("∫", "", "", d(r("2x+1")+`<m:r><w:br/></m:r>`)) + of("rad", of("deg", r("3")), e(r("x"))) + of("borderBox", e(r("q"))))
	f.Add(tag("mfrac", tag("mrow", tokens("- b ±"), tag("msqrt", tokens("4 a c"))), many("2 a")) + tag("munderover", tokens("∑"), many("k = 0"), tokens("n")) + tokens("sin \u2061 x"))
	f.Add(tokens("(") + table("mtable", "a & b", "c") + tag("msup", tokens(")"), tokens("2")) + tag(`mfenced open="[" separators=";"`, tokens("x y")) + `<mspace width="1em"/><mtext>if&#160;</mtext>`)
	f.Add(tag("mmultiscripts", tokens("X i j"), "<mprescripts/><none/>", tokens("4")) + tag("mover", tokens("x ¯")) + tag("munder", tokens("y ⏟")) + tag("mroot", tokens("x 3")))
	f.Add(tag("semantics", tag("mstyle", tokens("a | b |")), tag("annotation encoding='TeX'", "a")) + "<mtable columnalign='right left'><mlabeledtr><mtd>1<mtd>2<p></mfrac>")
	f.Fuzz(func(t *testing.T, xml string) {
		for _, read := range []func(string) (string, error){read, readXML} {
			text, err := read(xml)
			if err != nil && !errors.As(err, new(*document.RefusedError)) {
				t.Errorf("got %v, which does not refuse the equation", err)
			}
			checkSize(t, text, xml)
		}
		if !utf8.ValidString(xml) {
			return // pages are decoded before they are read
		}
		equations, _ := readPage("<math>" + xml)
		checkSize(t, strings.Join(equations, ""), xml)
	})
}

// checkSize fails unless a text is valid, and not much longer than the XML that it is of.
func checkSize(t *testing.T, text, xml string) {
	t.Helper()
	if !utf8.ValidString(text) || len(text) > 5*len(xml) {
		t.Errorf("got %d bytes of %d: %.200q", len(text), len(xml), text)
	}
}
