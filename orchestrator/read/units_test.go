package read_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// TestUnitsWithManyInputs lists a reduce over units whose names together are
// larger than a page should be.
func TestUnitsWithManyInputs(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	const documents = 2500
	_, n := enginetest.One(t, &scripted.Agent{})
	spec := enginetest.Script(map[string]string{"script.output_bytes": "0"})
	spec.ReduceContextLimit = 1 << 30
	name := func(i int) mapreduce.DocumentID {
		return mapreduce.DocumentID(fmt.Sprintf("%0*d", mapreduce.MaxDocumentID, i))
	}
	job, err := n.SubmitJob(t.Context(), spec, func(yield func(*mapreduce.Document, error) bool) {
		for i := range documents {
			if !yield(&mapreduce.Document{ID: name(i), Content: []byte("text")}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	n.WantEnd(job.ID, mapreduce.JobComplete)
	q := mapreduce.ListUnitsQuery{Job: job.ID, PageSize: 1000, Inputs: true}
	var got []mapreduce.UnitID
	parts := 0
	for more := true; more; more = q.PageToken != "" {
		page, err := n.ListUnits(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range page.Units {
			if u.ID == mapreduce.FinalUnit {
				got = append(got, u.DependsOn...)
				parts++
			}
		}
		q.PageToken = page.NextPageToken
	}
	want := make([]mapreduce.UnitID, documents)
	for i := range want {
		want[i] = mapreduce.MapUnit(name(i))
	}
	if diff := cmp.Diff(want, got); diff != "" || parts < 2 {
		t.Errorf("listed in %d parts, want several; inputs (-want +got):\n%.2000s", parts, diff)
	}
}

// TestFailedUnits lists those units of a job that have failed, in pages of each size as the list of all its units has them.
func TestFailedUnits(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	vars := map[string]string{}
	for _, i := range []int{1, 4, 5, 9, 17} {
		vars[fmt.Sprintf("script.poison.doc-%07d", i)] = "permanent"
	}
	id := n.Submit(enginetest.Script(vars), 20)
	n.WantEnd(id, mapreduce.JobComplete)

	all, err := n.ListUnits(t.Context(), mapreduce.ListUnitsQuery{Job: id, PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var want []mapreduce.UnitID
	for _, u := range all.Units {
		if u.State == mapreduce.UnitFailed {
			want = append(want, u.ID)
		}
	}
	if len(want) != 5 {
		t.Errorf("%d units have failed, want 5", len(want))
	}

	for size := 1; size <= 6; size++ {
		var got []mapreduce.UnitID
		q := mapreduce.ListUnitsQuery{Job: id, States: []mapreduce.UnitState{mapreduce.UnitFailed}, PageSize: size}
		for more := true; more; more = q.PageToken != "" {
			page, err := n.ListUnits(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Units) > size {
				t.Errorf("a page of %d units, want at most %d", len(page.Units), size)
			}
			for _, u := range page.Units {
				got = append(got, u.ID)
			}
			q.PageToken = page.NextPageToken
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in pages of %d (-all +failed):\n%s", size, diff)
		}
	}
}
