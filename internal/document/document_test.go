package document_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/plain"
)

// formats returns all formats of the program.
func formats() *document.Registry {
	r, err := document.NewRegistry(plain.TextFormat(), plain.MarkdownFormat(), html.Format(), plain.JSONLinesFormat())
	if err != nil {
		panic(err)
	}
	return r
}

// read returns a document of one of these formats.
func read(name string, data []byte, mediaType string) (*document.Document, error) {
	return formats().Parse(context.Background(), document.Input{Name: name, MediaType: mediaType, Content: bytes.NewReader(data)})
}

func TestDetect(t *testing.T) {
	for _, test := range []struct {
		name      string
		file      string
		data      string
		mediaType string
		want      document.Kind
		refused   string // a part of the reason
	}{
		{"text", "a.txt", "text", "", plain.TextKind, ""},
		{"unknown extension", "LICENSE-2.0", "text", "", plain.TextKind, ""},
		{"markdown", "README.MD", "# text", "", plain.MarkdownKind, ""},
		{"web page", "index.htm", "x", "", html.Kind, ""},
		{"web page by its beginning", "index.php", "\ufeff \n<!DocType HTML><p>", "", html.Kind, ""},
		{"text of that beginning", "page.txt", "<!doctype html>", "", plain.TextKind, ""},
		{"JSON lines", "a.ndjson", "{}", "", plain.JSONLinesKind, ""},
		{"JSON lines by their beginning", "stdin", "{\"id\": 1, \"text\": \"x\"}\n", "", plain.JSONLinesKind, ""},
		{"JSON", "a.json", `{"text": 1}`, "", plain.TextKind, ""},
		{"declared", "a.txt", "x", "text/html; charset=utf-8", html.Kind, ""},
		{"declared as anything", "a.html", "x", "application/octet-stream", html.Kind, ""},
		{"declared as JSON", "a", "{}", "application/vnd.x+json", plain.TextKind, ""},
		{"declared as an image", "a.txt", "x", "image/png", "", "declared as image/png, not text"},
		{"declared nonsense", "a.txt", "x", "a b c", "", "not a media type"},
		{"PDF", "a.txt", "%PDF-1.4\n", "", "", "a PDF file, not text"},
		{"RTF", "a.doc", `{\rtf1 x}`, "", "", "an RTF file, not text"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := formats().Detect(test.file, []byte(test.data), test.mediaType)
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
		{"zip", "a.txt", "PK\x03\x04\xff\xfe", "", "", "", "a zip file, not text"},
		{"image", "a.txt", "\x89PNG\r\n\x1a\n\xff", "", "", "", "a PNG picture, not text"},
		{"odd UTF-16", "a", inUTF16("xy") + "z", "", "", "", "odd byte at offset 6"},
		{"half a pair", "a", "\xff\xfe\x3d\xd8x\x00", "", "", "", "half a character at offset 2"},
		{"half a pair at the end", "a", "\xff\xfe\x3d\xd8", "", "", "", "half a character at offset 2"},
		{"UTF-32", "a", "\xff\xfe\x00\x00x\x00\x00\x00", "", "", "", "UTF-32"},
		{"unknown charset", "a", "x", "text/plain; charset=klingon", "", "", `charset "klingon"`},
		{"not the declared charset", "a", "ab\x81\x20", "text/plain; charset=shift_jis", "", "", "not shift_jis: byte 0x81 at offset 2"},
		{"cut off in the declared charset", "a", "ab\x8a", "text/plain; charset=shift_jis", "", "", "byte 0x8a at offset 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := read(test.file, []byte(test.data), test.mediaType)
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
	if d, err := read("a.jsonl", []byte("{}"), ""); err == nil || errors.As(err, new(*document.RefusedError)) {
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
		var source, want string
		var at []int // where each character begins in source
		e := enc.NewEncoder()
		for _, r := range rapid.SliceOfN(rapid.RuneFrom([]rune("aZ 9é漢字ж語ﾊ")), 1, 30).Draw(t, "text") {
			coded, err := e.String(string(r))
			if err != nil || strings.ContainsAny(coded, "\x1a") {
				continue
			}
			at = append(at, len(source))
			source, want = source+coded, want+string(r)
		}
		if strings.TrimSpace(want) == "" {
			t.Skip("no text")
		}
		d, err := read("a", []byte(source), "text/plain; charset="+charset)
		if err != nil {
			t.Fatalf("Read: %v", err)
		}
		if d.Text != want {
			t.Fatalf("got %q, want %q", d.Text, want)
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
					if _, err := read(bench.file, data, ""); err != nil && !errors.As(err, new(*document.RefusedError)) {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
