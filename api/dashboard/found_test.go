package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
)

// A vast is a large job of whose units each has found a record, but for every third, and one in a hundred two. Its result
// has as many records.
type vast struct {
	*stub
	looked, took int // units that were listed, and parts of the result
}

func (v *vast) ListUnits(_ context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	var level, from int
	if _, err := fmt.Sscanf(q.PageToken, "%d:%d:0", &level, &from); err != nil {
		return nil, err
	}

	page := &mapreduce.UnitPage{NextPageToken: fmt.Sprintf("0:%d:0", from+q.PageSize)}
	for i := from; i < from+q.PageSize; i++ {
		u := &mapreduce.Unit{ID: mapreduce.UnitID(fmt.Sprint("unit-", i)), Job: q.Job, Index: int64(i), State: mapreduce.Pending}
		if i%3 > 0 {
			u.State, u.Output = mapreduce.UnitComplete, []byte(fmt.Sprint(i))
		}
		page.Units = append(page.Units, u)
	}
	v.looked += len(page.Units)
	return page, nil
}

func (v *vast) GetResult(_ context.Context, _ mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error {
	if partial {
		return fmt.Errorf("all units are merged")
	}
	for i := range 10_000 {
		v.took++
		if err := sink(&mapreduce.ResultPart{Record: fmt.Appendf(nil, `{"total": %d, "_sources": ["d"], "_citations": {"total": ["R"]}}`, i)}); err != nil {
			return err
		}
		if err := sink(&mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: "R", Unit: "u", Document: "d", Start: int64(i), End: int64(i + 1)}}); err != nil {
			return err
		}
	}
	return nil
}

// decodeVast reads the output of a unit of a vast job, whose references are its own.
func decodeVast(_ *mapreduce.Job, u *mapreduce.Unit) (*jobs.Output, error) {
	one := fmt.Sprintf(`{"total": %s, "_sources": ["doc-%[1]s"], "_citations": {"total": ["R"]}}`, u.Output)
	if u.Index%100 == 1 {
		one = "[" + one + "," + one + "]"
	}
	return &jobs.Output{Records: one, Citations: []jobs.CitedPassage{{Ref: "R", Citation: resultfile.Citation{
		Unit: u.ID, Document: "doc", Start: u.Index, End: u.Index + 1,
	}}}}, nil
}

// TestRecordsOfALargeJob: the first page of records of a large job reads no more of it than it shows: of a job that goes on
// what its units have found, each with its passage, and of one that is complete its result.
func TestRecordsOfALargeJob(t *testing.T) {
	for _, c := range []struct {
		state        mapreduce.JobState
		query        string
		rows         int
		says         []string
		looked, took int // at most
	}{
		{mapreduce.Mapping, "", 100, []string{"100 of the next 100 records", "start=2&amp;unit=unit-2#", "from=0%3A147%3A0", "before=100"}, 200, 0},
		{mapreduce.Mapping, "?from=0%3A149%3A0&before=100", 100, []string{`data-key="101"`, "start=149&amp;unit=unit-149#"}, 200, 0},
		{mapreduce.Mapping, "?q=4999&whole=1", 1, []string{"1 of the next 3\u202f367 records", "doc-4999", "from=0%3A5000%3A0"}, 5_000, 0},
		{mapreduce.JobComplete, "", 100, []string{"Of more than 100 records.", "count=1", "start=99&amp", "page=1"}, 0, 102},
		{mapreduce.JobComplete, "?page=2&whole=1", 100, []string{"Of more than 300 records.", `data-key="201"`, "page=1", "page=3"}, 0, 302},
		{mapreduce.JobComplete, "?count=1&whole=1", 100, []string{"10\u202f000 of 10\u202f000 records."}, 0, 10_000},
		{mapreduce.JobComplete, "?sort=total&order=descending&whole=1", 100, []string{"10\u202f000 of 10\u202f000 records.", ">9999<"}, 0, 10_000},
	} {
		t.Run(c.state.String()+c.query, func(t *testing.T) {
			v := &vast{stub: newStub("plain")}
			v.job.TotalUnits, v.job.State = 1_000_000, c.state
			server := open(t, v.stub, func(config *dashboard.Config) { config.Jobs, config.Decode = v, decodeVast })
			status, html, _ := get(t, server.URL+"/jobs/"+string(jobID)+"/records"+c.query)
			if rows := strings.Count(html, "<tr data-key="); status != http.StatusOK || rows != c.rows {
				t.Errorf("status %d, %d records, want %d", status, rows, c.rows)
			}
			for _, want := range c.says {
				if !strings.Contains(html, want) {
					t.Errorf("the page lacks %s", want)
				}
			}
			if t.Failed() {
				t.Log(html)
			}
			if v.looked > c.looked || v.took > c.took {
				t.Errorf("%d units and %d records were read, want at most %d and %d", v.looked, v.took, c.looked, c.took)
			}
		})
	}
}
