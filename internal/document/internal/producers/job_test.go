package producers_test

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pdfFile returns a PDF file of objects from number 1 on, the first its catalogue.
func pdfFile(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	at := make([]int, len(objects))
	for i, body := range objects {
		at[i] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, body)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, xref)
	return b.Bytes()
}

// stream returns an object that is a stream, with more entries of its dictionary.
func stream(more, content string) string {
	return fmt.Sprintf("<< /Length %d %s >>\nstream\n%s\nendstream", len(content), more, content)
}

// deflated returns a stream that is packed.
func deflated(t testing.TB, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write([]byte(content)); err != nil || w.Close() != nil {
		t.Fatal("cannot pack a stream")
	}
	return stream("/Filter /FlateDecode", b.String())
}

// onePage returns a PDF file of one page with a font, and more objects from number 6 on.
func onePage(content, font string, more ...string) []byte {
	return pdfFile(append([]string{
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> /XObject << /X 6 0 R >> >> >>",
		content, font,
	}, more...)...)
}

// pdfFiles returns PDF files that are damaged, or made to harm.
func pdfFiles(t testing.TB) []hostile {
	const helvetica = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
	words := stream("", "BT /F1 10 Tf 100 700 Td (TOTAL: 12.50) Tj ET")
	whole := onePage(words, helvetica)
	random := rand.New(rand.NewPCG(5, 6))
	var all []hostile
	for i := range 20 {
		flipped := bytes.Clone(whole)
		for range 1 << (i % 6) {
			flipped[9+random.IntN(len(flipped)-9)] ^= 1 << random.IntN(8)
		}
		all = append(all, hostile{fmt.Sprintf("cut%d.pdf", i), whole[:20+(len(whole)-20)*i/20]}, hostile{fmt.Sprintf("flipped%d.pdf", i), flipped})
	}
	lying := onePage(words, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /FirstChar 0 /LastChar 999999999 /Widths [1e38] /ToUnicode 6 0 R >>",
		stream("", "begincmap 1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <00> <ff> <0041> endbfrange endcmap"))
	inner := "<< /Type /Pages /Count 1 /Kids [%d 0 R] >>"
	deep := []string{"<< /Type /Catalog /Pages 2 0 R >>"}
	for i := range 20_000 {
		deep = append(deep, fmt.Sprintf(inner, i+3))
	}
	return append(all,
		hostile{"million-pages.pdf", pdfFile("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1000000 /Kids ["+strings.Repeat("3 0 R ", 1_000_000)+"] >>", "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>")},
		hostile{"lying-count.pdf", pdfFile("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 2147483647 /Kids [3 0 R] >>", "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>")},
		hostile{"lying-font.pdf", lying},
		hostile{"circle.pdf", pdfFile("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 3 /Kids [2 0 R 3 0 R 2 0 R] /Parent 2 0 R >>", "<< /Type /Page /Parent 2 0 R >>")},
		hostile{"forms.pdf", onePage(stream("", "/X Do"), helvetica, stream("/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >>", "/X Do /X Do"))},
		hostile{"deep.pdf", pdfFile(deep...)},
		hostile{"bomb.pdf", onePage(deflated(t, strings.Repeat(" ", 300<<20)), helvetica)},
		hostile{"text-bomb.pdf", onePage(deflated(t, "BT /F1 1 Tf "+strings.Repeat("1 0 Td (xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx) Tj ", 400_000)+"ET"), helvetica)},
		hostile{"states.pdf", onePage(deflated(t, strings.Repeat("q ", 20<<20)), helvetica)},
		hostile{"arrays.pdf", onePage(stream("", strings.Repeat("[", 4<<20)), helvetica)},
		hostile{"large-page.pdf", bytes.ReplaceAll(whole, []byte("[0 0 600 800]"), []byte("[0 0 1e9 9e9]"))},
		hostile{"locked.pdf", bytes.ReplaceAll(whole, []byte("trailer\n<<"), []byte("trailer\n<< /Encrypt << /Filter /Standard /V 5 /R 6 /O (x) /U (x) /P -1 >> /ID [(a)(b)]"))},
		hostile{"script.pdf", bytes.ReplaceAll(whole, []byte("/Catalog"), []byte("/Catalog /OpenAction << /S /JavaScript /JS (while(true);) >> /AA << /O << /S /Launch /F (/bin/sh) >> >>"))},
		hostile{"remote.pdf", bytes.ReplaceAll(whole, []byte("/Contents 4 0 R"), []byte("/Contents << /F (http://127.0.0.1:1/x) /FFilter /FlateDecode >>"))},
	)
}

