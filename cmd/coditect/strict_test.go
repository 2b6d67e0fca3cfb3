package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const bills = `type: object
required: [total]
properties:
  total: {type: number, minimum: 0, x-coditect: {labels: [TOTAL]}}
  note: {type: string, x-coditect: {labels: [NOTE]}}
`

// TestStrictSchema runs three documents, of which one has no total and one a wrong one.
// The warnings stand in the summary; in a strict job both units fail with the reason.
func TestStrictSchema(t *testing.T) {
	folder, data := t.TempDir(), t.TempDir()
	schema := writeFile(t, filepath.Join(folder, "s.yaml"), bills)
	var docs []string
	for name, text := range map[string]string{"good": "TOTAL: 5", "lacks": "NOTE: none", "wrong": "TOTAL: -5"} {
		docs = append(docs, writeFile(t, filepath.Join(folder, name+".txt"), text+"\n"))
	}
	args := append([]string{"mapreduce", "run", "--schema", schema, "--output", filepath.Join(folder, "out")}, docs...)
	code, out := coditect(t, data, args...)
	for _, want := range []string{
		"warning: total is required; records without it: 2\n",
		"warning: total breaks minimum; records with such a value, under _unverified: 1\n",
	} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, want 0 and %q:\n%s", code, want, out)
		}
	}
	if code, out := coditect(t, data, "mapreduce", "result", "last", "--output", filepath.Join(folder, "again")); code != 0 || !strings.Contains(out, "warning: total breaks minimum") {
		t.Errorf("result: exit code %d, without the warning:\n%s", code, out)
	}

	code, out = coditect(t, data, append(args, "--strict-schema")...)
	if code != 3 || !strings.Contains(out, "2 failed") || strings.Contains(out, "warning: total") {
		t.Errorf("strict: exit code %d, want 3 and two failed units:\n%s", code, out)
	}
	result, err := os.ReadFile(filepath.Join(folder, "out", "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"total is required and has no value", "total: -5 breaks minimum"} {
		if n := strings.Count(string(result), want); n != 1 {
			t.Errorf("the result says %q %d times, want once:\n%s", want, n, result)
		}
	}
}

// TestStrictSchemaOfGuesses: a guess that is no value is told apart in the summary, and breaks no schema.
func TestStrictSchemaOfGuesses(t *testing.T) {
	folder := t.TempDir()
	schema := writeFile(t, filepath.Join(folder, "s.yaml"), "type: object\nproperties:\n  company: {type: string}\n  date: {type: string, format: date}\n")
	doc := writeFile(t, filepath.Join(folder, "a.txt"), "SELANGOR.\nCOMPANY REG NO. :SA03711551-P\nDATE: 2018-12-25\n")

	code, out := coditect(t, t.TempDir(), "mapreduce", "run", "--strict-schema", "--schema", schema, "--output", filepath.Join(folder, "out"), doc)
	if want := "warning: company: records with a guess that is most likely wrong, under _unverified: 1; give the field labels, or ask a model\n"; code != 0 || !strings.Contains(out, want) {
		t.Errorf("exit code %d, want 0 and %q:\n%s", code, want, out)
	}

	report, err := os.ReadFile(filepath.Join(folder, "out", "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"(a guess)", "| date | 2018-12-25 |"} {
		if !strings.Contains(string(report), want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
}

// TestStrictSchemaOfMergedRecords: what no unit breaks by itself, the exit code tells.
func TestStrictSchemaOfMergedRecords(t *testing.T) {
	folder, data := t.TempDir(), t.TempDir()
	schema := writeFile(t, filepath.Join(folder, "s.yaml"), bills+"x-coditect: {key: []}\n")
	a := writeFile(t, filepath.Join(folder, "a.txt"), "TOTAL: 5\n")
	b := writeFile(t, filepath.Join(folder, "b.txt"), "NOTE: none\n")
	run := func(docs ...string) (int, string) {
		args := []string{"mapreduce", "run", "--strict-schema", "--schema", schema, "--output", filepath.Join(folder, fmt.Sprint("out", len(docs)))}
		return coditect(t, data, append(args, docs...)...)
	}
	if code, out := run(a, b); code != 0 {
		t.Errorf("the two make one whole record: exit code %d\n%s", code, out)
	}
	if code, out := run(b); code != 3 || !strings.Contains(out, "warning: total is required") || strings.Contains(out, "failed") {
		t.Errorf("one lacks the total: exit code %d, want 3 and a warning\n%s", code, out)
	}
}
