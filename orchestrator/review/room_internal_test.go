package review

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/gate"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs/records"
	stored "github.com/coditect/mapreduce/store/jobs/review"
	"github.com/coditect/mapreduce/store/keys"
)

// What somebody writes is refused once there is too much of it, before it is kept and with what to do; what only says whether a
// value is right never is, so a unit can go on whatever was decided before.
func TestRoomForDecisions(t *testing.T) {
	s, err := schema.Parse("s.yaml", []byte("type: object\nproperties: {a: {type: string}, b: {type: string}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	out := &output.Output{Entries: []output.Entry{{Members: []output.Member{{}}, Accumulator: merge.Accumulator{Entity: "e", Sources: []merge.Source{{Document: "d"}}}}}}
	w := &waiting{Unit: &records.Unit{ID: "map-d"}, schema: s, out: out}
	one := func(field string, verdict mapreduce.ReviewVerdict, value string, passage bool) *stored.Decision {
		d := &storagev1.Decision{Verdict: uint32(verdict), Model: gate.Found(s, out, "0.0", field), Value: []byte(value), Waited: true}
		if passage {
			d.Passage = &storagev1.ShownCitation{Citation: &storagev1.Citation{Quote: "quoted"}}
		}
		return &stored.Decision{DecisionAt: keys.DecisionAt{Record: "0.0", Field: field}, Decision: d}
	}
	much := one("a", mapreduce.ReviewCorrect, `"`+strings.Repeat("x", mapreduce.MaxDecided)+`"`, false)

	for _, tt := range []struct {
		name    string
		all     []*stored.Decision
		next    *stored.Decision
		refused bool
	}{
		{"little", nil, one("b", mapreduce.ReviewCorrect, `"y"`, false), false},
		{"too much at once", nil, much, true},
		{"a value behind too much", []*stored.Decision{much}, one("b", mapreduce.ReviewCorrect, `"y"`, false), true},
		{"a passage behind too much", []*stored.Decision{much}, one("b", mapreduce.ReviewAccept, "", true), true},
		{"in place of too much", []*stored.Decision{much}, one("a", mapreduce.ReviewCorrect, `"y"`, false), false},
		{"right, behind too much", []*stored.Decision{much}, one("b", mapreduce.ReviewAccept, "", false), false},
		{"rejected, behind too much", []*stored.Decision{much}, one("b", mapreduce.ReviewReject, "", false), false},
		{"absent, behind too much", []*stored.Decision{much}, one("b", mapreduce.ReviewAbsent, "", false), false},
	} {
		err := w.checkRoom(tt.all, tt.next)
		if tt.refused != (err != nil) || tt.refused && (errs.KindOf(err) != errs.Exhausted || !strings.Contains(err.Error(), "give a shorter value or passage")) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}

	// An answer that is too large for a call says that it is elsewhere, and how long it is good for.
	large := &gate.Answer{Over: true, Decided: []gate.Decided{{Record: "0.0", Field: "a", Value: much.Value}}}
	data, err := encode(large)
	if err != nil || len(data) > mapreduce.MaxWakeAnswer {
		t.Fatalf("an answer of %d bytes: %v", len(data), err)
	}
	if a, err := gate.DecodeAnswer(data); err != nil || !a.Apart || !a.Over || len(a.Decided) > 0 {
		t.Errorf("it says %+v: %v", a, err)
	}
}
