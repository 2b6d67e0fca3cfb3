package resultfile_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
)

const job = mapreduce.JobID("mr_20260101_a1b2c3")

func parse(t *testing.T, text string) *resultfile.Record {
	t.Helper()
	r, err := resultfile.ParseRecord([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func encode(t *testing.T, r *resultfile.Record, citations map[string]*mapreduce.Citation) string {
	t.Helper()
	via, err := r.Encode(job, 7, citations)
	if err != nil {
		t.Fatal(err)
	}
	return via
}

// TestQuoteLeadsToItsField follows quotes of a record's text to the fields and citations
// behind them.
func TestQuoteLeadsToItsField(t *testing.T) {
	r := parse(t, `{"name":"Größe\u0001","seller":{"city":"Ulm","zip":"1"},"note":"n",
		"_citations":{"name":["REF_00000001"],"seller.city":["REF_00000002"],"seller.zip":["REF_00000003"]}}`)
	const text = "name: Größe \nseller:\n  city: Ulm\n  zip: 1\nnote: n\n"
	if diff := cmp.Diff(text, r.Text()); diff != "" {
		t.Fatalf("text (-want +got):\n%s", diff)
	}
	citations := map[string]*mapreduce.Citation{}
	for i, ref := range r.Refs() {
		citations[ref] = &mapreduce.Citation{Document: mapreduce.DocumentID(fmt.Sprint("d", i+1)), Start: 1, End: 2, ByteStart: 3, ByteEnd: 4, Quote: "q", Grade: "fuzzy"}
	}
	via := encode(t, r, citations)
	quote := func(doc mapreduce.DocumentID) resultfile.Quote {
		return resultfile.Quote{Document: doc, Start: 1, End: 2, ByteStart: 3, ByteEnd: 4, Quote: "q", Grade: "fuzzy"}
	}
	for _, tt := range []struct {
		quoted string
		want   *resultfile.Via
	}{
		{"Größe", &resultfile.Via{Job: job, Record: 7, Fields: []string{"name"}, Citations: map[string]resultfile.Quote{"REF_00000001": quote("d1")}}},
		{"Ulm", &resultfile.Via{Job: job, Record: 7, Fields: []string{"seller.city"}, Citations: map[string]resultfile.Quote{"REF_00000002": quote("d2")}}},
		{"Ulm\n  zip: 1", &resultfile.Via{Job: job, Record: 7, Fields: []string{"seller.city", "seller.zip"}, Citations: map[string]resultfile.Quote{"REF_00000002": quote("d2"), "REF_00000003": quote("d3")}}},
		{"note: n", &resultfile.Via{Job: job, Record: 7, Citations: map[string]resultfile.Quote{"REF_00000001": quote("d1"), "REF_00000002": quote("d2"), "REF_00000003": quote("d3")}}},
	} {
		before, _, found := strings.Cut(text, tt.quoted)
		if !found {
			t.Fatalf("%q is not in the text", tt.quoted)
		}
		start := int64(len([]rune(before)))
		got := resultfile.ViaOf(&mapreduce.Citation{Start: start, End: start + int64(len([]rune(tt.quoted))), Via: via})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q leads to (-want +got):\n%s", tt.quoted, diff)
		}
	}
}

// TestEncodeFits encodes records with much behind them: long quotes are cut, then
// citations are left out and counted.
func TestEncodeFits(t *testing.T) {
	for _, tt := range []struct {
		citations, quote int
		cut              bool
		most             int // citations that are left out
	}{
		{1, 100, false, 0},
		{1, 100_000, true, 0},
		{10, 1000, true, 0},
		{500, 1000, true, 490},
		{20_000, 30, true, 19_990},
	} {
		citations, refs := map[string]*mapreduce.Citation{}, map[string][]string{}
		fields := map[string]any{"_citations": refs}
		for i := range tt.citations {
			field, ref := fmt.Sprintf("f%05d", i), fmt.Sprintf("REF_%08x", i)
			fields[field], refs[field] = i, []string{ref}
			citations[ref] = &mapreduce.Citation{Document: "a.txt", Quote: strings.Repeat("ß", tt.quote), End: int64(tt.quote), Grade: "exact"}
		}
		data, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		via := encode(t, parse(t, string(data)), citations)
		if len(via) > 4000 {
			t.Errorf("%d citations of %d characters take %d bytes", tt.citations, tt.quote, len(via))
		}
		v := resultfile.ViaOf(&mapreduce.Citation{Via: via})
		if len(v.Citations)+v.More != tt.citations || v.More > tt.most || len(v.Citations) == 0 {
			t.Errorf("of %d citations %d are there and %d are counted", tt.citations, len(v.Citations), v.More)
		}
		if q, ok := v.Citations["REF_00000000"]; !ok || q.Cut != tt.cut || q.End != int64(tt.quote) {
			t.Errorf("%d citations of %d characters: the first is %+v", tt.citations, tt.quote, q)
		}
	}
}

// TestOtherMetadata reads metadata that has the name and means something else.
func TestOtherMetadata(t *testing.T) {
	for _, via := range []string{"", "mail", "{}", `"x"`, `[]`, `{"job_id":"x","record":1}`, `{"job_id":"mr_20260101_a1b2c3"}`, `{"job_id":1}`} {
		if v := resultfile.ViaOf(&mapreduce.Citation{End: 1, Via: via}); v != nil {
			t.Errorf("%q leads to %+v", via, v)
		}
	}
}

func TestParseRecordRefuses(t *testing.T) {
	for _, text := range []string{"", "{", `{"a":}`, `[1,`, `{"_citations":3}`} {
		if _, err := resultfile.ParseRecord([]byte(text)); err == nil {
			t.Errorf("%q is a record", text)
		}
	}
}
