package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// smallJob returns a folder with a schema, and the arguments that run a job with it.
func smallJob(t *testing.T) (folder string, args []string) {
	t.Helper()
	folder = t.TempDir()
	schema := writeFile(t, filepath.Join(folder, "schema.yaml"), "type: object\nproperties:\n  a: {type: string, x-coditect: {labels: [A]}}\n")
	return folder, []string{"mapreduce", "run", "--schema", schema, "--output", filepath.Join(folder, "out")}
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A line with too much metadata is skipped, and the result says which and why.
func TestLinesWithTooMuchMetadata(t *testing.T) {
	folder, run := smallJob(t)
	lines := writeFile(t, filepath.Join(folder, "lines.jsonl"), fmt.Sprintf(
		`{"id": "fits", "text": "A: 1", "k": %q}`+"\n"+`{"id": "large", "text": "A: 2", "k": %q}`+"\n",
		strings.Repeat("x", 4095), strings.Repeat("x", 4096)))
	code, out := coditect(t, filepath.Join(folder, "data"), append(run, "--input", lines)...)
	if code != 0 || !strings.Contains(out, "1 of 2 documents mapped") {
		t.Fatalf("code %d: %s", code, out)
	}
	result, err := os.ReadFile(filepath.Join(folder, "out", "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "line 2: it has 4097 bytes of metadata, more than the 4096 that are accepted"; !strings.Contains(string(result), want) {
		t.Errorf("the result lacks %q:\n%s", want, result)
	}
}
