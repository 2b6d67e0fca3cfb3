package document_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/htmlindex"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/worker/document"
)

func TestDetect(t *testing.T) {
	for _, test := range []struct {
		name      string
		file      string
		data      string
		mediaType string
		want      document.Kind
		refused   string // a part of the reason
	}{
		{"text", "a.txt", "text", "", document.Text, ""},
		{"unknown extension", "LICENSE-2.0", "text", "", document.Text, ""},
		{"markdown", "README.MD", "# text", "", document.Markdown, ""},
		{"web page", "index.htm", "x", "", document.HTML, ""},
		{"web page by its beginning", "index.php", "\ufeff \n<!DocType HTML><p>", "", document.HTML, ""},
		{"text of that beginning", "page.txt", "<!doctype html>", "", document.Text, ""},
		{"JSON lines", "a.ndjson", "{}", "", document.JSONL, ""},
		{"JSON lines by their beginning", "stdin", "{\"id\": 1, \"text\": \"x\"}\n", "", document.JSONL, ""},
		{"JSON", "a.json", `{"text": 1}`, "", document.Text, ""},
		{"declared", "a.txt", "x", "text/html; charset=utf-8", document.HTML, ""},
		{"declared as anything", "a.html", "x", "application/octet-stream", document.HTML, ""},
		{"declared as JSON", "a", "{}", "application/vnd.x+json", document.Text, ""},
		{"declared as an image", "a.txt", "x", "image/png", "", "declared as image/png, not text"},
		{"declared nonsense", "a.txt", "x", "a b c", "", "not a media type"},
		{"PDF", "a.txt", "%PDF-1.4\n", "", "", "a PDF file, not text"},
		{"RTF", "a.doc", `{\rtf1 x}`, "", "", "an RTF file, not text"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := document.Detect(test.file, []byte(test.data), test.mediaType)
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			checkRefused(t, err, test.refused)
		})
	}
}

// checkRefused fails unless err refuses for a reason that holds want, or is nil
// if want is empty.
func checkRefused(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("got error %v", err)
		}
		return
	}
	var refused *document.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(refused.Reason, want) {
		t.Errorf("got error %v, want one that refuses for %q", err, want)
	}
}

// inUTF16 returns s in UTF-16, low bytes first, behind its mark.
func inUTF16(s string) string {
	var out strings.Builder
	out.WriteString("\xff\xfe")
	for _, u := range utf16.Encode([]rune(s)) {
		out.WriteString(string([]byte{byte(u), byte(u >> 8)}))
	}
	return out.String()
}

func swap(s string) string {
	b := []byte(s)
	for i := 0; i+1 < len(b); i += 2 {
		b[i], b[i+1] = b[i+1], b[i]
	}
	return string(b)
}