// TestHostileFilesInAJob gives all hostile files to one job, with a sound document beside
// each tenth. Every file ends in the ledger or as text, and each sound one has its value.
// CODITECT_PROGRAM is the program; `make documents` sets it.
func TestHostileFilesInAJob(t *testing.T) {
	program := os.Getenv("CODITECT_PROGRAM")
	if program == "" {
		t.Skip("CODITECT_PROGRAM is not set: `make documents` sets it")
	}
	dir := t.TempDir()
	docs, out := filepath.Join(dir, "docs"), filepath.Join(dir, "out")
	if err := os.Mkdir(docs, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(docs, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	sound := 0
	for _, kind := range []func(testing.TB) []hostile{damagedFiles, lyingFiles, nestedFiles, expandingFiles, pdfFiles} {
		for _, f := range kind(t) {
			if f.name == "separators.mbox" {
				continue // each of its 100,000 messages is a document that is read
			}
			if len(names)%10 == 0 {
				write(fmt.Sprintf("%03d-sound.html", len(names)), []byte(fmt.Sprintf("<p>BALANCE: %d", sound)))
				sound++
			}
			name := fmt.Sprintf("%03d-%s", len(names), f.name)
			write(name, f.data)
			names = append(names, name)
		}
	}
	schema := filepath.Join(dir, "schema.yaml")
	if err := os.WriteFile(schema, []byte("type: object\nproperties:\n  balance: {type: number, x-coditect: {labels: [BALANCE]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	run := exec.CommandContext(t.Context(), program, "mapreduce", "run", docs, "--schema", schema, "--archives", "--no-report",
		"--data-dir", filepath.Join(dir, "data"), "--output", out, "--parallelism", "2", "--print", "json")
	said, err := run.CombinedOutput()
	if code := new(exec.ExitError); err != nil && (!errors.As(err, &code) || code.ExitCode() != 3) {
		t.Fatalf("%v\n%.2000s", err, said)
	}
	ended := endsOf(t, out)
	for _, name := range names {
		if reason, ok := ended[name]; !ok {
			t.Errorf("%s is in no part of the result", name)
		} else if strings.Contains(reason, "deadline") || strings.Contains(reason, "killed") {
			t.Errorf("%s ended by %q", name, reason)
		}
	}
	checkSound(t, filepath.Join(out, "result.json"), sound)
	usage, _ := run.ProcessState.SysUsage().(*syscall.Rusage)
	t.Logf("%d hostile files and %d sound ones in %v; %v of the processor, %d MiB for the process", len(names), sound,
		time.Since(began).Round(time.Second), (run.ProcessState.UserTime() + run.ProcessState.SystemTime()).Round(time.Second), usage.Maxrss>>10)
}

// endsOf returns how the files of a job ended, by their names: as text with "", or by the
// reason. A file is also known by what was found in it. A unit that read one for longer
// than hostileTime is an error.
func endsOf(t *testing.T, out string) map[string]string {
	t.Helper()
	ends := make(map[string]string)
	end := func(id, reason string) {
		name, _, _ := strings.Cut(id, "!/")
		name, _, _ = strings.Cut(name, "#")
		ends[name] = reason
	}
	lines, err := os.ReadFile(filepath.Join(out, "units.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	slowest, which := 0.0, ""
	for line := range bytes.Lines(lines) {
		var u struct {
			Document string  `json:"document_id"`
			Kind     string  `json:"kind"`
			Errors   []any   `json:"errors"`
			Elapsed  float64 `json:"elapsed_ms"`
		}
		if err := json.Unmarshal(line, &u); err != nil {
			t.Fatal(err)
		}
		if u.Document == "" {
			continue
		}
		end(u.Document, fmt.Sprint(u.Errors...))
		if u.Kind == "parse" && u.Elapsed > slowest {
			slowest, which = u.Elapsed, u.Document
		}
	}
	t.Logf("the slowest to read was %s: %.0f ms", which, slowest)
	if slowest > float64(hostileTime.Milliseconds())*1.1 { // a limit is looked at now and then
		t.Errorf("%s took %.0f ms", which, slowest)
	}
	for _, s := range resultOf(t, filepath.Join(out, "result.json")).Skipped {
		if s.Reason == "" {
			t.Errorf("%s has no reason", s.Document)
		}
		end(s.Document, s.Reason)
	}
	return ends
}

// A result is what is looked at of result.json.
type result struct {
	Records []struct {
		Balance *float64 `json:"balance"`
	} `json:"aggregated_data"`
	Skipped []struct {
		Document string `json:"document_id"`
		Reason   string `json:"reason"`
	} `json:"skipped_documents"`
}

func resultOf(t *testing.T, path string) result {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r result
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// checkSound checks that the values of all sound documents are in the result, once.
func checkSound(t *testing.T, path string, sound int) {
	t.Helper()
	seen := make(map[float64]int)
	for _, r := range resultOf(t, path).Records {
		if r.Balance != nil {
			seen[*r.Balance]++
		}
	}
	for n := range sound {
		if seen[float64(n)] != 1 {
			t.Errorf("the value %d of a sound document is there %d times", n, seen[float64(n)])
		}
	}
}
