package review_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
)

var ann = mapreduce.Principal{Name: "ann", Roles: []mapreduce.Role{mapreduce.Admin}}

var documents = map[string]string{
	"a.txt": "ORDER: A-1\nCITY: Köln\nTOTAL: 12.50\n",
	"b.txt": "Größe — ORDER: B-2\nIn Ipoh, paid 7.20 of TOTAL: 7\n",
	"c.txt": "ORDER: C-3\nTOTAL: 3\n",
}

// reviewed returns a node with a complete job over the documents, and the ids of its records.
func reviewed(t *testing.T) (*enginetest.Node, mapreduce.JobID, []mapreduce.RecordID) {
	n := enginetest.Ruled(t)
	id, _ := n.Run(enginetest.Extracting(t, enginetest.Orders), enginetest.Texts(documents, "a.txt", "b.txt", "c.txt"))
	var ids []mapreduce.RecordID
	err := n.GetResult(t.Context(), id, false, func(p *mapreduce.ResultPart) error {
		if p.Record != nil {
			ids = append(ids, p.RecordID)
		}
		return nil
	})
	if err != nil || len(ids) != 3 {
		t.Fatalf("records %v: %v", ids, err)
	}
	return n, id, ids
}

func decide(t *testing.T, n *enginetest.Node, d mapreduce.NewDecision) *mapreduce.Decision {
	t.Helper()
	kept, err := n.Orch.DecideValue(t.Context(), ann, d)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// marked returns a passage of a document by its text.
func marked(document, text string) *mapreduce.Passage {
	at := int64(strings.Index(documents[document], text))
	return &mapreduce.Passage{Document: mapreduce.DocumentID(document), ByteStart: at, ByteEnd: at + int64(len(text))}
}

// Decided values stand in the result, with what the job found beside them; the passage that was marked
// is a citation like any other, and the stored result stays as it was.
func TestDecideValue(t *testing.T) {
	n, id, ids := reviewed(t)
	n.Result(id) // seals what came before
	before := n.Result(id)

	kept := decide(t, n, mapreduce.NewDecision{
		Job: id, Record: ids[1], Field: "total", Request: "r", Verdict: mapreduce.ReviewCorrect, Value: []byte(`"7.20"`), Passage: marked("b.txt", "7.20"), Note: "paid",
	})
	if string(kept.Value) != "7.2" || string(kept.Model) != "7" || kept.By != "ann" || kept.Number != 1 {
		t.Errorf("kept %+v", kept)
	}
	quote := kept.Passage
	if quote.Quote != "7.20" || quote.Start != 33 || quote.Before != "Größe — ORDER: B-2\nIn Ipoh, paid " || quote.After != " of TOTAL: 7\n" || quote.Unit == "" {
		t.Errorf("passage %+v", quote)
	}
	decide(t, n, mapreduce.NewDecision{Job: id, Record: ids[1], Field: "city", Verdict: mapreduce.ReviewCorrect, Value: []byte(`"Ipoh"`), Passage: marked("b.txt", "Ipoh")})
	decide(t, n, mapreduce.NewDecision{Job: id, Record: ids[0], Field: "order", Verdict: mapreduce.ReviewAccept, Model: []byte(`"A-1"`)})
	decide(t, n, mapreduce.NewDecision{Job: id, Record: ids[2], Field: "total", Verdict: mapreduce.ReviewReject})
	decide(t, n, mapreduce.NewDecision{Job: id, Record: ids[2], Field: "city", Verdict: mapreduce.ReviewAbsent})

	got := n.Result(id)
	got.Cited(t, documents)
	wantRows(t, got, "A-1 Köln 12.5", "B-2 Ipoh 7.2", "C-3 <nil> <nil>")
	if want := (mapreduce.ReviewCount{Accepted: 1, Corrected: 2, Rejected: 1, Absent: 1}); *got.Summary.Reviewed != want {
		t.Errorf("counted %+v", got.Summary.Reviewed)
	}
	if got.Citations[quote.Ref] == nil || fmt.Sprint(got.Records[1]["_citations"].(map[string]any)["total"]) != "["+quote.Ref+"]" {
		t.Errorf("citations of the correction: %v", got.Records[1]["_citations"])
	}
	entry := got.Records[1]["_reviewed"].(map[string]any)["total"].(map[string]any)
	if entry["verdict"] != "correct" || entry["by"] != "ann" || entry["model"] != 7.0 || entry["note"] != "paid" || entry["citations"] == nil || entry["confidence"] == nil {
		t.Errorf("what stood there: %v", entry)
	}
	var sums map[string]struct{ Sum json.Number }
	if err := json.Unmarshal(got.Summary.Statistics, &sums); err != nil || sums["total"].Sum != "19.7" {
		t.Errorf("sums %v: %v", sums, err)
	}

	// Withdrawn, all is as it was.
	for _, v := range []struct {
		record int
		field  string
	}{{1, "total"}, {1, "city"}, {0, "order"}, {2, "total"}, {2, "city"}} {
		decide(t, n, mapreduce.NewDecision{Job: id, Record: ids[v.record], Field: v.field, Verdict: mapreduce.ReviewWithdraw})
	}
	after := n.Result(id)
	if diff := cmp.Diff(before.Records, after.Records); diff != "" {
		t.Errorf("withdrawn (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(string(before.Summary.Statistics), string(after.Summary.Statistics)); diff != "" {
		t.Errorf("statistics (-before +after):\n%s", diff)
	}
	n.Sound()
}

func wantRows(t *testing.T, got *enginetest.Collected, want ...string) {
	t.Helper()
	var rows []string
	for _, r := range got.Records {
		rows = append(rows, fmt.Sprint(r["order"], " ", r["city"], " ", r["total"]))
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// Each decision is an event of the audited chain, with the principal who decided.
func TestDecisionsAreAudited(t *testing.T) {
	n, id, ids := reviewed(t)
	decide(t, n, mapreduce.NewDecision{Job: id, Record: ids[0], Field: "total", Verdict: mapreduce.ReviewAccept})
	page, err := n.ListEvents(t.Context(), mapreduce.ListEventsQuery{Job: id, Verify: true, PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	last := page.Checkpoints[len(page.Checkpoints)-1]
	if last.Kind != mapreduce.EventDecided || last.Principal != "ann" || last.Message != "total of record "+string(ids[0])+": accept" {
		t.Errorf("event %+v", last)
	}
	listed, err := n.ListDecisions(t.Context(), mapreduce.ListDecisionsQuery{Job: id})
	if err != nil || len(listed.Decisions) != 1 || listed.Decisions[0].By != "ann" {
		t.Errorf("listed %+v: %v", listed, err)
	}
	n.Sound()
}

// What does not fit is refused with the field that is wrong, and nothing is stored.
func TestDecideValueRefused(t *testing.T) {
	n, id, ids := reviewed(t)
	for name, tt := range map[string]struct {
		change func(*mapreduce.NewDecision)
		kind   errs.Kind
		want   string
	}{
		"no such job":         {func(d *mapreduce.NewDecision) { d.Job = "mr_20200101_aaaaaa" }, errs.NotFound, "no job has the id"},
		"no record's id":      {func(d *mapreduce.NewDecision) { d.Record = "00.1" }, errs.Invalid, "record_id"},
		"no such record":      {func(d *mapreduce.NewDecision) { d.Record = "7.7" }, errs.NotFound, "has no record"},
		"no such field":       {func(d *mapreduce.NewDecision) { d.Field = "totl" }, errs.Invalid, "it has order, city, total"},
		"no verdict":          {func(d *mapreduce.NewDecision) { d.Verdict = 0 }, errs.Invalid, "verdict"},
		"no value":            {func(d *mapreduce.NewDecision) { d.Value = nil }, errs.Invalid, "needs the right value"},
		"no JSON":             {func(d *mapreduce.NewDecision) { d.Value = []byte("7,20 €") }, errs.Invalid, "is no JSON"},
		"null":                {func(d *mapreduce.NewDecision) { d.Value = []byte("null") }, errs.Invalid, "absent"},
		"no number":           {func(d *mapreduce.NewDecision) { d.Value = []byte(`"much"`) }, errs.Invalid, "value"},
		"a value with accept": {func(d *mapreduce.NewDecision) { d.Verdict = mapreduce.ReviewAccept }, errs.Invalid, "correct alone"},
		"nothing to accept": {func(d *mapreduce.NewDecision) {
			*d = mapreduce.NewDecision{Job: id, Record: ids[1], Field: "city", Verdict: mapreduce.ReviewAccept}
		}, errs.Invalid, "no value to accept"},
		"another value by now":      {func(d *mapreduce.NewDecision) { d.Model = []byte("8") }, errs.Precondition, "another value by now"},
		"a document of others":      {func(d *mapreduce.NewDecision) { d.Passage.Document = "a.txt" }, errs.Invalid, "the record is of no document"},
		"behind the end":            {func(d *mapreduce.NewDecision) { d.Passage.ByteEnd = 2000 }, errs.Invalid, "has 54 bytes"},
		"within a character":        {func(d *mapreduce.NewDecision) { d.Passage.ByteStart, d.Passage.ByteEnd = 3, 5 }, errs.Invalid, "within a character"},
		"nothing at all":            {func(d *mapreduce.NewDecision) { d.Passage.ByteEnd = d.Passage.ByteStart }, errs.Invalid, "at least one"},
		"white space":               {func(d *mapreduce.NewDecision) { d.Passage = marked("b.txt", "\n") }, errs.Invalid, "white space"},
		"a unit of another":         {func(d *mapreduce.NewDecision) { d.Passage.Unit = "nobody" }, errs.Invalid, "did not read document"},
		"a note of a megabyte":      {func(d *mapreduce.NewDecision) { d.Note = strings.Repeat("n", 1<<20) }, errs.Invalid, "note"},
		"a passage of a megabyte":   {func(d *mapreduce.NewDecision) { d.Passage.ByteEnd = 1 << 20 }, errs.Invalid, "at most"},
		"a note that is no text":    {func(d *mapreduce.NewDecision) { d.Note = "\xff" }, errs.Invalid, "note"},
		"a value that is too large": {func(d *mapreduce.NewDecision) { d.Value = []byte(`"` + strings.Repeat("1", 40<<10) + `"`) }, errs.Invalid, "at most"},
	} {
		d := mapreduce.NewDecision{Job: id, Record: ids[1], Field: "total", Verdict: mapreduce.ReviewCorrect, Value: []byte("7.2"), Passage: marked("b.txt", "7.20")}
		tt.change(&d)
		_, err := n.Orch.DecideValue(t.Context(), ann, d)
		if errs.KindOf(err) != tt.kind || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if page, err := n.ListDecisions(t.Context(), mapreduce.ListDecisionsQuery{Job: id}); err != nil || len(page.Decisions) > 0 {
		t.Errorf("decisions that were refused: %+v, %v", page, err)
	}
	if _, err := n.ListDecisions(t.Context(), mapreduce.ListDecisionsQuery{Job: id, Record: "x"}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a list of no record: %v", err)
	}
}
