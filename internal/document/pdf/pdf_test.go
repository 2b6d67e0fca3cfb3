package pdf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/pdf"
)

// shared reads the files of most tests: to compile PDFium again takes its time.
var shared = pdf.New(pdf.Config{})

func TestMain(m *testing.M) {
	code := m.Run()
	if err := shared.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// parse reads a file as the registry does.
func parse(ctx context.Context, r *pdf.Reader, data []byte) (*document.Document, error) {
	all, err := document.NewRegistry(r.Format())
	if err != nil {
		return nil, err
	}
	return all.Parse(ctx, document.Input{Name: "a.pdf", Content: bytes.NewReader(data)})
}

// read parses a file that can be read.
func read(t *testing.T, r *pdf.Reader, data []byte) *document.Document {
	t.Helper()
	d, err := parse(t.Context(), r, data)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// refusal returns why a file is refused.
func refusal(t *testing.T, r *pdf.Reader, data []byte) string {
	t.Helper()
	d, err := parse(t.Context(), r, data)
	var refused *document.RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("got %+v and error %v, want a refusal", d, err)
	}
	return refused.Reason
}

// prose returns lines of running text from a height downwards.
func prose(x, top float64, lines ...string) []line {
	var all []line
	for i, text := range lines {
		all = append(all, line{x, top - 12*float64(i), text})
	}
	return all
}

func alternate(a, b []line) []line {
	var all []line
	for i := range a {
		all = append(all, a[i], b[i])
	}
	return all
}

var (
	left  = prose(50, 700, "The first column says", "what it has to say in", "several lines that", "belong together.")
	right = prose(320, 700, "The second column is", "read behind the first", "although its lines are", "beside those of it.")
	both  = "The first column says\nwhat it has to say in\nseveral lines that\nbelong together.\n\nThe second column is\nread behind the first\nalthough its lines are\nbeside those of it.\n"
)

func TestReadingOrder(t *testing.T) {
	for _, test := range []struct {
		name  string
		pages []sheet
		want  string
	}{
		{"lines", []sheet{{lines: prose(50, 700, "Total 12.50", "Date 2026-01-02")}}, "Total 12.50\nDate 2026-01-02\n"},
		{"paragraphs", []sheet{{lines: []line{{50, 700, "One."}, {50, 660, "Two."}}}}, "One.\n\nTwo.\n"},
		{"columns, written one by one", []sheet{{lines: append(append([]line(nil), left...), right...)}}, both},
		{"columns, written line by line", []sheet{{lines: alternate(left, right)}}, both},
		{"columns, the right one first", []sheet{{lines: append(append([]line(nil), right...), left...)}}, "The second column is\nread behind the first\nalthough its lines are\nbeside those of it.\n\nThe first column says\nwhat it has to say in\nseveral lines that\nbelong together.\n"},
		{"from the bottom upwards", []sheet{{lines: []line{{50, 600, "five"}, {50, 620, "four"}, {50, 640, "three"}, {50, 660, "two"}, {50, 680, "one"}}}}, "one\n\ntwo\n\nthree\n\nfour\n\nfive\n"},
		{"columns, their title last", []sheet{{lines: append(append(append([]line(nil), left...), right...), line{50, 760, "A title that stands over both of the columns, though it is last in the file"})}}, "A title that stands over both of the columns, though it is last in the file\n\n" + both},
		{"the foot of a page first", []sheet{{lines: append([]line{{50, 40, "Page 1 of 2"}}, left...)}}, "The first column says\nwhat it has to say in\nseveral lines that\nbelong together.\n\nPage 1 of 2\n"},
		{"a table", []sheet{{lines: alternate(prose(50, 700, "Apples", "Pears", "Plums"), prose(300, 700, "1.00", "2.50", "3.75"))}}, "Apples\t1.00\nPears\t2.50\nPlums\t3.75\n"},
		{"hyphens", []sheet{{lines: prose(50, 700, "This is a very long conver-", "sation of two.")}}, "This is a very long conversation of two.\n"},
		{"pages", []sheet{{lines: prose(50, 700, "one")}, {lines: prose(50, 700, "two")}}, "one\n\ntwo\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := read(t, shared, makeFile("", test.pages...))
			if diff := cmp.Diff(test.want, d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBoxes looks for words where they were written, on pages as a viewer shows them.
func TestBoxes(t *testing.T) {
	for _, test := range []struct {
		name, more string
		want       mapreduce.Box // of a word that begins at (100, 700) of the file
	}{
		{"upright", "", mapreduce.Box{Page: 1, Left: 100, Top: 92, Right: 122, Bottom: 102}},
		{"a quarter to the right", "/Rotate 90", mapreduce.Box{Page: 1, Left: 700, Top: 100, Right: 708, Bottom: 122}},
		{"upside down", "/Rotate 180", mapreduce.Box{Page: 1, Left: 478, Top: 700, Right: 500, Bottom: 708}},
		{"three quarters", "/Rotate 270", mapreduce.Box{Page: 1, Left: 92, Top: 478, Right: 102, Bottom: 500}},
		{"cropped", "/CropBox [50 0 600 750]", mapreduce.Box{Page: 1, Left: 50, Top: 42, Right: 72, Bottom: 52}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := read(t, shared, makeFile("", sheet{lines: []line{{100, 700, "Total"}}, more: test.more}))
			at := d.Layout.Locate(0, 5)
			if d.Text != "Total\n" || at == nil || at.Page != 1 || len(at.Boxes) != 1 {
				t.Fatalf("got %q at %+v", d.Text, at)
			}
			got := at.Boxes[0]
			for _, side := range [][2]float64{{got.Left, test.want.Left}, {got.Top, test.want.Top}, {got.Right, test.want.Right}, {got.Bottom, test.want.Bottom}} {
				if side[0] < side[1]-3 || side[0] > side[1]+3 {
					t.Fatalf("got %+v, want about %+v", got, test.want)
				}
			}
		})
	}
}

// TestHyphenIsInTwoBoxes cites a word that a line end parts.
func TestHyphenIsInTwoBoxes(t *testing.T) {
	d := read(t, shared, makeFile("", sheet{lines: prose(50, 700, "This is a very long conver-", "sation of two.")}))
	from := strings.Index(d.Text, "conversation")
	if from < 0 {
		t.Fatalf("got %q", d.Text)
	}
	if at := d.Layout.Locate(from, from+len("conversation")); at == nil || len(at.Boxes) != 2 || at.Boxes[0].Top >= at.Boxes[1].Top {
		t.Errorf("it is at %+v, want a box in each line", at)
	}
}

func TestFormsAndAnnotations(t *testing.T) {
	m := new(maker)
	root, tree, page := m.add(""), m.add(""), m.add("")
	field := m.add("<< /Type /Annot /Subtype /Widget /FT /Tx /T (Name) /V (Ada Lovelace) /Rect [100 600 300 620] /P 3 0 R >>")
	said := m.add("<< /Type /Annot /Subtype /Text /Contents (Please check.) /Rect [400 600 420 620] >>")
	m.objects[root-1] = fmt.Sprintf("<< /Type /Catalog /Pages %d 0 R /AcroForm << /Fields [%d 0 R] >> >>", tree, field)
	m.objects[tree-1] = fmt.Sprintf("<< /Type /Pages /Count 1 /Kids [%d 0 R] >>", page)
	m.objects[page-1] = fmt.Sprintf("<< /Type /Page /Parent %d 0 R /MediaBox [0 0 600 800] /Annots [%d 0 R %d 0 R] >>", tree, field, said)
	d := read(t, shared, m.file(root))
	if want := "Name: Ada Lovelace\nPlease check.\n"; d.Text != want {
		t.Fatalf("got %q, want %q", d.Text, want)
	}
	at := strings.Index(d.Text, "Ada")
	if got := d.Layout.Locate(at, at+12); got == nil || len(got.Boxes) != 1 || got.Boxes[0] != (mapreduce.Box{Page: 1, Left: 100, Top: 180, Right: 300, Bottom: 200}) {
		t.Errorf("the field is at %v", got.Boxes)
	}
}

func TestRefusals(t *testing.T) {
	scanned := makeFile("", sheet{}, sheet{})
	whole := makeFile("", sheet{lines: left})
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"scanned", scanned, "2 pages without text"},
		{"head alone", whole[:20], "damaged"},
		{"nothing of it", []byte("%PDF-1.7\n" + strings.Repeat("x", 5000)), "damaged"},
		{"pages without end", manyPages(1_000_000), "1000000 pages"},
		{"pages that hold themselves", cyclicPages(), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := refusal(t, shared, test.data); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q in it", got, test.want)
			}
		})
	}
	mixed := read(t, shared, makeFile("", sheet{lines: left}, sheet{}))
	if want := []string{"1 of 2 pages have no text, page 2 first"}; !cmp.Equal(mixed.Notes, want) {
		t.Errorf("notes are %q, want %q", mixed.Notes, want)
	}
}

