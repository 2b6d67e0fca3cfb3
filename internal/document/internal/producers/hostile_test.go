package producers_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/internal/zipmake"
)

// Bounds of what one file may take.
const (
	hostileTime   = 30 * time.Second
	hostileMemory = 512 << 20
)

// A hostile is a file that is damaged, or made to harm.
type hostile struct {
	name string
	data []byte
}

const (
	wordPart    = "word/document.xml"
	contentPart = "content.xml"
	word        = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"`
)

func wordFile(t testing.TB, xml string) []byte {
	return zipmake.Zip(t, zipmake.File{Name: "[Content_Types].xml", Content: "<Types/>"}, zipmake.File{Name: wordPart, Content: xml})
}

func sheetFile(t testing.TB, rows string, more ...zipmake.File) []byte {
	return zipmake.Zip(t, append([]zipmake.File{
		{Name: "xl/workbook.xml", Content: `<workbook xmlns:r="r"><sheets><sheet name="S" r:id="rId1"/></sheets></workbook>`},
		{Name: "xl/_rels/workbook.xml.rels", Content: `<R><R Id="rId1" Target="worksheets/sheet1.xml"/><R Id="rId2" TargetMode="External" Target="file:///etc/passwd"/></R>`},
		{Name: "xl/worksheets/sheet1.xml", Content: `<worksheet><sheetData>` + rows + `</sheetData></worksheet>`},
	}, more...)...)
}

func openFile(t testing.TB, kind, body string) []byte {
	return zipmake.Zip(t, zipmake.File{Name: "mimetype", Content: "application/vnd.oasis.opendocument." + kind, Stored: true},
		zipmake.File{Name: contentPart, Content: `<d xmlns:o="o"><o:body><o:` + kind + `>` + body + `</o:` + kind + `></o:body></d>`})
}

// wholeFiles returns one sound file of each format.
func wholeFiles(t testing.TB) []hostile {
	paragraphs := strings.Repeat("<w:p><w:r><w:t>Total 12.50</w:t></w:r></w:p>", 50)
	rows := strings.Repeat(`<row><c t="inlineStr"><is><t>Total</t></is></c><c><v>12.5</v></c></row>`, 50)
	slide := `<p:sld xmlns:p="p" xmlns:a="a"><p:sp><p:txBody>` + strings.Repeat("<a:p><a:r><a:t>Total</a:t></a:r></a:p>", 20) + `</p:txBody></p:sp></p:sld>`
	return []hostile{
		{"a.docx", wordFile(t, `<w:document `+word+`><w:body>`+paragraphs+`</w:body></w:document>`)},
		{"a.xlsx", sheetFile(t, rows)},
		{"a.pptx", zipmake.Zip(t, zipmake.File{Name: "ppt/presentation.xml", Content: `<p xmlns:r="r"><sldId r:id="a"/></p>`},
			zipmake.File{Name: "ppt/_rels/presentation.xml.rels", Content: `<R><R Id="a" Target="slides/slide1.xml"/></R>`}, zipmake.File{Name: "ppt/slides/slide1.xml", Content: slide})},
		{"a.odt", openFile(t, "text", strings.Repeat("<p>Total 12.50</p>", 50))},
		{"a.ods", openFile(t, "spreadsheet", "<table>"+strings.Repeat("<table-row><table-cell><p>Total</p></table-cell><table-cell><p>1</p></table-cell></table-row>", 50)+"</table>")},
		{"a.rtf", []byte(`{\rtf1\ansi{\fonttbl{\f0 Arial;}}` + strings.Repeat(`\trowd\intbl Total\cell 12.50\cell\row\pard text \'e4\par `, 50) + "}")},
		{"a.epub", zipmake.Zip(t, zipmake.File{Name: "mimetype", Content: "application/epub+zip", Stored: true},
			zipmake.File{Name: "META-INF/container.xml", Content: `<c><r><rootfile full-path="b.opf"/></r></c>`},
			zipmake.File{Name: "b.opf", Content: `<p><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></p>`},
			zipmake.File{Name: "a.xhtml", Content: "<html>" + strings.Repeat("<p>Total</p>", 50)})},
		{"a.eml", []byte("From: a@example.org\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n" + strings.Repeat("Total 12.50\n", 20) + "--b\nContent-Type: text/csv; name=a.csv\nContent-Transfer-Encoding: base64\n\nYSxiCg==\n--b--\n")},
		{"a.csv", []byte("name,total\n" + strings.Repeat("shop,\"12,50\"\n", 100))},
		{"a.mbox", []byte(strings.Repeat("From a@example.org Mon Mar  4 05:06:07 2024\nSubject: x\nMIME-Version: 1.0\n\nTotal\n\n", 20))},
		{"a.zip", zipmake.Zip(t, zipmake.File{Name: "a.txt", Content: "Total"}, zipmake.File{Name: "../b.txt", Content: "Total"})},
		{"a.msg", append([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), bytes.Repeat([]byte{0xff, 0, 3, 0xfe}, 600)...)},
	}
}

