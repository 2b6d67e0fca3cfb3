package dashboard_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// An observed answers as the service answers an observer.
type observed struct{ *stub }

var errObserver = errs.New(errs.Denied, "eve may not do this: it does not have the role viewer")

func (o observed) GetJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	job, err := o.stub.GetJob(ctx, id)
	if err != nil {
		return nil, err
	}
	return job.WithoutContents(), nil
}

func (o observed) ListUnits(ctx context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	page, err := o.stub.ListUnits(ctx, q)
	if err != nil {
		return nil, err
	}
	seen := *page
	seen.Units = slices.Clone(page.Units)
	for i := range seen.Units {
		seen.Units[i] = seen.Units[i].WithoutContents()
	}
	return &seen, nil
}

func (o observed) GetResult(context.Context, mapreduce.JobID, bool, func(*mapreduce.ResultPart) error) error {
	return errObserver
}

func (o observed) ReadText(context.Context, mapreduce.JobID, mapreduce.UnitID, mapreduce.DocumentID, func([]byte) error) error {
	return errObserver
}

// TestAnObserverSeesStates: pages that need no contents are there for an observer; the others
// say why they are not.
func TestAnObserverSeesStates(t *testing.T) {
	s := newStub("plain")
	s.change(func(j *mapreduce.Job) { j.Error = "Error quotes a document" })
	server := open(t, s, func(c *dashboard.Config) { c.Jobs = observed{s} })
	for _, page := range pagesOfAJob {
		status, body, _ := get(t, server.URL+page)
		want := http.StatusOK
		if strings.Contains(page, "/records") || strings.Contains(page, "/document") || strings.Contains(page, "/compare") {
			want = http.StatusForbidden
		}
		if status != want || strings.Contains(body, "quotes a document") {
			t.Errorf("%s: status %d, want %d:\n%s", page, status, want, body)
		}
		if want == http.StatusForbidden && !strings.Contains(body, "the role viewer") {
			t.Errorf("%s does not say what is lacking", page)
		}
	}
}
