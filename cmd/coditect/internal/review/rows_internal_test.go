package review

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coditect/mapreduce/api/schema"
)

const rowSchema = `{"type": "object", "properties": {"total": {"type": "number"}, "=shop": {"type": "string"}}}`

func parsed(t *testing.T) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("schema", []byte(rowSchema))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func readAll(t *testing.T, text string, table bool) ([]Row, error) {
	t.Helper()
	var all []Row
	err := readRows(strings.NewReader(text), table, parsed(t), func(r *Row) error {
		all = append(all, *r)
		return nil
	})
	return all, err
}

// What is written is what is read, whatever stands in it, and no cell is a formula.
func TestRowsComeBack(t *testing.T) {
	sure := 0.25
	rows := []Row{
		{Record: "0.0", Field: "total", Document: "a.txt", Model: json.RawMessage(`9007199254740993.10`), Why: "doubtful", Confidence: &sure, Verdict: "correct", Value: json.RawMessage(`7.20`), Note: "-1 off", By: "ann"},
		{Record: "1.0", Field: "=shop", Document: "=cmd|x", Model: json.RawMessage(`"=SUM(A1)\n\"x\", y"`), Verdict: "correct", Value: json.RawMessage(`"007"`), Note: "=1+1", By: "@bob"},
		{Record: "2.0", Field: "=shop", Model: json.RawMessage(`null`), Verdict: "absent"},
	}
	for _, table := range []bool{true, false} {
		var out bytes.Buffer
		if err := writeRows(&out, table, append(rows, Row{Record: "3.0", Field: "total"})); err != nil {
			t.Fatal(err)
		}
		got, err := readAll(t, out.String(), table)
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		ignored := cmpopts.IgnoreUnexported(Row{})
		if table { // of a table only what is decided is read
			if strings.Contains(out.String(), "\n=") || strings.Contains(out.String(), ",=") {
				t.Errorf("a cell is a formula:\n%s", out.String())
			}
			ignored = cmpopts.IgnoreFields(Row{}, "Document", "Why", "Confidence", "By", "line")
		}
		if diff := cmp.Diff(rows, got, ignored); diff != "" {
			t.Errorf("table %v (-want +got):\n%s", table, diff)
		}
	}
}

// A value is JSON where that is a value of its field, and else a text as it was typed.
func TestTypedValues(t *testing.T) {
	got, err := readAll(t, "\ufeffrecord,field,verdict,value\n0.0,total,correct,12.50\n0.0,total,correct,\"12,50 EUR\"\n0.0,'=shop,correct,007\n0.0,'=shop,correct,\"\"\"x\"\"\"\n0.0,total,,5\n", true)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, r := range got {
		values = append(values, r.Field+" "+string(r.Value))
	}
	if diff := cmp.Diff([]string{"total 12.50", `total "12,50 EUR"`, `=shop "007"`, `=shop "x"`}, values); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is wrong in a file is said with its line.
func TestRowsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"csv:": "line 1: has no names of columns", "csv:record,field\n": "the column verdict is missing", "csv:record,field,verdict,x\n": `"x" is none of the columns`,
		"csv:record,field,verdict\n0.0,total\n": "record on line 2: wrong number of fields", "csv:record,field,verdict,model\n0.0,total,accept,12;5\n": "line 2: model",
		`jsonl:{"record": "0.0"` + "\n": "line 1: is no row", `jsonl:{"record": "0.0", "verdicts": "accept"}`: "unknown field", "jsonl:\n{} {}": "line 2: has more than one",
		"jsonl:" + strings.Repeat("x", maxLine+1): "line 1: ",
	} {
		kind, rest, _ := strings.Cut(text, ":")
		if _, err := readAll(t, rest, kind == "csv"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}