// damagedFiles returns files that are cut off, or have other bytes.
func damagedFiles(t testing.TB) []hostile {
	random := rand.New(rand.NewPCG(1, 2))
	var all []hostile
	for _, whole := range wholeFiles(t) {
		for i := range 9 {
			all = append(all, hostile{fmt.Sprintf("cut%d-%s", i, whole.name), whole.data[:len(whole.data)*(i+1)/11]})
		}
		for i := range 9 {
			data := bytes.Clone(whole.data)
			for range 1 << (i % 5) {
				data[random.IntN(len(data))] ^= 1 << random.IntN(8)
			}
			all = append(all, hostile{fmt.Sprintf("flipped%d-%s", i, whole.name), data})
		}
	}
	return all
}

// expandingFiles returns small files whose content is large.
func expandingFiles(t testing.TB) []hostile {
	const size = 400 << 20
	spaces := func(begin, unit, end string, n int) []byte {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := io.WriteString(w, begin+strings.Repeat(unit, n)+end); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		return packed.Bytes()
	}
	var header bytes.Buffer
	if err := tar.NewWriter(&header).WriteHeader(&tar.Header{Name: "x", Size: size, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	many := make([]zipmake.File, 30_000)
	for i := range many {
		many[i].Name = strconv.Itoa(i)
	}
	inner := zipmake.Zip(t, zipmake.File{Name: "x", Content: strings.Repeat("x", 4<<20)})
	for range 6 {
		inner = zipmake.Zip(t, zipmake.File{Name: "a.zip", Content: string(inner)}, zipmake.File{Name: "b.zip", Content: string(inner)})
	}
	paragraph := "<w:p><w:r><w:t>x</w:t></w:r></w:p>"
	mixed := func(n int) string { // expands less than the bound for each entry, and much in all
		random := rand.New(rand.NewPCG(3, 4))
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "<w:p><w:r><w:t>%d%s</w:t></w:r></w:p>", random.Uint32(), strings.Repeat(" ", 900))
		}
		return b.String()
	}
	strs := func(unit string, n int) []byte {
		return sheetFile(t, `<row><c t="s"><v>0</v></c></row>`, zipmake.File{Name: "xl/sharedStrings.xml", Content: "<sst>" + strings.Repeat(unit, n) + "</sst>"})
	}
	return []hostile{
		{"bomb.docx", wordFile(t, `<w:document `+word+`><w:body>`+strings.Repeat(paragraph, 2<<20)+`</w:body></w:document>`)},
		{"slow-bomb.docx", wordFile(t, `<w:document `+word+`><w:body>`+mixed(150_000)+`</w:body></w:document>`)},
		{"one-text.docx", wordFile(t, `<w:document `+word+`><w:body><w:p><w:r><w:t>`+strings.Repeat("x", 60<<20)+`</w:t></w:r></w:p></w:body></w:document>`)},
		{"attributes.docx", wordFile(t, `<w:document `+word+`><w:body><w:p `+strings.Repeat(`a="" `, 8<<20)+`/></w:body></w:document>`)},
		{"bomb.odt", openFile(t, "text", strings.Repeat("<p>x</p>", 4<<20))},
		{"bomb.epub", zipmake.Zip(t, zipmake.File{Name: "mimetype", Content: "application/epub+zip", Stored: true}, zipmake.File{Name: "META-INF/container.xml", Content: "<c>" + strings.Repeat(" ", 60<<20)})},
		{"bomb.zip", zipmake.Zip(t, zipmake.File{Name: "x", Content: strings.Repeat("x", 60<<20)})},
		{"many.zip", zipmake.Zip(t, many...)},
		{"many.docx", zipmake.Zip(t, append(many, zipmake.File{Name: wordPart, Content: "<x/>"})...)},
		{"nested.zip", inner},
		{"bomb.tgz", append(spaces("", header.String(), "", 1), spaces("", strings.Repeat("x", 1<<20), "", 64)...)},
		{"strings.xlsx", strs("<si/>", 5<<20)},
		{"numbered-strings.xlsx", strs("<si><t>1</t></si>", 2<<20)},
		{"columns.xlsx", sheetFile(t, strings.Repeat(`<row><c r="XFD1"><v>1</v></c></row>`, 10_000))},
		{"rows.xlsx", sheetFile(t, `<row r="999999999"><c><v>1</v></c></row><row r="1048576"><c><v>1</v></c></row>`)},
		{"cells.xlsx", sheetFile(t, strings.Repeat(`<row>`+strings.Repeat(`<c><v>1</v></c>`, 50)+`</row>`, 20_000))},
		{"styles.xlsx", sheetFile(t, `<row><c s="1"><v>1</v></c></row>`, zipmake.File{Name: "xl/styles.xml", Content: "<s><cellXfs>" + strings.Repeat("<xf/>", 2<<20) + "</cellXfs></s>"})},
		{"repeats.ods", openFile(t, "spreadsheet", `<table><table-row number-rows-repeated="2147483647"><table-cell number-columns-repeated="2147483647"><p>x</p></table-cell></table-row></table>`)},
		{"many-repeats.ods", openFile(t, "spreadsheet", `<table>`+strings.Repeat(`<table-row number-rows-repeated="1000"><table-cell number-columns-repeated="1000"><p>x</p></table-cell></table-row>`, 1000)+`</table>`)},
		{"repeats.odt", openFile(t, "text", strings.Repeat(`<table><table-row number-rows-repeated="1000"><table-cell number-columns-repeated="1000"><p>x</p></table-cell></table-row></table>`, 1000))},
		{"spaces.odt", openFile(t, "text", `<p>`+strings.Repeat(`<s c="2147483647"/>`, 100_000)+`x</p>`)},
		{"spans.docx", wordFile(t, `<w:document `+word+`><w:body><w:tbl>`+strings.Repeat(`<w:tr><w:tc><w:tcPr><w:gridSpan w:val="2147483647"/></w:tcPr>`+paragraph+`</w:tc></w:tr>`, 1000)+`</w:tbl></w:body></w:document>`)},
		{"spans.eml", []byte("From: a\nSubject: b\nMIME-Version: 1.0\nContent-Type: text/html\n\n<table>" + strings.Repeat("<tr><td colspan=1000 rowspan=60000>x", 5000))},
		{"cells.rtf", []byte(`{\rtf1 ` + strings.Repeat(`\trowd\intbl x\cell\row`, 300_000) + "}")},
		{"columns.csv", []byte(strings.Repeat("x,", 5<<20))},
		{"quote.csv", []byte("\"" + strings.Repeat("x,\n", 10<<20))},
		{"wide.csv", []byte(strings.Repeat("a,", 10_000) + "\n" + strings.Repeat("1\n", 100_000))},
	}
}

