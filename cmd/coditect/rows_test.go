package main_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	main "github.com/coditect/mapreduce/cmd/coditect"
)

// rowsSchema takes a record of five fields from each row of a table.
const rowsSchema = `type: array
items:
  type: object
  properties:
    id: {type: integer}
    name: {type: string}
    city: {type: string}
    amount: {type: number}
    date: {type: string, format: date}
`

// writeRows writes a CSV file of n rows and their schema into dir.
func writeRows(tb testing.TB, dir string, n int) (rows, schema string) {
	tb.Helper()
	var text strings.Builder
	text.WriteString("id,name,city,amount,date\n")
	for i := range n {
		fmt.Fprintf(&text, "%d,Name %d Alpha,Berlin,%d.%02d,2024-%02d-%02d\n", i, i, 10*i, i%100, 1+i%12, 1+i%28)
	}
	rows, schema = filepath.Join(dir, "rows.csv"), filepath.Join(dir, "schema.yaml")
	for path, content := range map[string]string{rows: text.String(), schema: rowsSchema} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return rows, schema
}

// runRows has the command make records of n rows and print them. Standard output and standard
// error are one, so what is counted is the lines of records.
func runRows(tb testing.TB, n int) (records int) {
	tb.Helper()
	dir := tb.TempDir()
	rows, schema := writeRows(tb, dir, n)
	var out bytes.Buffer
	code := main.RunIn(tb.Context(), nil, []string{
		"mapreduce", "run", rows, "--schema", schema, "--data-dir", filepath.Join(dir, "data"), "--output", filepath.Join(dir, "out"), "-o", "csv",
	}, &out, io.Discard)
	if code != 0 {
		tb.Fatalf("the command ended with %d", code)
	}
	return bytes.Count(out.Bytes(), []byte("Berlin"))
}

// Records are printed while their files are written: of a result with more rows than fit into
// one unit, each stands there once.
func TestEachRowOfALongTableIsPrintedOnce(t *testing.T) {
	const rows = 1200
	if got := runRows(t, rows); got != rows {
		t.Errorf("printed %d of %d rows", got, rows)
	}
}

// BenchmarkRows is what a row of a table costs from the file to the printed record.
func BenchmarkRows(b *testing.B) {
	for _, n := range []int{1000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if got := runRows(b, n); got != n {
					b.Fatalf("printed %d of %d rows", got, n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/row")
		})
	}
}
