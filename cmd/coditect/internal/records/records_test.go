package records_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/records"
)

const invoiceSchema = `
type: object
properties:
  zip: {type: string}
  seller: {type: object, properties: {name: {type: string}, vat: {type: integer}}}
  total: {type: number}
  paid: {type: boolean}
  date: {type: string, format: date}
  tags: {type: array, items: {type: string}}
  amounts: {type: array, items: {type: number}}
  lines: {type: array, items: {type: object, properties: {item: {type: string}}}}
`

func parseSchema(t *testing.T) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte(invoiceSchema))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// parts are a result of three records, with the citations of each behind it.
func parts() []*mapreduce.ResultPart {
	record := func(s string) *mapreduce.ResultPart { return &mapreduce.ResultPart{Record: json.RawMessage(s)} }
	cite := func(ref, quote string) *mapreduce.ResultPart {
		return &mapreduce.ResultPart{Citation: &mapreduce.Citation{
			Ref: ref, Document: "a.txt", Start: 4, End: 8, ByteStart: 5, ByteEnd: 9, Quote: quote, Grade: "exact", Unit: "a.txt",
		}}
	}
	return []*mapreduce.ResultPart{
		{Job: &mapreduce.Job{}},
		record(`{"zip":"00123","seller":{"name":"A <& \"Co\"","vat":12},"total":1.50,"paid":true,"date":"2001-04-18","tags":["x","y"],` +
			`"amounts":[1,2.5],"lines":[{"item":"pen"}],"_sources":["a.txt"],"_citations":{"total":["REF_1"],"tags[0]":["REF_2"]},"_confidence":{"total":0.9}}`),
		cite("REF_1", "1.50"), cite("REF_2", "x"),
		record(`{"zip":"=HYPERLINK(\"http://e\")","seller":{"name":null,"vat":null},"total":null,"paid":null,"date":null,"tags":[],"amounts":null,"lines":null,"_sources":["b.txt","c.txt"]}`),
		record(`{"zip":"+49 (170) 12","seller":{"name":"-2+3","vat":9007199254740993},"total":-7,"paid":false,"date":"1969-12-31","tags":["one"],"amounts":[],"lines":[],"_sources":["d.txt"]}`),
		{Summary: &mapreduce.Summary{}},
	}
}

func write(t *testing.T, format string, c records.Config) string {
	t.Helper()
	return writeParts(t, format, c, parts())
}