// nestedFiles returns files with much within each other, circles, and entities.
func nestedFiles(t testing.TB) []hostile {
	laughs := `<!DOCTYPE x [<!ENTITY a "lollollollol">`
	for c := 'b'; c < 'k'; c++ { // each is ten of the one before
		laughs += fmt.Sprintf(`<!ENTITY %c "%s">`, c, strings.Repeat(fmt.Sprintf("&%c;", c-1), 10))
	}
	laughs += "]>"
	external := `<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>`
	deep := func(tag string, n int) string {
		return strings.Repeat("<"+tag+">", n) + "x" + strings.Repeat("</"+tag+">", n)
	}
	document := func(prolog, body string) string {
		return prolog + `<w:document ` + word + `><w:body>` + body + `</w:body></w:document>`
	}
	parts := "From: a\nSubject: b\nMIME-Version: 1.0\n"
	for i := range 5000 {
		parts += fmt.Sprintf("Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i)
	}
	attached := "Subject: x\n\nx\n"
	for i := range 40 {
		attached = fmt.Sprintf("From: a\nSubject: b\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b%d\n\n--b%d\nContent-Type: message/rfc822\n\n%s\n--b%d--\n", i, i, attached, i)
	}
	var all []hostile
	for _, f := range []struct{ name, prolog, text string }{{"laughs", laughs, "&j;"}, {"external", external, "&a;"}, {"parameter", `<!DOCTYPE x [<!ENTITY % a SYSTEM "http://127.0.0.1:1/x"> %a;]>`, "x"}} {
		paragraph := "<w:p><w:r><w:t>" + f.text + "</w:t></w:r></w:p>"
		all = append(all, hostile{f.name + ".docx", wordFile(t, document(f.prolog, paragraph))},
			hostile{f.name + ".xlsx", sheetFile(t, "", zipmake.File{Name: "xl/sharedStrings.xml", Content: f.prolog + "<sst><si><t>" + f.text + "</t></si></sst>"})},
			hostile{f.name + ".odt", zipmake.Zip(t, zipmake.File{Name: "mimetype", Content: "application/vnd.oasis.opendocument.text", Stored: true}, zipmake.File{Name: contentPart, Content: f.prolog + "<d><body><text><p>" + f.text + "</p></text></body></d>"})},
			hostile{f.name + ".html", []byte(f.prolog + "<html><p>" + f.text)})
	}
	return append(all,
		hostile{"deep.docx", wordFile(t, document("", deep("w:sdt", 100_000)))},
		hostile{"tables.docx", wordFile(t, document("", deep("w:tbl><w:tr><w:tc", 80)))},
		hostile{"text-boxes.docx", wordFile(t, document("", deep("w:p><w:r><w:txbxContent", 80)))},
		hostile{"styles.docx", zipmake.Zip(t, zipmake.File{Name: wordPart, Content: document("", `<w:p><w:pPr><w:pStyle w:val="a"/></w:pPr><w:r><w:t>x</w:t></w:r></w:p>`)},
			zipmake.File{Name: "word/styles.xml", Content: `<w:styles ` + word + `><w:style w:styleId="a"><w:basedOn w:val="b"/></w:style><w:style w:styleId="b"><w:basedOn w:val="a"/></w:style></w:styles>`})},
		hostile{"deep.odt", openFile(t, "text", deep("section", 100_000))},
		hostile{"lists.odt", openFile(t, "text", deep("list><list-item", 120))},
		hostile{"notes.odt", openFile(t, "text", deep("p><note note-class='x'><note-body", 80))},
		hostile{"groups.rtf", []byte(`{\rtf1 ` + strings.Repeat("{", 1<<20))},
		hostile{"notes.rtf", []byte(`{\rtf1 ` + strings.Repeat(`{\footnote x`, 499) + strings.Repeat("}", 500))},
		hostile{"many-notes.rtf", []byte(`{\rtf1 ` + strings.Repeat(`{\footnote x}`, 200_000) + "}")},
		hostile{"bin.rtf", []byte(`{\rtf1 \bin2147483647 x}`)},
		hostile{"words.rtf", []byte(`{\rtf1 \` + strings.Repeat("a", 20<<20) + "}")},
		hostile{"numbers.rtf", []byte(`{\rtf1 \u99999999999999999999 \uc2147483647\u65 x}`)},
		hostile{"parts.eml", []byte(parts)},
		hostile{"attached.eml", []byte(attached)},
		hostile{"headers.eml", []byte("From: a\nSubject: b\nMIME-Version: 1.0\n" + strings.Repeat("X: y\n", 2<<20) + "\n")},
		hostile{"boundaries.eml", []byte("From: a\nSubject: b\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat("--b\n\nx\n", 300_000))},
		hostile{"html.eml", []byte("From: a\nSubject: b\nMIME-Version: 1.0\nContent-Type: text/html\n\n" + strings.Repeat("<table><tr><td><ul><li>", 200_000))},
		hostile{"tags.eml", []byte("From: a\nSubject: b\nMIME-Version: 1.0\nContent-Type: text/html\n\n" + strings.Repeat("<b ", 2<<20))},
		hostile{"messages.eml", []byte(strings.Repeat("From: a\nSubject: b\nMIME-Version: 1.0\nContent-Type: message/rfc822\n\n", 300_000) + "x")},
		hostile{"deep.html", []byte("<html>" + strings.Repeat("<div>", 4<<20) + "x")},
		hostile{"open.html", []byte("<html>" + strings.Repeat("<iframe><noembed><noframes><svg><template>", 1<<18) + "x")},
		hostile{"cells.html", []byte("<html>" + strings.Repeat("<table><tr><td>x", 1<<20))},
		hostile{"tags.html", []byte("<html>" + strings.Repeat("<a ", 8<<20))},
		hostile{"attributes.html", []byte("<html><p " + strings.Repeat(`class="ad" `, 2<<20) + ">x")},
		hostile{"comments.html", []byte("<html>" + strings.Repeat("<!--", 4<<20) + "x")},
		hostile{"entities.html", []byte("<html>" + strings.Repeat("&amp&#x", 4<<20) + "x")},
		hostile{"separators.mbox", []byte(strings.Repeat("From a@example.org 2024\nX: y\n\n", 100_000))},
		hostile{"slides.pptx", zipmake.Zip(t, zipmake.File{Name: "ppt/presentation.xml", Content: `<p xmlns:r="r">` + strings.Repeat(`<sldId r:id="a"/>`, 200_000) + `</p>`},
			zipmake.File{Name: "ppt/_rels/presentation.xml.rels", Content: `<R><R Id="a" Target="slides/slide1.xml"/></R>`}, zipmake.File{Name: "ppt/slides/slide1.xml", Content: `<s xmlns:r="r"><relIds r:dm="d"/></s>`},
			zipmake.File{Name: "ppt/slides/_rels/slide1.xml.rels", Content: `<R><R Id="d" Target="slide1.xml"/></R>`})},
	)
}

// lyingFiles returns files that are encrypted, refer elsewhere, have names that escape, or
// say that they are what they are not.
func lyingFiles(t testing.TB) []hostile {
	encrypted := zipmake.Zip(t, zipmake.File{Name: wordPart, Content: "<x/>"})
	encrypted[bytes.Index(encrypted, []byte("PK\x01\x02"))+8] |= 1
	var all []hostile
	whole := wholeFiles(t)
	for i, f := range whole { // each under the name of the next
		all = append(all, hostile{"named-as-" + whole[(i+1)%len(whole)].name, f.data})
	}
	return append(all,
		hostile{"encrypted.docx", encrypted},
		hostile{"overlong.docx", append(wordFile(t, "<x/>"), make([]byte, 1<<20)...)},
		hostile{"twice.docx", zipmake.Zip(t, zipmake.File{Name: wordPart, Content: `<d><p><t>a</t></p></d>`}, zipmake.File{Name: wordPart, Content: `<d><p><t>b</t></p></d>`})},
		hostile{"absolute.docx", zipmake.Zip(t, zipmake.File{Name: "/etc/passwd"}, zipmake.File{Name: "../../" + wordPart}, zipmake.File{Name: wordPart, Content: `<d><p><t>a</t></p></d>`})},
		hostile{"outside.pptx", zipmake.Zip(t, zipmake.File{Name: "ppt/presentation.xml", Content: `<p xmlns:r="r"><sldId r:id="a"/></p>`}, zipmake.File{Name: "ppt/_rels/presentation.xml.rels", Content: `<R><R Id="a" Target="../../../../etc/passwd"/></R>`})},
		hostile{"formulas.xlsx", sheetFile(t, `<row><c><f>WEBSERVICE("http://127.0.0.1:1/")</f></c><c t="str"><f>cmd|' /C calc'!A0</f><v>x</v></c></row>`)},
		hostile{"macros.docx", zipmake.Zip(t, zipmake.File{Name: wordPart, Content: `<d><p><t>a</t></p></d>`}, zipmake.File{Name: "word/vbaProject.bin", Content: "\xd0\xcf\x11\xe0"})},
		hostile{"formula.csv", []byte("a,b\n=cmd|' /C calc'!A0,@SUM(1)\n")},
		hostile{"names.zip", zipmake.Zip(t, zipmake.File{Name: "../../../../tmp/x"}, zipmake.File{Name: `..\..\x`}, zipmake.File{Name: "a\x00b"}, zipmake.File{Name: strings.Repeat("n", 5000)}, zipmake.File{Name: "a\n\x1b[2Jb", Content: "x"})},
		hostile{"drm.epub", zipmake.Zip(t, zipmake.File{Name: "mimetype", Content: "application/epub+zip", Stored: true}, zipmake.File{Name: "META-INF/encryption.xml", Content: `<e><c><CipherReference URI="a.xhtml"/></c></e>`})},
		hostile{"empty.docx", nil}, hostile{"nul.docx", make([]byte, 1<<20)}, hostile{"magic.docx", []byte("PK\x03\x04")}, hostile{"end.zip", []byte("PK\x05\x06" + strings.Repeat("\xff", 18))},
		hostile{"sectors.msg", append([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), bytes.Repeat([]byte{0}, 1<<20)...)},
	)
}

// parseHostile reads a file as the program does: its members, and what they are.
func parseHostile(ctx context.Context, r *document.Registry, name string, data []byte, depth int) (texts int, reasons []string, err error) {
	kind, err := r.Detect(name, data[:min(len(data), document.SniffBytes)], "")
	f, _ := r.Format(kind)
	if err == nil && f.Members != nil && depth < 2 {
		for m, err := range f.Members(ctx, document.Input{Name: name, Content: bytes.NewReader(data)}) {
			if err != nil {
				return texts, append(reasons, err.Error()), refusedOnly(err)
			}
			if m.Skip != "" || m.Name == "" || f.Kind == "mbox" {
				reasons = append(reasons, m.Skip)
				continue
			}
			below := depth + 1
			if len(f.MediaTypes) > 0 && m.MediaType == f.MediaTypes[0] {
				below = 2 // its format has split it already
			}
			n, why, err := parseHostile(ctx, r, m.Name, m.Content, below)
			texts, reasons = texts+n, append(reasons, why...)
			if err != nil {
				return texts, reasons, err
			}
		}
		if f.Parse == nil {
			return texts, reasons, nil
		}
	}
	if err == nil && f.Parse == nil {
		return texts, append(reasons, "holds many"), nil
	}
	d, err := r.Parse(ctx, document.Input{Name: name, Content: bytes.NewReader(data)})
	if err != nil {
		return texts, append(reasons, err.Error()), refusedOnly(err)
	}
	if strings.TrimSpace(d.Text) == "" {
		return texts, reasons, errors.New("text that is empty")
	}
	return texts + 1, reasons, nil
}

// refusedOnly returns errors that do not refuse a file.
func refusedOnly(err error) error {
	if errors.As(err, new(*document.RefusedError)) {
		return nil
	}
	return err
}

// TestHostileFiles reads files that are damaged or made to harm. Each ends as text, or as
// refused with a reason, in bounded time and memory. The large ones are read where
// CODITECT_HOSTILE is set, as `make documents` does. Time is that of the processor, so
// that a busy machine fails no test.
func TestHostileFiles(t *testing.T) {
	kinds := []func(testing.TB) []hostile{damagedFiles, lyingFiles}
	if os.Getenv("CODITECT_HOSTILE") != "" {
		kinds = append(kinds, nestedFiles, expandingFiles)
	}
	r := formats(t)
	var slowest, largest hostileCost
	count, texts := 0, 0
	for _, kind := range kinds {
		files := kind(t)
		for i, f := range files {
			files[i].data = nil
			n, cost := readHostile(t, r, f)
			if count++; n > 0 {
				texts++
			}
			if cost.time > slowest.time {
				slowest = cost
			}
			if cost.memory > largest.memory {
				largest = cost
			}
		}
	}
	t.Logf("%d files, %d of them text; slowest %s: %v; largest %s: %d MiB", count, texts, slowest.name, slowest.time.Round(time.Millisecond), largest.name, largest.memory>>20)
}

// readHostile reads a file, and returns how many texts there were in it.
func readHostile(t *testing.T, r *document.Registry, f hostile) (int, hostileCost) {
	t.Helper()
	debug.FreeOSMemory()
	resetPeak()
	held := peak(t) // by the test
	started := processorTime(t)
	n, reasons, err := parseHostile(t.Context(), r, f.name, f.data, 0)
	cost := hostileCost{f.name, processorTime(t) - started, peak(t) - held}
	if err != nil {
		t.Errorf("%s: %v", f.name, err)
	}
	if n == 0 && len(reasons) == 0 && f.name != "end.zip" { // an archive of no files
		t.Errorf("%s: neither text nor a reason", f.name)
	}
	if cost.time > hostileTime || cost.memory > hostileMemory {
		t.Errorf("%s: took %v and %d MiB", f.name, cost.time, cost.memory>>20)
	}
	if testing.Verbose() && (cost.time > time.Second || cost.memory > 100<<20) {
		t.Logf("%s: %v, %d MiB", f.name, cost.time.Round(time.Millisecond), cost.memory>>20)
	}
	return n, cost
}

// A hostileCost is what reading a file took.
type hostileCost struct {
	name   string
	time   time.Duration // of the processor
	memory int64         // bytes
}

// processorTime returns the time that the process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// resetPeak makes the peak of memory that of now, where the system can. Where it cannot,
// the peak is that of all files.
func resetPeak() {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return
	}
}

// peak returns the most memory that was resident, in bytes.
func peak(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	return 0
}
