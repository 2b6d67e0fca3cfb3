package review_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/review"
)

const invoices = `
title: invoice
type: object
required: [number]
properties:
  number: {type: string}
  total: {type: number, minimum: 0}
  seller: {type: object, properties: {name: {type: string}, city: {type: string}}}
  items: {type: array, items: {type: string, maxLength: 3}}
if: {properties: {total: {minimum: 1000}}, required: [total]}
then: {properties: {number: {pattern: "^L"}}}
`

func parsed(t *testing.T) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte(invoices))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// record is one that a job found, with a value under _unverified and one that is missing.
const record = `{"number":"A-1","total":12.50,"seller":{"name":"<Köln & Co>","city":null},"items":["a","b"],"_sources":["d"],` +
	`"_citations":{"items":["REF_3"],"number":["REF_1"],"seller.name":["REF_2"],"total":["REF_4"]},"_confidence":{"items":0.5,"number":0.9,"seller.name":0.7,"total":0.25},` +
	`"_missing":{"seller.city":"not found"},"_unverified":{"items":{"value":["four"],"constraint":"maxLength","message":"at most 3","citations":["REF_3"]},"seller.city":"Ipoh"}}`

func decided(field string, v mapreduce.ReviewVerdict, model, value string, number int64) *mapreduce.Decision {
	d := &mapreduce.Decision{Record: "0.0", Field: field, Number: number, Verdict: v, Model: []byte(model), By: "ann", Time: time.Unix(0, 0)}
	if value != "" {
		d.Value = []byte(value)
	}
	return d
}

