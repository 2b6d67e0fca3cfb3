package console_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
)

// TestLargeSchema: a file may be as large as a schema, which is what its reader says.
func TestLargeSchema(t *testing.T) {
	for size, want := range map[int]string{1 << 20: "", console.MaxSchemaFile + 1: "has more than 4194304 bytes"} {
		schema := `{"type": "object", "properties": {"total": {"type": "number"}}}`
		file := filepath.Join(t.TempDir(), "large.json")
		if err := os.WriteFile(file, []byte(schema+strings.Repeat(" ", size-len(schema))), 0o600); err != nil {
			t.Fatal(err)
		}

		got := ""
		if _, err := console.ReadSchema(t.Context(), file); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%d bytes: %q, want %q", size, got, want)
		}
	}
}