func writeParts(t *testing.T, format string, c records.Config, parts []*mapreduce.ResultPart) string {
	t.Helper()
	var out bytes.Buffer
	w, err := records.NewWriter(format, &out, c)
	if err != nil {
		t.Fatal(err)
	}
	all := records.NewCollector(w)
	for _, p := range parts {
		if err := all.AddPart(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := all.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestCSV(t *testing.T) {
	const want = `_sources,zip,seller.name,seller.vat,total,paid,date,tags,amounts,lines
a.txt,00123,"A <& ""Co""",12,1.50,true,2001-04-18,x; y,1; 2.5,"[{""item"":""pen""}]"
b.txt; c.txt,"'=HYPERLINK(""http://e"")",,,,,,,,
d.txt,+49 (170) 12,'-2+3,9007199254740993,-7,false,1969-12-31,one,,
`
	if diff := cmp.Diff(want, write(t, records.CSV, records.Config{Schema: parseSchema(t)})); diff != "" {
		t.Error(diff)
	}
}

func TestCSVWithCitations(t *testing.T) {
	lines := strings.Split(write(t, records.CSV, records.Config{Schema: parseSchema(t), Citations: true}), "\n")
	for _, want := range []string{"total,total._quote,total._document,total._start,total._end,total._grade,total._confidence,paid"} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("header %s lacks %s", lines[0], want)
		}
	}
	if !strings.Contains(lines[1], ",1.50,1.50,a.txt,4,8,exact,0.9,true,") || !strings.Contains(lines[1], ",x; y,x,a.txt,4,8,exact,0,") {
		t.Errorf("got %s", lines[1])
	}
}

func TestJSON(t *testing.T) {
	s := parseSchema(t)
	var list []map[string]any
	if err := json.Unmarshal([]byte(write(t, records.JSON, records.Config{Schema: s})), &list); err != nil || len(list) != 3 {
		t.Errorf("%d records, error %v", len(list), err)
	}
	lines := strings.Split(strings.TrimSpace(write(t, records.JSONL, records.Config{Schema: s})), "\n")
	if len(lines) != 3 || lines[0] != string(parts()[1].Record) {
		t.Errorf("got %q", lines)
	}
	cited, _, _ := strings.Cut(write(t, records.JSONL, records.Config{Schema: s, Citations: true}), "\n")
	if !strings.HasPrefix(cited, `{"zip":"00123","seller":{"name":"A <& \"Co\""`) ||
		!strings.Contains(cited, `"total":[{"ref":"REF_1","document_id":"a.txt","start":4,"end":8,"byte_start":5,"byte_end":9,"quote":"1.50","grade":"exact","unit_id":"a.txt"}]`) {
		t.Errorf("got %s", cited)
	}
	var none bytes.Buffer
	w, err := records.NewWriter(records.JSON, &none, records.Config{})
	if err != nil || w.Close() != nil || none.String() != "[]\n" {
		t.Errorf("without records: %q, error %v", none.String(), err)
	}
}

func TestParquet(t *testing.T) {
	data := write(t, records.Parquet, records.Config{Schema: parseSchema(t), Citations: true})
	file, err := parquet.OpenFile(strings.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range file.Schema().Fields() {
		if !strings.Contains(f.Name(), "._") {
			names = append(names, f.Name())
		}
	}
	want := []string{"_sources", "zip", "seller.name", "seller.vat", "total", "paid", "date", "tags", "amounts", "lines"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("columns: %s", diff)
	}
	got := rowsOf(t, file)
	for i, row := range []map[string]string{
		{"_sources": "a.txt", "zip": "00123", "seller.name": `A <& "Co"`, "seller.vat": "12", "total": "1.5", "paid": "true", "date": "11430", "tags": "x y", "amounts": "1 2.5", "lines": `[{"item":"pen"}]`, "total._quote": "1.50", "total._start": "4", "total._confidence": "0.9"},
		{"_sources": "b.txt c.txt", "zip": `=HYPERLINK("http://e")`},
		{"_sources": "d.txt", "zip": "+49 (170) 12", "seller.name": "-2+3", "seller.vat": "9007199254740993", "total": "-7", "paid": "false", "date": "-1", "tags": "one", "lines": "[]"},
	} {
		for name, value := range row {
			if got[i][name] != value {
				t.Errorf("row %d, %s: got %q, want %q", i, name, got[i][name], value)
			}
		}
		if extra := got[i]["total"]; row["total"] == "" && extra != "" {
			t.Errorf("row %d has a total: %q", i, extra)
		}
	}
}

// What models saw in pictures and nobody found is the last column of a table, the same in each form: as JSON, and nothing
// of a record without it.
func TestSeenColumn(t *testing.T) {
	c := records.Config{Schema: parseSchema(t), Seen: true}
	parts := []*mapreduce.ResultPart{
		{Record: json.RawMessage(`{"zip":"1","total":null,"paid":null,"_unverified":{"total":{"value":12.5,"constraint":"seen"},"zip":{"value":"<2>","constraint":"seen"}},` +
			`"_seen":{"total":[{"page":1}],"zip":[{"page":2}]}}`)},
		{Record: json.RawMessage(`{"zip":"3","_unverified":{"total":{"value":7,"constraint":"minimum"}}}`)},
	}
	const want = `{"total":12.5,"zip":"<2>"}`

	rows, err := csv.NewReader(strings.NewReader(writeParts(t, records.CSV, c, parts))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	last := len(rows[0]) - 1
	if rows[0][last] != "_seen" || rows[1][last] != want || rows[2][last] != "" {
		t.Errorf("CSV: %q", rows)
	}

	data := writeParts(t, records.Parquet, c, parts)
	file, err := parquet.OpenFile(strings.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	fields := file.Schema().Fields()
	got := rowsOf(t, file)
	if name := fields[len(fields)-1].Name(); name != "_seen" || got[0]["_seen"] != want || got[1]["_seen"] != "" || got[1]["zip"] != "3" {
		t.Errorf("Parquet: the last column is %s, and the rows are %q", name, got)
	}
	if got[0]["total"] != "" {
		t.Errorf("Parquet: what was seen is a value: %q", got[0])
	}
}

// rowsOf returns the values of all rows by the names of columns, those of lists with
// spaces between.
func rowsOf(t *testing.T, file *parquet.File) []map[string]string {
	t.Helper()
	var all []map[string]string
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		buf := make([]parquet.Row, 10)
		n, err := rows.ReadRows(buf)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		for _, row := range buf[:n] {
			values := make(map[string]string)
			row.Range(func(i int, column []parquet.Value) bool {
				var texts []string
				for _, v := range column {
					if !v.IsNull() {
						texts = append(texts, v.String())
					}
				}
				values[file.Schema().Columns()[i][0]] = strings.Join(texts, " ")
				return true
			})
			all = append(all, values)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestParquetRefuses does not lose a value that its column cannot hold.
func TestParquetRefuses(t *testing.T) {
	for _, tt := range []struct{ record, want string }{
		{`{"total":"much"}`, "record 1: total: much is not of the type number"},
		{`{"seller":{"vat":1e30}}`, "seller.vat: 1e30 is not an integer of 64 bits"},
		{`{"date":"2001-02-30"}`, "date: "},
		{`{"tags":"x"}`, "tags: x is not a list"},
	} {
		w, err := records.NewWriter(records.Parquet, io.Discard, records.Config{Schema: parseSchema(t)})
		if err != nil {
			t.Fatal(err)
		}
		err = w.WriteRecord(&records.Record{JSON: json.RawMessage(tt.record)})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.record, err, tt.want)
		}
	}
}

// TestWithoutSchema writes records of any shape as one column.
func TestWithoutSchema(t *testing.T) {
	for _, format := range records.Formats() {
		var out bytes.Buffer
		w, err := records.NewWriter(format, &out, records.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []string{`"a report"`, `{"rows":[1]}`} {
			if err := w.WriteRecord(&records.Record{JSON: json.RawMessage(r)}); err != nil {
				t.Errorf("%s: %v", format, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if format == records.CSV && out.String() != "_sources,value\n,a report\n,\"{\"\"rows\"\":[1]}\"\n" {
			t.Errorf("csv: %q", out.String())
		}
	}
	if _, err := records.NewWriter("xls", io.Discard, records.Config{}); err == nil {
		t.Error("an unknown format has no error")
	}
}

// TestCellsAreNoFormulas has texts that spreadsheets take for formulas, with what does not show
// before them, and texts that stay as they are.
func TestCellsAreNoFormulas(t *testing.T) {
	guarded := []string{
		"=1+1", "@SUM(A1)", "+cmd", "-cmd", "\t=1", "＝1+1", "＠SUM(A1)", "﹦1", "＋cmd|' /C calc'!A0", "－cmd", "−cmd",
		"\u200b=1+1", "\ufeff=1+1", "\u202e=1+1", "\u2066\u200d@x", "\u00a0=1", "\u200b-5", "\u0000=1", "\u3000＝1",
	}
	plain := []string{"a=b", "+49 (170) 12", "-5", "－5", "−5", "5", "\u200b", "", "\u202eabc", "'=1"}
	for i, text := range append(guarded, plain...) {
		record, err := json.Marshal(map[string]any{"zip": text, "_sources": []string{"a"}})
		if err != nil {
			t.Fatal(err)
		}
		want := text
		if i < len(guarded) {
			want = "'" + text
		}
		var out bytes.Buffer
		w, err := records.NewWriter(records.CSV, &out, records.Config{Schema: parseSchema(t)})
		if err != nil {
			t.Fatal(err)
		}
		all := records.NewCollector(w)
		if err := errors.Join(all.AddPart(&mapreduce.ResultPart{Record: record}), all.Close()); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil || len(rows) != 2 || rows[1][1] != want {
			t.Errorf("%q: %q, %v; want %q", text, rows, err, want)
		}
	}
}

// A list of objects is cited by the first member of its first element, whichever run asks.
func TestCitationOfAListIsTheSameInEachRun(t *testing.T) {
	columns := `,"_citations":{"lines[0].a":["REF_1"],"lines[0].b":["REF_2"],"lines[0].c":["REF_3"],"lines[0].d":["REF_4"]}}`
	for range 20 {
		var out bytes.Buffer
		w, err := records.NewWriter(records.CSV, &out, records.Config{Schema: parseSchema(t), Citations: true})
		if err != nil {
			t.Fatal(err)
		}

		all := records.NewCollector(w)
		list := []*mapreduce.ResultPart{{Job: &mapreduce.Job{}}, {Record: json.RawMessage(`{"lines":[{"item":"pen"}],"_sources":["a.txt"]` + columns)}}
		for i, quote := range []string{"first", "second", "third", "fourth"} {
			list = append(list, &mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: fmt.Sprintf("REF_%d", i+1), Document: "a.txt", Quote: quote, Grade: "exact", Unit: "a.txt"}})
		}
		for _, p := range append(list, &mapreduce.ResultPart{Summary: &mapreduce.Summary{}}) {
			if err := all.AddPart(p); err != nil {
				t.Fatal(err)
			}
		}
		if err := all.Close(); err != nil {
			t.Fatal(err)
		}

		if !strings.Contains(out.String(), ",first,") {
			t.Fatalf("another member was cited: %s", out.String())
		}
	}
}