func sequence(all []*mapreduce.Decision) iter.Seq2[*mapreduce.Decision, error] {
	return func(yield func(*mapreduce.Decision, error) bool) {
		for _, d := range all {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// applied applies decisions to a result of records that are alike, with ids of their own.
func applied(t *testing.T, decisions []*mapreduce.Decision, ids ...mapreduce.RecordID) (records []map[string]any, raw []string, sum *mapreduce.Summary) {
	t.Helper()
	a, err := review.NewApplier(parsed(t), sequence(decisions), func(p *mapreduce.ResultPart) error {
		switch {
		case p.Summary != nil:
			sum = p.Summary
		case p.Record != nil:
			var r map[string]any
			if err := json.Unmarshal(p.Record, &r); err != nil {
				t.Fatal(err)
			}
			records, raw = append(records, r), append(raw, string(p.Record))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()

	for _, id := range ids {
		if err := a.Take(&mapreduce.ResultPart{Record: []byte(record), RecordID: id}); err != nil {
			t.Fatal(err)
		}
	}
	broken := []mapreduce.BrokenConstraint{{Field: "items", Constraint: "maxLength", Records: int64(len(ids))}}
	if err := a.Take(&mapreduce.ResultPart{Summary: &mapreduce.Summary{Statistics: []byte(`{}`), Broken: broken}}); err != nil {
		t.Fatal(err)
	}
	return records, raw, sum
}

func TestApply(t *testing.T) {
	for name, tt := range map[string]struct {
		decisions []*mapreduce.Decision
		want      string // number, total, city, items
		count     mapreduce.ReviewCount
		warnings  string
	}{
		"nothing decided":   {nil, "A-1 12.5 <nil> [a b]", mapreduce.ReviewCount{}, "<nil>"},
		"accepted":          {[]*mapreduce.Decision{decided("total", mapreduce.ReviewAccept, "12.50", "", 1)}, "A-1 12.5 <nil> [a b]", mapreduce.ReviewCount{Accepted: 1}, "<nil>"},
		"accepted another":  {[]*mapreduce.Decision{decided("total", mapreduce.ReviewAccept, "12.5", "", 1)}, "A-1 12.5 <nil> [a b]", mapreduce.ReviewCount{Unfitting: 1}, "<nil>"},
		"corrected":         {[]*mapreduce.Decision{decided("total", mapreduce.ReviewCorrect, "1", "13", 1)}, "A-1 13 <nil> [a b]", mapreduce.ReviewCount{Corrected: 1}, "<nil>"},
		"the last counts":   {[]*mapreduce.Decision{decided("total", mapreduce.ReviewCorrect, "1", "13", 1), decided("total", mapreduce.ReviewCorrect, "1", "14", 2)}, "A-1 14 <nil> [a b]", mapreduce.ReviewCount{Corrected: 1}, "<nil>"},
		"withdrawn":         {[]*mapreduce.Decision{decided("total", mapreduce.ReviewCorrect, "1", "13", 1), decided("total", mapreduce.ReviewWithdraw, "1", "", 2)}, "A-1 12.5 <nil> [a b]", mapreduce.ReviewCount{}, "<nil>"},
		"rejected":          {[]*mapreduce.Decision{decided("total", mapreduce.ReviewReject, "12.50", "", 1)}, "A-1 <nil> <nil> [a b]", mapreduce.ReviewCount{Rejected: 1}, "<nil>"},
		"absent":            {[]*mapreduce.Decision{decided("number", mapreduce.ReviewAbsent, `"A-1"`, "", 1)}, "<nil> 12.5 <nil> [a b]", mapreduce.ReviewCount{Absent: 1}, "[number is required and has no value (the document does not have it, as a review says)]"},
		"unverified is so":  {[]*mapreduce.Decision{decided("seller.city", mapreduce.ReviewAccept, `"Ipoh"`, "", 1)}, "A-1 12.5 Ipoh [a b]", mapreduce.ReviewCount{Accepted: 1}, "<nil>"},
		"list":              {[]*mapreduce.Decision{decided("items", mapreduce.ReviewCorrect, "[]", `["a","b","c"]`, 1)}, "A-1 12.5 <nil> [a b c]", mapreduce.ReviewCount{Corrected: 1}, "<nil>"},
		"schema refuses":    {[]*mapreduce.Decision{decided("total", mapreduce.ReviewCorrect, "1", "-1", 1)}, "A-1 12.5 <nil> [a b]", mapreduce.ReviewCount{Unfitting: 1}, "<nil>"},
		"no number":         {[]*mapreduce.Decision{decided("total", mapreduce.ReviewCorrect, "1", `"x"`, 1)}, "A-1 12.5 <nil> [a b]", mapreduce.ReviewCount{Unfitting: 1}, "<nil>"},
		"field gone":        {[]*mapreduce.Decision{decided("gone", mapreduce.ReviewCorrect, "1", "1", 1)}, "A-1 12.5 <nil> [a b]", mapreduce.ReviewCount{Unfitting: 1}, "<nil>"},
		"large needs L":     {[]*mapreduce.Decision{decided("total", mapreduce.ReviewCorrect, "1", "2000", 1)}, "A-1 12.5 <nil> [a b]", mapreduce.ReviewCount{Unfitting: 1}, "<nil>"},
		"large with an L":   {[]*mapreduce.Decision{decided("number", mapreduce.ReviewCorrect, "1", `"L-1"`, 1), decided("total", mapreduce.ReviewCorrect, "1", "2000", 1)}, "L-1 2000 <nil> [a b]", mapreduce.ReviewCount{Corrected: 2}, "<nil>"},
		"one of two is bad": {[]*mapreduce.Decision{decided("number", mapreduce.ReviewCorrect, "1", `"B-2"`, 1), decided("total", mapreduce.ReviewCorrect, "1", "-2", 1)}, "B-2 12.5 <nil> [a b]", mapreduce.ReviewCount{Corrected: 1, Unfitting: 1}, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			records, raw, sum := applied(t, tt.decisions, "0.0", "0.1")
			r := records[0]
			if got := fmt.Sprint(r["number"], " ", r["total"], " ", r["seller"].(map[string]any)["city"], " ", r["items"]); got != tt.want {
				t.Errorf("values %s, want %s", got, tt.want)
			}
			if got := fmt.Sprint(r["_warnings"]); got != tt.warnings {
				t.Errorf("warnings %s, want %s", got, tt.warnings)
			}
			var count mapreduce.ReviewCount
			if sum.Reviewed != nil {
				count = *sum.Reviewed
			}
			if count != tt.count {
				t.Errorf("counted %+v, want %+v", count, tt.count)
			}
			// A record that nobody decided about is passed on byte by byte.
			if raw[1] != record || count.Decided() == 0 && raw[0] != record {
				t.Errorf("changed without a decision: %s and %s", raw[0], raw[1])
			}
		})
	}
}

// What the job found is noted, whatever was decided, and nothing else of the record changes.
func TestWhatWasFoundIsKept(t *testing.T) {
	records, raw, sum := applied(t, []*mapreduce.Decision{
		decided("items", mapreduce.ReviewAbsent, "[]", "", 1), decided("total", mapreduce.ReviewCorrect, "1", "3", 1),
	}, "0.0")
	want := `{"number":"A-1","total":3,"seller":{"city":null,"name":"<Köln & Co>"},"items":null,"_sources":["d"],` +
		`"_citations":{"number":["REF_1"],"seller.name":["REF_2"]},"_confidence":{"number":0.9,"seller.name":0.7},` +
		`"_missing":{"items":"the document does not have it, as a review says","seller.city":"not found"},"_unverified":{"seller.city":"Ipoh"},` +
		`"_reviewed":{"items":{"verdict":"absent","by":"ann","at":"1970-01-01T00:00:00Z","model":["a","b"],"citations":["REF_3"],"confidence":0.5},` +
		`"total":{"verdict":"correct","by":"ann","at":"1970-01-01T00:00:00Z","model":12.50,"citations":["REF_4"],"confidence":0.25}}}`
	if diff := cmp.Diff(want, raw[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(sum.Broken) != 0 {
		t.Errorf("the list breaks nothing any more: %v", sum.Broken)
	}
	if records[0]["_unverified"].(map[string]any)["seller.city"] != "Ipoh" {
		t.Error("a value that nobody decided about is gone")
	}
}

// Decisions about records that a result does not have are counted, wherever these would stand.
func TestRecordsThatAreGone(t *testing.T) {
	var all []*mapreduce.Decision
	for _, id := range []mapreduce.RecordID{"0.0", "0.2", "0.10", "3.0", "20.0"} {
		d := decided("total", mapreduce.ReviewCorrect, "1", "3", 1)
		d.Record = id
		all = append(all, d)
	}
	_, _, sum := applied(t, all, "0.1", "0.10", "3.1")
	if want := (mapreduce.ReviewCount{Corrected: 1, Unfitting: 4}); *sum.Reviewed != want {
		t.Errorf("counted %+v, want %+v", *sum.Reviewed, want)
	}
}

// A result that cannot be read, and decisions that cannot, end with an error and not with a part.
func TestUnreadable(t *testing.T) {
	for _, bad := range []string{`[`, `{"_citations":1}`, `{"_missing":[]}`} {
		a, err := review.NewApplier(parsed(t), sequence([]*mapreduce.Decision{decided("total", mapreduce.ReviewAccept, "1", "", 1)}), func(*mapreduce.ResultPart) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if err := a.Take(&mapreduce.ResultPart{Record: []byte(bad), RecordID: "0.0"}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