// manyPages returns a file that says it has n pages, and repeats one.
func manyPages(n int) []byte {
	m := new(maker)
	root := m.add("<< /Type /Catalog /Pages 2 0 R >>")
	m.add(fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", n, strings.Repeat("3 0 R ", n)))
	m.add("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] >>")
	return m.file(root)
}

// cyclicPages returns a file whose page tree, contents and forms lead back to themselves.
func cyclicPages() []byte {
	m := new(maker)
	root := m.add("<< /Type /Catalog /Pages 2 0 R >>")
	m.add("<< /Type /Pages /Count 3 /Kids [2 0 R 3 0 R 2 0 R] /Parent 2 0 R >>")
	m.add("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /XObject << /X 4 0 R >> >> >>")
	m.add("<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 4 0 R >> >> /Length 5 >>\nstream\n/X Do\nendstream")
	return m.file(root)
}

func TestPassword(t *testing.T) {
	qpdf, err := exec.LookPath("qpdf")
	if err != nil {
		t.Skip("qpdf encrypts the file, and is not installed")
	}
	dir := t.TempDir()
	plain, locked := filepath.Join(dir, "plain.pdf"), filepath.Join(dir, "locked.pdf")
	if err := os.WriteFile(plain, makeFile("", sheet{lines: left}), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), qpdf, "--encrypt", "open sesame", "owner", "256", "--", plain, locked).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(locked)
	if err != nil {
		t.Fatal(err)
	}
	if got := refusal(t, shared, data); !strings.Contains(got, "--password") {
		t.Errorf("without a password: %q", got)
	}
	for password, want := range map[string]string{"open sesame": "", "wrong": "does not open"} {
		r := pdf.New(pdf.Config{Password: password})
		if want != "" {
			if got := refusal(t, r, data); !strings.Contains(got, want) {
				t.Errorf("with a wrong one: %q", got)
			}
		} else if d := read(t, r, data); !strings.HasPrefix(d.Text, "The first column says") {
			t.Errorf("got %q", d.Text)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestUnmeasured reads text objects whose glyphs PDFium cannot measure: they stand where they
// were written.
func TestUnmeasured(t *testing.T) {
	for name, tt := range map[string]struct {
		texts [][]byte
		want  string
	}{
		"one glyph":           {[][]byte{{0x54, 0x08}}, "合"},
		"glyphs, then one":    {[][]byte{{0x54, 0x08, 0x8b, 0xa1}, {0x91, 0xd1}}, "合计金"},
		"one, one and glyphs": {[][]byte{{0x54, 0x08}, {0x8b, 0xa1}, {0x91, 0xd1, 0x98, 0x9d}}, "合计金额"},
	} {
		d := read(t, shared, makeUnmeasured(tt.texts...))
		if got := strings.Join(strings.Fields(d.Text), ""); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
			continue
		}
		at := d.Layout.Locate(0, len("合"))
		if at == nil || len(at.Boxes) != 1 || at.Boxes[0].Left < 55 || at.Boxes[0].Left > 65 || at.Boxes[0].Top < 80 || at.Boxes[0].Bottom > 130 {
			t.Errorf("%s: the first glyph is at %+v of %q, %v", name, at, d.Text, d.Layout)
		}
	}
}

// TestBounds reads what takes more time, pages or text than it may.
func TestBounds(t *testing.T) {
	many := make([]sheet, 40)
	for i := range many {
		many[i] = sheet{lines: left}
	}
	data := makeFile("", many...)
	for want, config := range map[string]pdf.Config{
		"more than the 10":   {MaxPages: 10},
		"100 bytes of text":  {MaxText: 100},
		"more than 50 bytes": {MaxBytes: 50},
	} {
		r := pdf.New(config)
		if got := refusal(t, r, data); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	for want, limits := range map[string]document.Limits{
		"longer than 1ns": {Time: time.Nanosecond}, "more than the 10": {Pages: 10}, "100 bytes of text": {Bytes: 100},
	} {
		formats, err := document.NewRegistry(shared.Format())
		if err != nil {
			t.Fatal(err)
		}
		_, err = formats.Parse(t.Context(), document.Input{Name: "a.pdf", Content: bytes.NewReader(data), Limits: limits})
		if refused, ok := errors.AsType[*document.RefusedError](err); !ok || !strings.Contains(refused.Reason, want) {
			t.Errorf("with limits of the job: %v, want %q in it", err, want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := parse(ctx, shared, data); !errors.Is(err, gone) {
		t.Errorf("of a caller who is gone: %v", err)
	}
}

// TestDamaged reads files that are cut off, changed or made up: each ends as a text or as
// a refusal with its reason, in bounded time and memory, and its neighbours do not
// notice. CODITECT_HOSTILE_PDFS is how many are tried.
func TestDamaged(t *testing.T) {
	whole := makeFile("", sheet{lines: left}, sheet{lines: right, more: "/Rotate 90"})
	good := read(t, shared, whole).Text
	chance := rand.New(rand.NewPCG(1, 2))
	trials := 30
	if n := os.Getenv("CODITECT_HOSTILE_PDFS"); n != "" {
		if _, err := fmt.Sscan(n, &trials); err != nil {
			t.Fatal(err)
		}
	}
	var slowest time.Duration
	texts := 0
	for i := range trials {
		data := bytes.Clone(whole)
		switch i % 3 {
		case 0:
			data = data[:chance.IntN(len(data))]
		case 1:
			for range 1 + chance.IntN(30) {
				data[9+chance.IntN(len(data)-9)] ^= 1 << chance.IntN(8)
			}
		case 2:
			from := 9 + chance.IntN(len(data)-9)
			data = append(data[:from:from], data[min(len(data), from+chance.IntN(200)):]...)
		}
		if !bytes.HasPrefix(data, []byte("%PDF-")) {
			continue // it is of no format
		}
		begin := time.Now()
		_, err := parse(t.Context(), shared, data)
		slowest = max(slowest, time.Since(begin))
		if err == nil {
			texts++
		} else if !errors.As(err, new(*document.RefusedError)) {
			t.Errorf("file %d: %v, want a refusal", i, err)
		}
		if d := read(t, shared, whole); d.Text != good {
			t.Fatalf("behind file %d a sound one has the text %q", i, d.Text)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d of %d have a text; the slowest took %v; %d MiB from the system", texts, trials, slowest, m.Sys>>20)
	if slowest > 30*time.Second {
		t.Errorf("a file took %v", slowest)
	}
}

// FuzzParse reads files of any bytes.
func FuzzParse(f *testing.F) {
	f.Add(makeFile("", sheet{lines: left}))
	f.Add(makeFile("", rightToLeft(line{100, 700, "12.50 IHG (python 3) .FED CBA"})))
	f.Add(cyclicPages())
	// PDFium is compiled here, which may take longer than one input may.
	if _, err := shared.Parse(f.Context(), document.Input{Content: bytes.NewReader(makeFile("", sheet{lines: left}))}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		d, err := shared.Parse(ctx, document.Input{Content: bytes.NewReader(data)})
		if err != nil {
			if !errors.As(err, new(*document.RefusedError)) {
				t.Errorf("got %v, want a refusal", err)
			}
			return
		}
		if err := d.Layout.Check(len(d.Text)); err != nil {
			t.Error(err)
		}
	})
}
