package pdf_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/document/pdf"
	"github.com/coditect/mapreduce/internal/document/recognise"
)

// peer returns the path of a program that others wrote, or skips the test.
func peer(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// runPeer runs such a program, and returns what it writes.
func runPeer(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	return out
}

// wordF1 returns how well the words of two texts agree, however often each stands there.
func wordF1(got, want string) float64 {
	count := make(map[string]int)
	for w := range strings.FieldsSeq(want) {
		count[w]++
	}
	common, all := 0, 0
	for w := range strings.FieldsSeq(got) {
		all++
		if count[w] > 0 {
			count[w]--
			common++
		}
	}
	return 2 * float64(common) / float64(max(1, all+len(strings.Fields(want))))
}

// TestPrintedReceipts prints receipts by LibreOffice, and compares what is read of them
// with their text, and the boxes of words with those of Poppler.
func TestPrintedReceipts(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	data := os.Getenv("CODITECT_TESTDATA")
	if data == "" {
		t.Skip("CODITECT_TESTDATA is not set: the receipts are there")
	}
	office, _ := peer(t, "soffice"), peer(t, "pdftotext")
	all, err := filepath.Glob(filepath.Join(data, "receipts", "docs", "*.txt"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no receipts: %v", err)
	}
	every := 40
	if n := os.Getenv("CODITECT_PRINT_EVERY"); n != "" {
		if every, err = strconv.Atoi(n); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	var files []string
	for i := 0; i < len(all); i += every {
		files = append(files, all[i])
	}
	for some := range slices.Chunk(files, 40) { // it has failed silently with some hundreds
		runPeer(t, office, append([]string{"-env:UserInstallation=file://" + dir + "/profile", "--headless", "--convert-to", "pdf", "--outdir", dir}, some...)...)
	}
	worst, boxes, outside := 1.0, 0, 0
	for i := 0; i < len(all); i += every {
		want, err := os.ReadFile(all[i])
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, strings.TrimSuffix(filepath.Base(all[i]), ".txt")+".pdf")
		printed, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := read(t, shared, printed)
		if f1 := wordF1(d.Text, string(want)); f1 < worst {
			worst = f1
		}
		n, out := compareBoxes(t, d.Text, func(from, to int) []float64 {
			at := d.Layout.Locate(from, to)
			if at == nil || len(at.Boxes) != 1 {
				return nil
			}
			b := at.Boxes[0]
			return []float64{float64(b.Page), b.Left, b.Top, b.Right, b.Bottom}
		}, string(runPeer(t, "pdftotext", "-bbox", file, "-")))
		boxes, outside = boxes+n, outside+out
	}
	t.Logf("the worst word F1 is %.4f; of %d boxes %d are elsewhere", worst, boxes, outside)
	if worst < 0.99 || outside > 0 || boxes == 0 {
		t.Errorf("word F1 %.4f, want 0.99; %d of %d boxes are not where Poppler has them", worst, outside, boxes)
	}
}

var bboxWord = regexp.MustCompile(`<word xMin="([\d.]+)" yMin="([\d.]+)" xMax="([\d.]+)" yMax="([\d.]+)">([^<]*)</word>`)

// compareBoxes compares the boxes of words that both have once in the text: the middle
// of Poppler's must lie in ours, and the sides agree to 5 points. Poppler's go from the
// font's ascent to its descent, and as far as the pen moves, which in these receipts is 6
// points a character; ours end with the ink, as of a full stop.
func compareBoxes(t *testing.T, text string, box func(from, to int) []float64, bbox string) (boxes, outside int) {
	t.Helper()
	found := bboxWord.FindAllStringSubmatch(bbox, -1)
	count := make(map[string]int)
	for _, w := range found {
		count[w[5]]++
	}
	for _, w := range found {
		if len(w[5]) < 4 || strings.Contains(w[5], "&") || count[w[5]] > 1 || strings.Count(text, w[5]) != 1 {
			continue
		}
		from := strings.Index(text, w[5])
		got := box(from, from+len(w[5]))
		var side [4]float64
		for i := range side {
			side[i], _ = strconv.ParseFloat(w[i+1], 64) // digits, by the pattern
		}
		middle := (side[1] + side[3]) / 2
		boxes++
		if got == nil || got[1] > side[0]+5 || got[3] < side[2]-5 || got[1] < side[0]-5 || got[3] > side[2]+5 || got[2] > middle || got[4] < middle {
			outside++
			t.Logf("%q is at %v, and for Poppler at %v", w[5], got, side)
		}
	}
	return boxes, outside
}

// TestOCR reads a page that is a picture by tesseract.
func TestOCR(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	peer(t, "tesseract")
	toPicture := peer(t, "pdftoppm")
	file := filepath.Join(t.TempDir(), "a.pdf")
	if err := os.WriteFile(file, makeFile("", sheet{lines: prose(100, 700, "Invoice of the hardware store", "TOTAL 1250.75")}), 0o600); err != nil {
		t.Fatal(err)
	}
	drawn, err := png.Decode(bytes.NewReader(runPeer(t, toPicture, "-r", "150", "-gray", "-png", file)))
	if err != nil {
		t.Fatal(err)
	}
	r := pdf.New(pdf.Config{OCR: recognise.NewCommand([]string{"tesseract", "-", "-", "tsv"})})
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	d := read(t, r, pictureFile(drawn))
	at := strings.Index(d.Text, "1250.75")
	if at < 0 || d.Confidence < 0.5 || d.Confidence > 1 || len(d.Notes) != 1 {
		t.Fatalf("got %q with the confidence %v, and notes %q", d.Text, d.Confidence, d.Notes)
	}
	got := d.Layout.Locate(at, at+7)
	if len(got.Boxes) != 1 || got.Boxes[0].Top < 100 || got.Boxes[0].Bottom > 118 || got.Boxes[0].Left < 120 {
		t.Errorf("the total is at %v", got.Boxes)
	}
	broken := pdf.New(pdf.Config{OCR: recognise.NewCommand([]string{"false"})})
	if why := refusal(t, broken, pictureFile(drawn)); !strings.Contains(why, "did not read it") {
		t.Errorf("of a program that fails: %q", why)
	}
	if err := broken.Close(); err != nil {
		t.Error(err)
	}
}

// pictureFile returns a file of one page that is a picture.
func pictureFile(p image.Image) []byte {
	b := p.Bounds()
	var grey bytes.Buffer
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, _, _, _ := p.At(x, y).RGBA()
			grey.WriteByte(byte(r >> 8))
		}
	}
	m := new(maker)
	root := m.add("<< /Type /Catalog /Pages 2 0 R >>")
	m.add("<< /Type /Pages /Count 1 /Kids [3 0 R] >>")
	m.add("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /XObject << /X 5 0 R >> >> >>")
	m.add("<< /Length 27 >>\nstream\nq 600 0 0 800 0 0 cm /X Do Q\nendstream")
	m.add(fmt.Sprintf("<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8 /Length %d >>\nstream\n%s\nendstream",
		b.Dx(), b.Dy(), grey.Len(), grey.String()))
	return m.file(root)
}
