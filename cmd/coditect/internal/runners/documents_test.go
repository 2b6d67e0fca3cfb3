package runners_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/worker/document"
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
// a higher limit reads it.
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
			for _, value := range []string{tt.low, tt.high} {
				var r runners.Runners
				flags := pflag.NewFlagSet("", pflag.ContinueOnError)
				r.Documents.AddFlags(flags)
				args := []string{"--" + tt.flag, value}
				if tt.flag != "document-ratio" {
					args = append(args, "--document-ratio", "100000")
				}
				if err := flags.Parse(args); err != nil {
					t.Fatal(err)
				}
				formats, err := r.DocumentFormats()
				if err != nil {
					t.Fatal(err)
				}
				_, err = formats.Parse(t.Context(), document.Input{Name: "a", Content: bytes.NewReader(tt.data)})
				refused, ok := errors.AsType[*document.RefusedError](err)
				if ok != (value == tt.low) || ok && !strings.Contains(refused.Reason, "(--"+tt.flag+")") {
					t.Errorf("with %s: %v", value, err)
				}
			}
		})
	}
}
