package xmlfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/internal/document/xmlfile"
)

func read(t testing.TB, name, content string) (*document.Document, error) {
	t.Helper()
	r, err := document.NewRegistry(plain.TextFormat(), html.Format(), xmlfile.Format())
	if err != nil {
		t.Fatal(err)
	}
	return r.Parse(t.Context(), document.Input{Name: name, Content: strings.NewReader(content)})
}

const article = `<?xml version="1.0"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS//EN" "JATS.dtd">
<article xmlns:mml="http://www.w3.org/1998/Math/MathML"><front>
<journal-meta><journal-id>x</journal-id><journal-title-group><journal-title>Rivers</journal-title></journal-title-group></journal-meta>
<article-meta><article-id pub-id-type="doi">10.1/a</article-id>
<title-group><article-title>The flood of <italic>1993</italic></article-title></title-group>
<contrib-group><contrib contrib-type="author"><name><surname>Ost</surname><given-names>A. B.</given-names></name></contrib>
<contrib contrib-type="editor"><name><surname>No</surname></name></contrib></contrib-group>
<pub-date pub-type="epub"><day>3</day><month>4</month><year>2020</year></pub-date>
<abstract><p>It rose by 2&#160;m.</p></abstract></article-meta></front>
<body><sec><label>1</label><title>Methods</title><p>An area of 10<sup>6</sup> m<sup>2</sup>, see <xref>Table 1</xref>.</p>
<list list-type="bullet"><list-item><p>first</p></list-item><list-item><p>second</p></list-item></list>
<table-wrap><label>Table 1</label><caption><title>Heights.</title></caption><table>
<thead><tr><th rowspan="2">Place</th><th colspan="2">Height</th></tr><tr><th>1992</th><th>1993</th></tr></thead>
<tbody><tr><td rowspan="2">Bridge</td><td>3.1</td><td>5.2</td></tr><tr><td/><td>5.4</td></tr></tbody></table>
<table-wrap-foot><p>In metres.</p></table-wrap-foot></table-wrap></sec></body>
<back><ref-list><ref><label>1</label><mixed-citation><name><surname>Ray</surname><given-names>C</given-names></name>. Dams. <year>1999</year>.</mixed-citation></ref>
<ref><element-citation><person-group><name><surname>Lee</surname><given-names>D</given-names></name></person-group><article-title>Dikes</article-title><source>Water</source><year>2001</year><volume>4</volume><issue>2</issue><fpage>7</fpage><lpage>9</lpage></element-citation></ref></ref-list></back></article>`

const articleText = `# The flood of 1993

Authors: A. B. Ost
Journal: Rivers
Published: 2020-04-03
DOI: 10.1/a

## Abstract

It rose by 2 m.

## 1 Methods

An area of 10⁶ m², see Table 1.

- first
- second

Table 1 Heights.

| Place | Height | Height |
| Place | 1992 | 1993 |
| --- | --- | --- |
| Bridge | 3.1 | 5.2 |
| Bridge |  | 5.4 |

In metres.

## References

- [1] Ray C. Dams. 1999.
- Lee D. Dikes. Water. 2001. 4(2):7–9
`

func TestArticle(t *testing.T) {
	d, err := read(t, "a.nxml", article)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(articleText, d.Text); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if d.Kind != xmlfile.Kind || d.Title != "The flood of 1993" {
		t.Errorf("it is %q with the title %q", d.Kind, d.Title)
	}
	if place := d.Layout[len(d.Layout)-1].Location.Chapter; place != "References" {
		t.Errorf("a reference stands in the chapter %q", place)
	}
}