func TestRead(t *testing.T) {
	for _, test := range []struct {
		name      string
		file      string
		data      string
		mediaType string
		want      string
		charset   string
		refused   string
	}{
		{"UTF-8", "a", "Größe 漢\r\n", "", "Größe 漢\r\n", "utf-8", ""},
		{"markdown", "a.md", "# *x*  \n", "", "# *x*  \n", "utf-8", ""},
		{"byte order mark", "a", "\xef\xbb\xbfx", "", "x", "utf-8", ""},
		{"UTF-16", "a", inUTF16("Größe 😀"), "", "Größe 😀", "utf-16le", ""},
		{"UTF-16, high bytes first", "a", swap(inUTF16("Größe 😀")), "", "Größe 😀", "utf-16be", ""},
		{"mark before declaration", "a", inUTF16("x"), "text/plain; charset=latin1", "x", "utf-16le", ""},
		{"declared UTF-16", "a", "x\x00y\x00", "text/plain; charset=utf-16", "xy", "utf-16le", ""},
		{"declared Latin 1", "a", "Gr\xf6\xdfe", "text/plain; charset=ISO-8859-1", "Größe", "windows-1252", ""},
		{"declared Shift JIS", "a", "\x8a\xbf\x8e\x9a x", "text/plain; charset=shift_jis", "漢字 x", "shift_jis", ""},
		{"declared with escapes", "a", "\x1b$B4A;z\x1b(B x", "text/plain; charset=iso-2022-jp", "漢字 x", "iso-2022-jp", ""},
		{"declared by the page", "a.html", `<meta charset="windows-1252">Gr` + "\xf6\xdfe", "", "Größe", "windows-1252", ""},
		{"declared by the page, the old way", "a.html", `<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">Gr` + "\xf6\xdfe", "", "Größe", "windows-1252", ""},
		{"page that cannot be in UTF-16", "a.html", `<meta charset="utf-16">x`, "", "x", "utf-8", ""},
		{"one NUL in much text", "a", strings.Repeat("text ", 100) + "\x00", "", strings.Repeat("text ", 100) + "\x00", "utf-8", ""},
		{"colours of a terminal", "a", "\x1b[1mbold\x1b[0m", "", "\x1b[1mbold\x1b[0m", "utf-8", ""},

		{"nothing", "a", "", "", "", "", "no text"},
		{"only white space", "a", " \n", "", "", "", "no text"},
		{"page without text", "a.html", "<script>x</script>", "", "", "", "no text"},
		{"not UTF-8", "a", "Gr\xf6\xdfe", "", "", "", "byte 0xf6 at offset 2"},
		{"not UTF-8 at the end", "a", "x\xc3", "", "", "", "byte 0xc3 at offset 1"},
		{"not UTF-8 in a page", "a.html", "<p>Gr\xf6\xdfe", "", "", "", "byte 0xf6 at offset 5"},
		{"NULs", "a", strings.Repeat("\x00", 1000), "", "", "", "1000 NUL"},
		{"UTF-16 without a mark", "a", "x\x00y\x00", "", "", "", "2 NUL"},
		{"control characters", "a", "a\x01\x02", "", "", "", "2 other control"},
		{"zip", "a.txt", "PK\x03\x04\xff\xfe", "", "", "", "looks like application/zip"},
		{"image", "a.txt", "\x89PNG\r\n\x1a\n\xff", "", "", "", "looks like image/png"},
		{"odd UTF-16", "a", inUTF16("xy") + "z", "", "", "", "odd byte at offset 6"},
		{"half a pair", "a", "\xff\xfe\x3d\xd8x\x00", "", "", "", "half a character at offset 2"},
		{"half a pair at the end", "a", "\xff\xfe\x3d\xd8", "", "", "", "half a character at offset 2"},
		{"UTF-32", "a", "\xff\xfe\x00\x00x\x00\x00\x00", "", "", "", "UTF-32"},
		{"unknown charset", "a", "x", "text/plain; charset=klingon", "", "", `charset "klingon"`},
		{"not the declared charset", "a", "ab\x81\x20", "text/plain; charset=shift_jis", "", "", "not shift_jis: byte 0x81 at offset 2"},
		{"cut off in the declared charset", "a", "ab\x8a", "text/plain; charset=shift_jis", "", "", "byte 0x8a at offset 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := document.Read(test.file, []byte(test.data), test.mediaType)
			checkRefused(t, err, test.refused)
			if err != nil {
				return
			}
			if d.Text != test.want || d.Charset != test.charset {
				t.Errorf("got %q in %s, want %q in %s", d.Text, d.Charset, test.want, test.charset)
			}
			if from, to := d.Source.Source(0, len(d.Text)); test.mediaType == "" && to != len(test.data) || from > to {
				t.Errorf("the text maps to [%d, %d) of %d bytes", from, to, len(test.data))
			}
		})
	}
}

func TestReadOfLines(t *testing.T) {
	if d, err := document.Read("a.jsonl", []byte("{}"), ""); err == nil || errors.As(err, new(*document.RefusedError)) {
		t.Errorf("got %+v, %v, want an error that does not refuse the file", d, err)
	}
}

