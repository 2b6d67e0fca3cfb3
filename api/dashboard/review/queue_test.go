package review_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/dashboard/review"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
)

func queueOf(t *testing.T, c review.Choice, decisions []*mapreduce.Decision, parts ...*mapreduce.ResultPart) *review.Queue {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte("type: object\nproperties:\n  a: {type: string}\n  b: {type: number}\n"))
	if err != nil {
		t.Fatal(err)
	}
	b := review.NewBuilder(s, decisions, c)
	for _, p := range parts {
		if err := b.Take(p); err != nil {
			t.Fatal(err)
		}
	}
	q, err := b.Queue()
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func record(n int64, data string) *mapreduce.ResultPart {
	return &mapreduce.ResultPart{Record: []byte(data), RecordID: mapreduce.NewRecordID(n, 0)}
}

func rows(q *review.Queue) (all []string) {
	for _, i := range q.Items {
		all = append(all, fmt.Sprintf("%s %s %s %s %.2f", i.Record, i.Field, i.Value, i.Why, i.Gain))
	}
	return all
}

// A value that stands on a page says where there, of the page that its passage begins on.
func TestPagesOfValues(t *testing.T) {
	at := &mapreduce.Location{Page: 3, Boxes: []mapreduce.Box{
		{Page: 3, Left: 1, Top: 2, Right: 3, Bottom: 4}, {Page: 3, Left: 1, Top: 5, Right: 3, Bottom: 6}, {Page: 4, Left: 7, Top: 7, Right: 8, Bottom: 8},
	}}
	q := queueOf(t, review.Choice{}, nil,
		record(0, `{"a":"x","b":1,"_sources":["d0"],"_citations":{"a":["R1"],"b":["R2"]},"_confidence":{"a":0.5,"b":0.3}}`),
		&mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: "R1", Document: "d0", Quote: "x y", Location: at}},
		&mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: "R2", Document: "d0", Quote: "1", Location: &mapreduce.Location{Paragraph: 2}}},
	)
	for _, i := range q.Items {
		page, boxes, quote := 0, []float64(nil), ""
		if i.Field == "a" {
			page, boxes, quote = 3, []float64{1, 2, 3, 4, 1, 5, 3, 6}, "x y"
		}
		if diff := cmp.Diff(boxes, i.Boxes); i.Page != page || i.Quote != quote || diff != "" {
			t.Errorf("%s stands on page %d as %q, want %d, %q (-want +got):\n%s", i.Field, i.Page, i.Quote, page, quote, diff)
		}
	}
}

// What is most likely wrong comes first, each value once, with where it stands.
func TestQueue(t *testing.T) {
	q := queueOf(t, review.Choice{}, nil,
		record(0, `{"a":"x","b":1,"_sources":["d0"],"_citations":{"a":["R1"],"b":["R2"]},"_confidence":{"a":0.95,"b":0.3}}`),
		&mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: "R1", Document: "d0", Unit: "u0", ByteStart: 3, ByteEnd: 4, Grade: "exact"}},
		&mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: "R2", Document: "d0", Unit: "u0", ByteStart: 7, ByteEnd: 9, Grade: "exact"}},
		record(1, `{"a":null,"b":null,"_sources":["d1"],"_unverified":{"b":{"value":-1,"constraint":"minimum","message":"m","citations":["R3"]}}}`),
		&mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: "R3", Document: "d1", Unit: "u1", ByteStart: 1, ByteEnd: 2}},
		record(2, `{"a":"y","b":2,"_sources":["d2"],"_citations":{"a":["R4"],"b":["R5"]},"_confidence":{"a":0.9,"b":0.9}}`),
		&mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: "R4", Document: "d2", Grade: "fuzzy"}},
		&mapreduce.ResultPart{Conflict: []byte(`{"field":"b"}`)},
	)
	want := []string{
		"1.0 b -1 unverified 0.90", "0.0 b 1 doubtful 0.70", "2.0 b 2 conflict 0.50", "2.0 a \"y\" fuzzy 0.40", "1.0 a null missing 0.33",
	}
	if diff := cmp.Diff(want, rows(q)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if i := q.Items[1]; i.Document != "d0" || i.Unit != "u0" || i.Start != 7 || i.End != 9 || i.Number != 1 || i.Texts {
		t.Errorf("place of b: %+v", i)
	}
	if i := q.Items[4]; i.Document != "d1" || i.Unit != "u1" || i.End != 0 || !i.Texts {
		t.Errorf("place of what is missing: %+v", i)
	}
	if q.Values != 6 {
		t.Errorf("%d values", q.Values)
	}
}

// many returns a result of records with sure values.
func many(n int64) (parts []*mapreduce.ResultPart) {
	for i := range n {
		parts = append(parts, record(i, `{"a":"x","b":1,"_confidence":{"a":0.99,"b":0.99}}`))
	}
	return parts
}