func TestXML(t *testing.T) {
	for name, tt := range map[string]struct{ file, content, want, title string }{
		"values": {
			"order.xml", `<order id="7"><buyer><name>Acme</name><city>Bonn</city></buyer><total currency="EUR">12.50</total></order>`,
			"id: 7\n\n# buyer\n\nname: Acme\ncity: Bonn\ntotal: 12.50\ntotal currency: EUR\n", "",
		},
		"records": {
			"cd.xml", `<?xml version="1.0"?><catalog><cd id="1"><title>Blue</title><price>9.90</price></cd><cd id="2"><title>Red</title><made><by>X</by></made></cd></catalog>`,
			"| id | title | price | made by |\n| --- | --- | --- | --- |\n| 1 | Blue | 9.90 |  |\n| 2 | Red |  | X |\n", "",
		},
		"prefixes": {
			"n.xml", `<n:a xmlns:n="urn:x" xmlns="urn:y"><n:total>5</n:total><net>4</net></n:a>`, "total: 5\nnet: 4\n", "",
		},
		"CDATA and comments": {
			"c.xml", `<a><b><![CDATA[1 < 2]]><!-- no --> & 3</b></a>`, "", "",
		},
		"entities": {
			"e.xml", `<!DOCTYPE a [<!ENTITY co "Acme &amp; Sons"><!ENTITY all "&co;, Bonn">]><a><b>&all; &nbsp;&alpha; &unknown;</b></a>`,
			"b: Acme & Sons, Bonn α &unknown;\n", "",
		},
		"external entities": {
			"x.xml", `<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">]><a><b>&f;</b></a>`, "b: &f;\n", "",
		},
		"prose with values": {
			"p.xml", `<doc><head>On dikes</head><id>D-7</id><section><title>One</title><p>Text <b>bo</b>ld.</p></section></doc>`,
			"# On dikes\n\nid: D-7\n\n# One\n\nText bold.\n", "On dikes",
		},
		"CALS": {
			"t.xml", `<doc><para>x</para><informaltable><tgroup cols="3"><colspec colname="a"/><colspec colname="b"/><colspec colname="c"/><thead><row><entry>K</entry><entry namest="b" nameend="c">V</entry></row></thead>` +
				`<tbody><row><entry morerows="1">k</entry><entry>1</entry><entry>2</entry></row><row><entry>3</entry><entry>4</entry></row></tbody></tgroup></informaltable></doc>`,
			"x\n\n| K | V | V |\n| --- | --- | --- |\n| k | 1 | 2 |\n| k | 3 | 4 |\n", "",
		},
		"a drawing": {
			"d.svg", `<svg xmlns="http://www.w3.org/2000/svg"><title>Plan</title><style>.a{}</style><defs><text>no</text></defs><g><text x="1">Hall <tspan>12 m²</tspan><tspan dy="12">north</tspan></text><text display="none">no</text></g></svg>`,
			"# Plan\n\nHall 12 m²\nnorth\n", "Plan",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := read(t, tt.file, tt.content)
			if name == "CDATA and comments" {
				if err != nil || len(d.Notes) != 1 || d.Text != tt.content {
					t.Fatalf("%+v, %v; want the file as it is, and a note: it is not well-formed", d, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, d.Text); diff != "" || d.Title != tt.title {
				t.Errorf("the title %q, text (-want +got):\n%s", d.Title, diff)
			}
		})
	}
}

func TestCharsets(t *testing.T) {
	wide := []byte("\xff\xfe")
	for _, u := range utf16.Encode([]rune(`<?xml version="1.0" encoding="UTF-16"?><a><b>Größe</b></a>`)) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	for name, content := range map[string]string{
		"utf-16": string(wide),
		"latin":  "<?xml version='1.0' encoding='iso-8859-1'?><a><b>Gr\xf6\xdfe</b></a>",
		"utf-8":  "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><a><b>Größe</b></a>",
	} {
		if d, err := read(t, "a.xml", content); err != nil || d.Text != "b: Größe\n" {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}

func TestFormatOfXML(t *testing.T) {
	for content, want := range map[string]document.Kind{
		`<?xml version="1.0"?><a>x</a>`:                                xmlfile.Kind,
		`<?xml version="1.0"?><!-- c --><!DOCTYPE html><html>x</html>`: html.Kind,
		`<html xmlns="http://www.w3.org/1999/xhtml">x</html>`:          html.Kind,
		`<svg xmlns="http://www.w3.org/2000/svg"><text>x</text></svg>`: xmlfile.Kind,
		`<a>x</a> is a link`: plain.TextKind,
	} {
		if d, err := read(t, "", content); err != nil || d.Kind != want {
			t.Errorf("%s: %+v, %v; want %s", content, d, err, want)
		}
	}
}

// bombs are files that would cost much more than their size.
func bombs() map[string]string {
	nested := `<!DOCTYPE a [<!ENTITY e0 "` + strings.Repeat("x", 1000) + `">`
	for i := range 12 {
		nested += fmt.Sprintf(`<!ENTITY e%d "&e%d;&e%d;&e%d;&e%d;">`, i+1, i, i, i, i)
	}
	return map[string]string{
		"entities within entities": nested + `]><a>&e12;</a>`,
		"an entity within itself":  `<!DOCTYPE a [<!ENTITY e "&e;&e;">]><a>&e;</a>`,
		"an entity many times":     `<!DOCTYPE a [<!ENTITY e "` + strings.Repeat("x", 4000) + `">]><a>` + strings.Repeat("&e;", 10_000) + `</a>`,
		"depth":                    strings.Repeat("<a>", 100_000),
		"a table of one cell":      `<a><p>x</p><table><tr><td rowspan="65534" colspan="1000">x</td></tr>` + strings.Repeat("<tr><td colspan='1000'>y</td></tr>", 50_000) + `</table></a>`,
	}
}

func TestBombs(t *testing.T) {
	for name, content := range bombs() {
		d, err := read(t, "a.xml", content)
		refused := new(document.RefusedError)
		if err != nil && !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && len(d.Text) > 64<<20 {
			t.Errorf("%s: %d bytes of text of %d", name, len(d.Text), len(content))
		}
	}
}

// FuzzXML: any bytes are text, or refused.
func FuzzXML(f *testing.F) {
	f.Add(article)
	for name, content := range bombs() {
		if name != "depth" && name != "a table of one cell" {
			f.Add(content)
		}
	}
	for _, seed := range []string{
		"<a", "<a/>", "<?xml?>", "<a>\x00</a>", "<!DOCTYPE a [<!ENTITY", `<a><b c="1"/><b c="2"/></a>`, "<svg><text><tspan", "<article><front/></article>",
		`<a><p/><list><list-item/></list><dl><dt>x</dt></dl><ref-list><ref/></ref-list></a>`, "\xff\xfe<\x00a\x00>\x00", `<a><p>x</p><table><tr><td rowspan="9"><table><tr><td>1</td></tr></table></td></tr></table></a>`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		d, err := read(t, "a.xml", content)
		if refused := new(document.RefusedError); err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		if err == nil && strings.TrimSpace(d.Text) == "" {
			t.Error("no text, and no error")
		}
	})
}

// The number of a reference is printed above the line: it is no part of the word before it.
func TestMarksOfReferences(t *testing.T) {
	for body, want := range map[string]string{
		`white space<xref ref-type="bibr" rid="r1">1</xref>.`:                                                      "white space¹.",
		`space.<xref ref-type="bibr">1</xref>,<xref ref-type="bibr">2</xref>–<xref ref-type="bibr">14</xref> Next`: "space.¹,²–¹⁴ Next",
		`in brackets [<xref ref-type="bibr">1</xref>,<xref ref-type="bibr">2</xref>]`:                              "in brackets [1,2]",
		`of Smith <xref ref-type="bibr">2</xref>`:                                                                  "of Smith 2",
		`see Table<xref ref-type="table">1</xref>`:                                                                 "see Table1",
		`as <xref ref-type="bibr">Smith 2001</xref> says`:                                                          "as Smith 2001 says",
	} {
		article := `<?xml version="1.0"?><article><body><p>` + body + `</p></body></article>`
		doc, err := read(t, "a.xml", article)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(doc.Text); got != want {
			t.Errorf("%s is read as %q, want %q", body, got, want)
		}
	}
}
