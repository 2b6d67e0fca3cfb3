package folder_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/folder"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
)

func TestID(t *testing.T) {
	for _, test := range []struct {
		name string
		path string
		want string
	}{
		{"plain", "reports/2024/a.txt", "reports/2024/a.txt"},
		{"spaces and letters", "My Dokumente/Größe 漢.txt", "My Dokumente/Größe 漢.txt"},
		{"parent folder", "../a..b", "../a..b"},
		{"line break", "a\nb", "a%0Ab"},
		{"control characters", "a\x00\x1b\x7f\u0085b", "a%00%1B%7F%C2%85b"},
		{"line separator", "a\u2028b", "a%E2%80%A8b"},
		{"not UTF-8", "caf\xe9", "caf%E9"},
		{"replacement character", "a\ufffdb", "a\ufffdb"},
		{"percent sign", "100%.txt", "100%.txt"},
		{"looks encoded", "a%20b", "a%2520b"},
		{"percent signs", "%%41", "%%2541"},
		{"final", "final", "%66inal"},
		{"not final", "final.txt", "final.txt"},
		{"direct", "direct", "%64irect"},
		{"plan", "plan", "%70lan"},
		{"reduce", "reduce_L1_0", "%72educe_L1_0"},
		{"not reduce", "reduce_L1", "reduce_L1"},
		{"batch", "batch_3", "%62atch_3"},
		{"parse", "parse_x", "%70arse_x"},
		{"parse with a line break", "parse_\n", "%70arse_%0A"},
		{"chunk", "report_chunk_12", "report_chunk%5F12"},
		{"not chunk", "report_chunk_12.txt", "report_chunk_12.txt"},
		{"part", "a_part_0", "a_part%5F0"},
		{"chunk of what looks like a chunk", "a_chunk_1_chunk_2", "a_chunk_1_chunk%5F2"},
		{"parse of what looks like a chunk", "parse_a_chunk_2", "%70arse_a_chunk%5F2"},
		{"only the ending", "_chunk_0", "_chunk%5F0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := folder.ID(test.path); got != test.want {
				t.Errorf("ID(%q) = %q, want %q", test.path, got, test.want)
			}
		})
	}
}

func TestIDProperties(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		"a", "%", "4", "1", "F", "_chunk_", "_part_", "parse_", "final", "direct", "plan", "batch_", "reduce_L", "_", "0", "12",
		"\n", "\xff", "\u0085", "\u2028", "é", "/", ".", " ", "+", "-",
	})
	paths := rapid.OneOf(
		rapid.Map(rapid.SliceOfN(pieces, 1, 8), func(p []string) string { return strings.Join(p, "") }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 20), func(b []byte) string { return string(b) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		path := paths.Draw(t, "path")
		id := folder.ID(path)
		if got := folder.Path(id); got != path {
			t.Fatalf("ID(%q) = %q decodes to %q", path, id, got)
		}
		if mapreduce.DocumentID(id).Reserved() {
			t.Fatalf("ID(%q) = %q is reserved", path, id)
		}
		if !utf8.ValidString(id) || strings.ContainsAny(id, "\n\r\x00\u0085\u2028") {
			t.Fatalf("ID(%q) = %q is not printable", path, id)
		}
	})
}

// TestNoTwoUnitsShareAName makes the names of all units of two documents.
func TestNoTwoUnitsShareAName(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"a", "_chunk_", "_part_", "parse_", "final", "reduce_L1_0", "0", "1"})
	paths := rapid.Map(rapid.SliceOfN(pieces, 1, 5), func(p []string) string { return strings.Join(p, "") })
	rapid.Check(t, func(t *rapid.T) {
		a, b := paths.Draw(t, "a"), paths.Draw(t, "b")
		if a == b {
			t.Skip("the same document")
		}
		owner := map[string]string{"final": "job", "direct": "job", "plan": "job", "reduce_L1_0": "job", "batch_0": "job"}
		for _, path := range []string{a, b} {
			id := folder.ID(path)
			for _, unit := range []string{id, id + "_chunk_0", id + "_chunk_1", "parse_" + id, id + "_part_0"} {
				if other, ok := owner[unit]; ok {
					t.Fatalf("%q and %q both have a unit %q", other, path, unit)
				}
				owner[unit] = path
			}
		}
	})
}

func TestRoster(t *testing.T) {
	var r folder.Roster
	if err := r.Add("x.txt", "/one/x.txt"); err != nil {
		t.Errorf("first: %v", err)
	}
	if err := r.Add("y.txt", "/one/y.txt"); err != nil {
		t.Errorf("another: %v", err)
	}
	err := r.Add("x.txt", "/two/x.txt")
	if err == nil || !strings.Contains(err.Error(), "/one/x.txt") || !strings.Contains(err.Error(), "/two/x.txt") {
		t.Errorf("second: error %v does not name both", err)
	}
}