// A sample follows from its seed; each value has the same chance, and parts are apart and whole.
func TestSampleAndParts(t *testing.T) {
	parts := many(1000)
	c := review.Choice{Seed: 1, Sample: 100}
	one, again := queueOf(t, c, nil, parts...), queueOf(t, c, nil, parts...)
	if diff := cmp.Diff(rows(one), rows(again)); diff != "" || len(one.Items) != 100 || one.Sample.Chosen != 100 {
		t.Errorf("%d items; again (-one +other):\n%s", len(one.Items), diff)
	}
	c.Seed = 2
	if cmp.Equal(rows(one), rows(queueOf(t, c, nil, parts...))) {
		t.Error("two seeds choose the same")
	}
	early := 0
	for _, i := range one.Items {
		if i.Number <= 500 {
			early++
		}
	}
	if early < 30 || early > 70 {
		t.Errorf("%d of 100 are in the first half", early)
	}

	total := 0
	for part := 1; part <= 3; part++ {
		q := queueOf(t, review.Choice{Part: part, Parts: 3}, nil, parts...)
		if total += q.Values; q.Values < 500 || q.Values > 800 {
			t.Errorf("part %d has %d values", part, q.Values)
		}
	}
	if total != 2000 {
		t.Errorf("the parts have %d values", total)
	}
}

func decision(record int64, by string, number int64, v mapreduce.ReviewVerdict, value string) *mapreduce.Decision {
	return &mapreduce.Decision{Record: mapreduce.NewRecordID(record, 0), Field: "a", By: by, Number: number, Verdict: v, Value: json.RawMessage(value)}
}

// The queue is about what the job found, whatever was decided since; the share is of the sample.
func TestFigures(t *testing.T) {
	decisions := []*mapreduce.Decision{
		decision(0, "ann", 1, mapreduce.ReviewAccept, ""), decision(0, "bob", 2, mapreduce.ReviewAccept, ""),
		decision(1, "ann", 1, mapreduce.ReviewCorrect, `"z"`), decision(1, "bob", 2, mapreduce.ReviewCorrect, `"q"`),
		decision(2, "ann", 1, mapreduce.ReviewReject, ""), decision(2, "bob", 2, mapreduce.ReviewReject, ""),
		decision(3, "ann", 1, mapreduce.ReviewAccept, ""), decision(3, "ann", 2, mapreduce.ReviewWithdraw, ""), decision(3, "bob", 3, mapreduce.ReviewAccept, ""),
	}
	parts := many(4)
	parts[1] = record(1, `{"a":"q","b":1,"_reviewed":{"a":{"verdict":"correct","model":"x","confidence":0.99}},"_confidence":{"b":0.99}}`)
	q := queueOf(t, review.Choice{Sample: 8}, decisions, parts...)
	for _, i := range q.Items {
		if i.Field == "a" && string(i.Value) != `"x"` {
			t.Errorf("%s of %s: %s", i.Field, i.Record, i.Value)
		}
	}
	if s := q.Sample; s.Chosen != 8 || s.Decided != 4 || s.Right != 2 || math.Abs(s.Low-0.150) > 0.001 || math.Abs(s.High-0.850) > 0.001 {
		t.Errorf("share %+v", s)
	}
	// They agree in two of three; by chance they would in two ninths.
	if a := q.Agreement; a.Values != 3 || a.Same != 2 || math.Abs(a.Kappa-4.0/7) > 1e-9 {
		t.Errorf("agreement %+v", a)
	}
}

// Of a unit that waits the queue has the values that it waits for, with the reason, and no others.
func TestWaitingValues(t *testing.T) {
	s, err := schema.Parse("s.yaml", []byte("type: object\nproperties:\n  a: {type: string}\n  b: {type: number}\n"))
	if err != nil {
		t.Fatal(err)
	}
	id := mapreduce.NewRecordID(0, 0)
	b := review.NewBuilder(s, []*mapreduce.Decision{{Record: "1.0", Field: "b", Number: 1, Verdict: mapreduce.ReviewAccept, By: "ann", Waited: true}}, review.Choice{})
	for _, u := range []*mapreduce.WaitingUnit{
		{
			Values: []mapreduce.WaitingValue{{Record: id, Field: "a", Why: "all"}},
			Parts: []*mapreduce.ResultPart{
				record(0, `{"a":"x","b":1,"_sources":["d0"],"_citations":{"a":["R1"]},"_confidence":{"a":0.99}}`),
				{Citation: &mapreduce.Citation{Ref: "R1", Document: "d0", Unit: "u", ByteStart: 3, ByteEnd: 4}},
			},
		},
		{Values: []mapreduce.WaitingValue{{Record: "1.0", Field: "b", Why: "missing"}}, Parts: []*mapreduce.ResultPart{record(1, `{"a":null,"b":null,"_sources":["d1"]}`)}},
	} {
		if err := b.TakeWaiting(u); err != nil {
			t.Fatal(err)
		}
	}
	q, err := b.Queue()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`0.0 a "x" all 0.20`, `1.0 b null missing 0.20`}, rows(q)); diff != "" {
		t.Errorf("queue (-want +got):\n%s", diff)
	}
	if i := q.Items[0]; !i.Waits || i.Unit != "u" || i.Start != 3 || i.Verdict != "" || q.Values != 2 || q.Items[1].Verdict != "accept" {
		t.Errorf("%+v of %d values", i, q.Values)
	}
}
