package result_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/checked"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// spoiled runs units by rules, and reduces that a script spoils, checked as they
// are in the program.
func spoiled(t *testing.T) *enginetest.Node {
	t.Helper()
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.WorkerFor("rules", checked.New(&scripted.Reducer{Agent: enginetest.ByRules()}), worker.Config{Slots: 4, Prefetch: 4}, n)
	return n
}

const disputed = `
title: order
type: object
properties:
  order: {type: string, x-coditect: {labels: [ORDER]}}
  city: {type: string, x-coditect: {labels: [CITY]}}
  note: {type: string, x-coditect: {labels: [NOTE], merge: longest}}
  total: {type: number, x-coditect: {labels: [TOTAL], merge: max}}
  tags: {type: array, items: {type: string}, x-coditect: {labels: [TAG]}}
`

// disputes are documents of which nine each speak of one order, and seldom agree.
func disputes() (map[string]string, []string) {
	docs, order := make(map[string]string), make([]string, 27)
	for i := range order {
		order[i] = fmt.Sprintf("doc%03d", i)
		docs[order[i]] = fmt.Sprintf("ORDER: K-%d\nCITY: Köln %d\nNOTE: delivered by van number %d\nTOTAL: %d.50\nTAG: t%d\n", i%3, i%5, i, i%7, i%4)
	}
	return docs, order
}

// A place is where a field's citation stands.
type place struct {
	field, document string
	start, end      int64
}

// A dropped entry of a result's dropped_citations.
type dropped struct {
	Ref, Field, Reason string
	Key                map[string]any
	Unit               string `json:"unit_id"`
}

func droppedOf(c *enginetest.Collected, t *testing.T) []dropped {
	t.Helper()
	all := make([]dropped, len(c.Drops))
	for i, text := range c.Drops {
		if err := json.Unmarshal([]byte(text), &all[i]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// places returns where the citations stand that the records show for a field or
// that the result lists as dropped from it.
func places(c *enginetest.Collected, t *testing.T) map[place]bool {
	t.Helper()
	all := make(map[place]bool)
	add := func(field, ref string) {
		cite := c.Citations[ref]
		if cite == nil {
			t.Errorf("%s: reference %s resolves to nothing", field, ref)
			return
		}
		all[place{field, string(cite.Document), cite.Start, cite.End}] = true
	}
	for _, rec := range c.Records {
		for field, ids := range rec["_citations"].(map[string]any) {
			for _, ref := range ids.([]any) {
				add(field, ref.(string))
			}
		}
	}
	for _, d := range droppedOf(c, t) {
		if strings.TrimSpace(d.Reason) == "" {
			t.Errorf("%s: %s was dropped without a reason", d.Field, d.Ref)
		}
		add(d.Field, d.Ref)
	}
	return all
}

var shownID = regexp.MustCompile(`(?i)REF_[0-9a-z]*`)

// shown checks every id in the records and the conflicts, in whatever text.
func shown(c *enginetest.Collected, t *testing.T) {
	t.Helper()
	records, err := json.Marshal(c.Records)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range slices.Concat([]string{string(records)}, c.Conflicts, c.Drops) {
		for _, ref := range shownID.FindAllString(text, -1) {
			if c.Citations[ref] == nil {
				t.Errorf("%s is shown and resolves to nothing", ref)
			}
		}
	}
}

// TestHostileReducers: three levels of reduces drop, invent, mix and rewrite
// references. Every one that is shown resolves to a quote that is its text, none
// that was made up is left, and each one that is gone is listed.
func TestHostileReducers(t *testing.T) {
	n := spoiled(t)
	docs, order := disputes()
	spec := enginetest.Extracting(t, disputed+"x-coditect: {key: [order]}\n")
	spec.ReduceContextLimit, spec.ReduceBatchSize = 1, 3
	_, honest := n.Run(spec, enginetest.Texts(docs, order...))
	want := places(honest, t)
	if len(want) < 27*4 {
		t.Fatalf("%d citations in all: the documents have more", len(want))
	}
	for _, how := range []string{"drop", "invent", "mix", "rewrite", "drop,invent,mix,rewrite", "rewrite,mix,invent,drop"} {
		t.Run(how, func(t *testing.T) {
			spec.Vars = map[string]string{"script.reducer": how}
			id, got := n.Run(spec, enginetest.Texts(docs, order...))
			if job, err := n.GetJob(t.Context(), id); err != nil || job.Level != 3 || job.FailedUnits != 0 {
				t.Fatalf("job %+v, %v: want three levels and no failure", job, err)
			}
			got.Cited(t, docs)
			shown(got, t)
			if diff := cmp.Diff(want, places(got, t)); diff != "" {
				t.Errorf("citations, carried or listed (-honest +hostile):\n%s", diff)
			}
			enginetest.CheckQuotes(t, docs, got)
			if how == "drop" {
				keyed(got, t)
			}
			if slices.Equal(got.Drops, honest.Drops) && how == "drop" {
				t.Error("the reducer dropped nothing: nothing was tested")
			}
			if strings.Contains(how, "invent") && !strings.Contains(strings.Join(got.Removed, "\n"), "never issued") {
				t.Errorf("nothing that was invented is reported: %s", got.Removed)
			}
			if strings.Contains(how, "mix") && !strings.Contains(strings.Join(got.Removed, "\n"), "another field or record") {
				t.Errorf("nothing that was mixed up is reported: %s", got.Removed)
			}
			if how == "rewrite" && !strings.Contains(strings.Join(got.Removed, "\n"), "quite another value") {
				t.Errorf("a value that follows from nothing is not reported: %s", got.Removed)
			}
		})
	}
}

// keyed checks that what reduces dropped tells of which order it was: that of the
// document, whose number says it.
func keyed(c *enginetest.Collected, t *testing.T) {
	t.Helper()
	byReduces := 0
	for _, d := range droppedOf(c, t) {
		var n int
		if _, err := fmt.Sscanf(string(c.Citations[d.Ref].Document), "doc%d", &n); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint("K-", n%3); d.Key["order"] != want {
			t.Errorf("%s of %s was dropped by %q from the record %v, want that of %s", d.Field, c.Citations[d.Ref].Document, d.Unit, d.Key, want)
		}
		if d.Unit != "" {
			byReduces++
		}
	}
	if byReduces == 0 {
		t.Error("no reduce dropped anything")
	}
}

// TestForgedOutputsFailTheirUnit: an agent that goes around Decide is refused,
// loudly, and what it would have shown is not shown.
func TestForgedOutputsFailTheirUnit(t *testing.T) {
	n := spoiled(t)
	docs, order := disputes()
	for how, why := range map[string]string{
		"forge_citation": "which it was not given", "forge_quote": "changed the citation",
		"forge_loss": "neither passed on nor listed", "forge_source": "lost the source",
	} {
		t.Run(how, func(t *testing.T) {
			spec := enginetest.Extracting(t, disputed+"x-coditect: {key: [order]}\n")
			spec.ReduceContextLimit, spec.ReduceBatchSize = 1, 3
			spec.Vars = map[string]string{"script.reducer": how}
			job, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, order...))
			if err != nil {
				t.Fatal(err)
			}
			end := n.End(job.ID)
			if end.State != mapreduce.JobFailed || !strings.Contains(end.Error, why) {
				t.Errorf("the job ended %v: %s; want it failed, saying that a reduce %s", end.State, end.Error, why)
			}
		})
	}
}
