package reviewfile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/reviewfile"
	"github.com/coditect/mapreduce/api/schema"
)

// What people have decided is true, as far as it is of whole documents: nothing that nobody has looked at
// counts as missing.
func TestTruthOfReviews(t *testing.T) {
	s, err := schema.Parse("schema", []byte("type: object\nproperties:\n  total: {type: number}\n  date: {type: string}\n  shop: {type: object, properties: {name: {type: string}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	records := []string{
		`{"total": 12.50, "date": "2020-01-02", "shop": {"name": "X"}, "_sources": ["a"], "_reviewed": {"total": {"verdict": "accept"}, "shop.name": {"verdict": "correct"}}}`,
		`{"total": null, "shop": {"name": "Y"}, "_sources": ["b"], "_reviewed": {"total": {"verdict": "absent"}, "shop.name": {"verdict": "accept"}, "date": {"verdict": "reject"}}}`,
		`{"total": 3, "_sources": ["c"], "_reviewed": {"total": {"verdict": "accept"}}}`,
		`{"total": 4, "_sources": ["d"]}`,
		`{"total": 5, "shop": {"name": "Z"}, "_sources": ["e"], "_reviewed": {"total": {"verdict": "accept"}, "shop.name": {"verdict": "accept"}}}`,
		`{"total": 6, "_sources": ["e"]}`,
		`{"total": 7, "shop": {"name": "W"}, "_sources": ["f", "g"], "_reviewed": {"total": {"verdict": "accept"}, "shop.name": {"verdict": "accept"}}}`,
	}
	got, err := reviewfile.TruthOf(s, func(sink func(*mapreduce.ResultPart) error) error {
		for _, r := range records {
			if err := sink(&mapreduce.ResultPart{Record: []byte(r)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"document":"a","shop.name":"X","total":12.50}` + "\n" + `{"document":"b","shop.name":"Y","total":null}` + "\n"
	if got.Lines != want || !slices.Equal(got.Documents, []string{"a", "b"}) {
		t.Errorf("got %q of %v, want\n%s", got.Lines, got.Documents, want)
	}

	if none, err := reviewfile.TruthOf(s, func(func(*mapreduce.ResultPart) error) error { return nil }); err != nil || strings.TrimSpace(none.Lines) != "" {
		t.Errorf("of nothing: %+v, %v", none, err)
	}
}
