package results

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// Records are sorted by value: numbers before texts, what is missing last, in both directions.
func TestRecordsInOrder(t *testing.T) {
	values := []string{`10`, `"b"`, `null`, `9`, `"A"`, `-1`}
	for direction, want := range map[bool]string{false: "-1 9 10 A b ", true: "b A 10 9 -1 "} {
		s := &recordScan{filter: recordFilter{Sort: "v", Descending: direction}, counts: map[string]int{}, places: map[string]string{}}
		for _, v := range values {
			if err := s.take(&mapreduce.ResultPart{Record: []byte(`{"v": ` + v + `}`)}); err != nil {
				t.Fatal(err)
			}
		}
		list := s.list(&visit.Visit{})
		var got []string
		for _, r := range list.Rows {
			got = append(got, r.Cells[0].Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("descending %v: %q, want %q", direction, strings.Join(got, " "), want)
		}
	}
}
