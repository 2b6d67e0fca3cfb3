package scan_test

import (
	"testing"

	"github.com/coditect/mapreduce/api/schema/format/internal/scan"
)

func TestWord(t *testing.T) {
	for _, tt := range []struct {
		text  string
		at    int
		limit int
		want  string
	}{
		{"zwölf Monate", 0, 16, "zwölf"},
		{"zwölf Monate", 0, 5, ""}, // it has six bytes
		{"zwölf Monate", 0, 6, "zwölf"},
		{"zwölf Monate", 7, 16, "Monate"},
		{"zwölf Monate", 6, 16, ""},
		{"5kg", 1, 16, "kg"},
		{"", 0, 16, ""},
	} {
		if got := scan.Word(tt.text, tt.at, tt.limit); got != tt.want {
			t.Errorf("Word(%q, %d, %d) = %q, want %q", tt.text, tt.at, tt.limit, got, tt.want)
		}
	}
}

// A paragraph ends at a blank line, and so does what belongs together.
func TestSkipSpace(t *testing.T) {
	for text, want := range map[string]int{"a": 0, " \ta": 2, " \r\n a": 4, " \n \n a": 3, "": 0, "\u00a0a": 0} {
		if got := scan.SkipSpace(text, 0); got != want {
			t.Errorf("SkipSpace(%q, 0) = %d, want %d", text, got, want)
		}
	}
}
