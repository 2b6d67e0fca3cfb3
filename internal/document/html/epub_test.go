package html_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/internal/zipmake"
)

// book returns a book of two chapters.
func book(t testing.TB, first, second string, more ...zipmake.File) []byte {
	return zipmake.Zip(t, append([]zipmake.File{
		{Name: "mimetype", Content: "application/epub+zip", Stored: true},
		{Name: "META-INF/container.xml", Content: `<container><rootfiles><rootfile full-path="OPS/book.opf"/><rootfile full-path="other.opf"/></rootfiles></container>`},
		{Name: "OPS/book.opf", Content: `<package><metadata/><manifest><item id="b" href="text/two.xhtml" media-type="application/xhtml+xml"/><item id="a" href="text/one%20.xhtml" media-type="application/xhtml+xml"/>` +
			`<item id="css" href="x.css" media-type="text/css"/><item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/></manifest><spine><itemref idref="a"/><itemref idref="b"/><itemref idref="a"/><itemref idref="css"/></spine></package>`},
		{Name: "OPS/toc.ncx", Content: `<ncx><navMap><navPoint><navLabel><text>The second</text></navLabel><content src="text/two.xhtml#x"/></navPoint></navMap></ncx>`},
		{Name: "OPS/text/one .xhtml", Content: first},
		{Name: "OPS/text/two.xhtml", Content: second},
	}, more...)...)
}

func TestText(t *testing.T) {
	first := `<?xml version="1.0" encoding="iso-8859-1"?><html><head><title>no</title></head><body><h1>Eins</h1><p>Gr` + "\xf6" + `&szlig;e</p><h2>Part</h2><p>x</p></body></html>`
	second := `<html><body><p>The second</p><ol start="3"><li>c</li><li>d<ul><li>e</li></ul></li></ol><p>claim<a epub:type="noteref" href="#n">1</a></p><aside><p><a epub:type="noteref" href="#r">1</a>proof</p></aside></body></html>`
	d, err := zipmake.Parse(t, html.EpubFormat(), "", book(t, first, second))
	if err != nil {
		t.Fatal(err)
	}
	want := "# Eins\n\nGröße\n\n## Part\n\nx\n\n# The second\n\n3. c\n4. d\n  - e\n\nclaim[^1]\n[^1] proof\n"
	if diff := cmp.Diff(want, d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for word, chapter := range map[string]string{"Größe": "Eins", "x\n": "Eins", "claim": "The second"} {
		at := strings.Index(d.Text, word)
		if l := d.Layout.Locate(at, at+1); l == nil || l.Chapter != chapter {
			t.Errorf("%q is at %+v, want %q", word, l, chapter)
		}
	}
}

// TestEpubEquations writes equations on a line. Chapters in XML may have a prefix for them.
func TestEpubEquations(t *testing.T) {
	first := `<html xmlns:m="http://www.w3.org/1998/Math/MathML"><body><p>x is <m:math altimg="x.png"><m:mfrac><m:mrow><m:mo>−</m:mo><m:mi>b</m:mi></m:mrow><m:mrow><m:mn>2</m:mn><m:mi>a</m:mi></m:mrow></m:mfrac></m:math>.</p></body></html>`
	second := `<html><body><p>so <math xmlns="http://www.w3.org/1998/Math/MathML" display="block"><semantics><msup><mi>x</mi><mn>2</mn></msup><annotation encoding="application/x-tex">x^2</annotation></semantics></math></p></body></html>`
	d, err := zipmake.Parse(t, html.EpubFormat(), "", book(t, first, second))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("x is (−b)/(2a).\nso\nx²\n", d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRefused(t *testing.T) {
	encrypted := func(name string) zipmake.File {
		return zipmake.File{Name: "META-INF/encryption.xml", Content: `<encryption><EncryptedData><CipherData><CipherReference URI="` + name + `"/></CipherData></EncryptedData></encryption>`}
	}
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"encrypted", book(t, "x", "y", encrypted("OPS/text/two.xhtml")), "encrypted"},
		{"encrypted fonts", book(t, "<script>x</script>", "", encrypted("OPS/font.otf")), "no text"},
		{"no package", zipmake.Zip(t, zipmake.File{Name: "META-INF/container.xml", Content: `<container><rootfiles><rootfile full-path="../../etc/passwd"/></rootfiles></container>`}), "it lacks etc/passwd"},
		{"binary", book(t, "\x00\x01\x02\x03", ""), "not text"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := zipmake.Parse(t, html.EpubFormat(), "", test.data)
			if refused, ok := errors.AsType[*document.RefusedError](err); !ok || !strings.Contains(refused.Reason, test.want) {
				t.Errorf("got %v, want one that refuses for %q", err, test.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`<h1>a</h1><table><tr><td rowspan=2>1<td><td><tr><td>3</table>`))
	f.Add([]byte(`<p>x<sup><a>1</a></sup><ol><li value=7><pre> a </pre>`))
	f.Add([]byte(`<p>x<math display="block"><mfrac><mi>a</mi><mn>2</mn></mfrac></math><span aria-hidden="true">y</span><sup><m:math><m:mn>2<p>`))
	f.Fuzz(func(t *testing.T, page []byte) {
		_, err := zipmake.Parse(t, html.EpubFormat(), "", book(t, string(page), ""))
		if err != nil && !errors.As(err, new(*document.RefusedError)) {
			t.Errorf("got %v, which does not refuse the file", err)
		}
	})
}