// TestSource decodes texts from many charsets and maps each character back.
func TestSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		charset := rapid.SampledFrom([]string{"utf-8", "utf-16le", "windows-1251", "shift_jis", "gb18030", "iso-2022-jp", "big5"}).Draw(t, "charset")
		enc, err := htmlindex.Get(charset)
		if err != nil {
			t.Fatal(err)
		}
		var source, text string
		var at []int // where each character begins in source
		e := enc.NewEncoder()
		for _, r := range rapid.SliceOfN(rapid.RuneFrom([]rune("aZ 9é漢字ж語ﾊ")), 1, 30).Draw(t, "text") {
			coded, err := e.String(string(r))
			if err != nil || strings.ContainsAny(coded, "\x1a") {
				continue
			}
			at = append(at, len(source))
			source, text = source+coded, text+string(r)
		}
		if strings.TrimSpace(text) == "" {
			t.Skip("no text")
		}
		d, err := document.Read("a", []byte(source), "text/plain; charset="+charset)
		if err != nil {
			t.Fatalf("Read: %v", err)
		}
		if d.Text != text {
			t.Fatalf("got %q, want %q", d.Text, text)
		}
		k := 0
		for i, r := range d.Text {
			from, to := d.Source.Source(i, i+utf8.RuneLen(r))
			if from < at[k] || to > len(source) || k+1 < len(at) && to > at[k+1] || from >= to {
				t.Fatalf("%q at %d maps to [%d, %d), but begins at %d", r, i, from, to, at[k])
			}
			k++
		}
	})
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
		{"table", "<table><tr><td>a<td> b </td><th>c</th></tr>\n<tr><td>d</td><td></td><td>e</table>", "a\tb\tc\nd\te"},
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
		{"text area", "<textarea>\na\n b</textarea>", "a\n b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := document.Read("a.html", []byte(test.page), "")
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

// checkPage fails unless each character of a page's text comes from where the
// map says: the same character, a reference, white space, or a place between
// two characters for white space that stands for an element.
func checkPage(t *testing.T, page string, d *document.Document) {
	t.Helper()
	var last [2]int
	for i, r := range d.Text {
		from, to := d.Source.Source(i, i+utf8.RuneLen(r))
		if same := [2]int{from, to} == last; from < last[1] && !same || to < from || to > len(page) {
			t.Fatalf("%q at %d comes from [%d, %d) of %d, behind %d", r, i, from, to, len(page), last)
		}
		last = [2]int{from, to}
		switch source := page[from:to]; {
		case source == string(r), strings.HasPrefix(source, "&"):
		case (r == ' ' || r == '\t' || r == '\n') && (source == "" || strings.IndexAny(source, " \t\r\n\f\u00a0") == 0):
		default:
			t.Fatalf("%q at %d comes from %q", r, i, source)
		}
	}
}

func FuzzHTML(f *testing.F) {
	for _, seed := range []string{
		"<p>one<p>two</p>", "a&ampb&#x;<pre>\n x\r\n</pre>", "<table><tr><td>a<td>b", "<svg><noscript><template>x", "<title>x</tit",
		"<script>a</scr", "<!-- x", "<![CDATA[x]]>", "</", "<xmp>&amp;", "&NotEqualTilde;&notit;&#65", "\u00a0 \x00", "<textarea>\r\nx",
		"<plaintext>a</plaintext>&lt;", "<a b='c", "<?x?>y",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, page string) {
		if !utf8.ValidString(page) || strings.HasPrefix(page, "\ufeff") {
			t.Skip("offsets of the page are not those of the file")
		}
		d, err := document.Read("a.html", []byte(page), "text/html; charset=utf-8")
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
	d, err := document.Read("a.html", []byte(page), "text/html; charset=latin1")
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

func BenchmarkRead(b *testing.B) {
	for _, bench := range []struct{ name, file, unit string }{
		{"text", "a.txt", "The supplier shall deliver. "},
		{"page", "a.html", "<p class=x>The supplier &amp; the buyer</p>\n"},
		{"tags", "a.html", "<b>"},
		{"ampersands", "a.html", "x&"},
		{"never closed", "a.html", "x<svg><noscript><template>"},
		{"brackets", "a.html", "x<"},
		{"comments", "a.html", "x<!--"},
		{"ends", "a.html", "x</"},
	} {
		for _, size := range []int{1 << 18, 1 << 20} {
			b.Run(bench.name+"/"+map[int]string{1 << 18: "256KiB", 1 << 20: "1MiB"}[size], func(b *testing.B) {
				data := []byte(strings.Repeat(bench.unit, size/len(bench.unit)))
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					if _, err := document.Read(bench.file, data, ""); err != nil && !errors.As(err, new(*document.RefusedError)) {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
