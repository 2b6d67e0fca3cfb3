package runners_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/input"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/internal/document"
)

// packed returns a zip file of entries: names and contents.
func packed(t *testing.T, entries ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		e, err := w.Create(entries[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Write([]byte(entries[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestLimitsOfDocuments: each limit refuses a document for a reason that names the flag, and
// a higher limit reads it. Of the limits of the process and of the job the lower one counts.
func TestLimitsOfDocuments(t *testing.T) {
	word := func(body string) []byte {
		return packed(t, "[Content_Types].xml", "<Types/>", "word/document.xml",
			`<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>Total</w:t></w:r></w:p>`+body+`</w:body></w:document>`)
	}
	row := `<row><c t="inlineStr"><is><t>Total</t></is></c><c><v>12.5</v></c></row>`
	sheet := packed(t, "xl/workbook.xml", `<workbook xmlns:r="r"><sheets><sheet name="S" r:id="rId1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels", `<R><R Id="rId1" Target="worksheets/sheet1.xml"/></R>`,
		"xl/worksheets/sheet1.xml", `<worksheet><sheetData>`+strings.Repeat(row, 20)+`</sheetData></worksheet>`)
	deep := word(strings.Repeat("<w:sdt>", 40) + strings.Repeat("</w:sdt>", 40))
	long := word(strings.Repeat("<w:p><w:r><w:t>"+strings.Repeat("Total ", 400)+"</w:t></w:r></w:p>", 1000))
	for _, tt := range []struct {
		flag, low, high string
		data            []byte
	}{
		{"document-entries", "1", "2", word("")},
		{"document-nesting", "20", "60", deep},
		{"document-cells", "30", "100", sheet},
		{"document-ratio", "10", "2000", long},
		{"document-unpacked", "1", "8", long},
		{"document-bytes", "1", "8", long},
		{"document-time", "1ns", "1m", sheet},
	} {
		t.Run(tt.flag, func(t *testing.T) {
			parse := func(value string, job document.Limits) error {
				_, err := formatsWith(t, "--document-ratio", "100000", "--"+tt.flag, value).
					Parse(t.Context(), document.Input{Name: "a", Content: bytes.NewReader(tt.data), Limits: job})
				return err
			}
			low, lower := parse(tt.low, document.Limits{}), parse(tt.high, readingWith(t, "--"+tt.flag, tt.low))
			high, higher := parse(tt.high, document.Limits{}), parse(tt.low, readingWith(t, "--"+tt.flag, tt.high))
			for name, err := range map[string]error{"of the process": low, "of the job, below that of the process": lower, "of the process, below that of the job": higher} {
				if refused, ok := errors.AsType[*document.RefusedError](err); !ok || !strings.Contains(refused.Reason, "(--"+tt.flag+")") {
					t.Errorf("with the limit %s: %v", name, err)
				}
			}
			if high != nil {
				t.Errorf("with %s: %v", tt.high, high)
			}
		})
	}
}

// parseFlags returns flags that were parsed of args.
func parseFlags(t *testing.T, add func(*pflag.FlagSet), args ...string) *pflag.FlagSet {
	t.Helper()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return flags
}

// formatsWith returns the formats as flags set them.
func formatsWith(t *testing.T, args ...string) *document.Registry {
	t.Helper()
	var r runners.Runners
	parseFlags(t, r.Documents.AddFlags, args...)
	formats, err := r.DocumentFormats()
	if err != nil {
		t.Fatal(err)
	}
	return formats
}

// readingWith returns the limits that a job carries as flags set them.
func readingWith(t *testing.T, args ...string) document.Limits {
	t.Helper()
	var r runners.Runners
	flags := parseFlags(t, r.Documents.AddFlags, args...)
	return document.Limits(r.Documents.Reading(flags).Limits)
}

// TestReading: a job carries what the user has said, and nothing else.
func TestReading(t *testing.T) {
	var r runners.Runners
	flags := parseFlags(t, r.Documents.AddFlags, "--html", "full", "--document-pages", "7", "--document-bytes", "2", "--ocr", "x", "--convert", "auto")
	want := mapreduce.Reading{PageText: mapreduce.PageTextFull, Limits: mapreduce.DocumentLimits{Pages: 7, Bytes: 2 << 20}}
	if got := r.Documents.Reading(flags); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if err := r.Documents.CheckElsewhere(flags, "the server x", false); err == nil || !strings.Contains(err.Error(), "--ocr: is not sent to the server x") {
		t.Errorf("a program for pictures, elsewhere: %v", err)
	}
}

// TestServiceBoundsReading: a job with a limit above that of the service is refused, and the
// refusal names the field and the flag.
func TestServiceBoundsReading(t *testing.T) {
	var r runners.Runners
	r.Getenv = func(string) string { return "" }
	parseFlags(t, r.Documents.AddFlags, "--document-pages", "7")
	check, err := r.SpecCheck()
	if err != nil {
		t.Fatal(err)
	}
	for limits, want := range map[mapreduce.DocumentLimits]string{
		{}: "", {Pages: 7, Time: time.Second}: "",
		{Pages: 8}:          "reading.max_pages: 8 is more than the 7 that the service allows (its --document-pages)",
		{Time: time.Hour}:   "reading.max_time: 1h0m0s is more than the 30s that the service allows (its --document-time)",
		{Unpacked: 1 << 40}: "reading.max_unpacked_bytes: 1099511627776 is more than the 268435456 that the service allows (its --document-unpacked)",
	} {
		got := ""
		if err := check(&mapreduce.JobSpec{Provider: runners.RulesProvider, Pipeline: "extract", Reading: mapreduce.Reading{Limits: limits}}); err != nil {
			got = err.Error()
		}
		if !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%+v: %q, want %q", limits, got, want)
		}
	}
}

// letter returns a message with attachments: the headers of each and its content.
func letter(boundary string, attached ...string) string {
	var b strings.Builder
	b.WriteString("From: ann@example.org\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=" + boundary + "\n\n")
	for _, a := range attached {
		b.WriteString("--" + boundary + "\n" + a + "\n")
	}
	return b.String() + "--" + boundary + "--\n"
}

// tarred returns a tar file of files that have the same content, packed by gzip.
func tarred(t *testing.T, content string, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range names {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestLimitsOfFilesOfSeveral: each limit of archives and mail refuses what is beyond it for
// a reason that names the flag, and a higher limit reads it.
func TestLimitsOfFilesOfSeveral(t *testing.T) {
	long := strings.Repeat("Total ", 600_000)
	text := "Content-Type: text/plain; name=a.txt\nContent-Disposition: attachment\n\nTotal\n"
	message := func(boundary, of string) string {
		return letter(boundary, "Content-Type: message/rfc822\n\n"+of)
	}
	// Some programs attach messages as files.
	asFile := letter("f", "Content-Type: application/octet-stream; name=m.eml\nContent-Disposition: attachment\n\n"+message("g", message("h", letter("i", text))))
	mailbox := strings.Repeat("From ann@example.org Mon Mar  4 05:06:07 2024\nSubject: x\n\nTotal\n\n", 3)
	for _, tt := range []struct {
		name, flag, low, high string
		data                  []byte
	}{
		{"a.zip", "archive-entries", "1", "2", packed(t, "a", "Total", "b", "Total")},
		{"a.tgz", "archive-entries", "1", "2", tarred(t, "Total", "a", "b")},
		{"a.zip", "archive-unpacked", "1", "8", packed(t, "a", long)},
		{"a.tgz", "archive-unpacked", "1", "8", tarred(t, long, "a")},
		{"a.zip", "archive-ratio", "10", "10000", packed(t, "a", long)},
		{"a.tgz", "archive-ratio", "10", "10000", tarred(t, long, "a")},
		{"a.eml", "mail-attachments", "1", "2", []byte(letter("a", text, text))},
		{"a.eml", "mail-nesting", "1", "2", []byte(message("a", message("b", letter("c", text))))},
		{"a.eml", "mail-nesting", "0", "1", []byte(message("a", letter("b", text)))},
		{"a.eml", "mail-nesting", "2", "3", []byte(asFile)},
		{"a.mbox", "file-documents", "2", "3", []byte(mailbox)},
		{"a.zip", "file-documents", "3", "4", packed(t, "a.mbox", mailbox)},
	} {
		t.Run(tt.flag+" of "+tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), tt.name)
			if err := os.WriteFile(path, tt.data, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, value := range []string{tt.low, tt.high} {
				var r runners.Runners
				parseFlags(t, r.Members.AddFlags, "--archive-ratio", "100000", "--"+tt.flag, value)
				limits, err := r.Members.Limits()
				if err != nil {
					t.Fatal(err)
				}
				var reasons []string
				for d, err := range input.Documents(t.Context(), input.Config{Formats: formatsWith(t), Inputs: []string{path}, Archives: true, Members: limits}) {
					if err != nil {
						t.Fatal(err)
					}
					if d.Skip != "" {
						reasons = append(reasons, d.Skip)
					}
				}
				switch {
				case value == tt.high && len(reasons) > 0:
					t.Errorf("with %s: %q", value, reasons)
				case value == tt.low && (len(reasons) != 1 || !strings.Contains(reasons[0], "(--"+tt.flag+")")):
					t.Errorf("with %s: %q, want one reason that names the flag", value, reasons)
				}
			}
		})
	}
}
