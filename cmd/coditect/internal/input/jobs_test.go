package input_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/input"
)

const chainedJob = mapreduce.JobID("mr_20260101_a1b2c3")

// A result is a service that has one job with one result.
type result struct {
	state mapreduce.JobState
	parts []*mapreduce.ResultPart
}

func (r result) GetJob(_ context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	if id != chainedJob {
		return nil, errs.New(errs.NotFound, "no job has the id %q", id)
	}
	return &mapreduce.Job{ID: id, State: r.state}, nil
}

func (r result) GetResult(ctx context.Context, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error {
	job, err := r.GetJob(ctx, id)
	if err != nil {
		return err
	}
	if job.State != mapreduce.JobComplete && !partial {
		return errs.New(errs.Precondition, "job %s is %s", id, job.State)
	}
	for _, p := range slices.Concat([]*mapreduce.ResultPart{{Job: job}}, r.parts, []*mapreduce.ResultPart{{Summary: &mapreduce.Summary{}}}) {
		if err := sink(p); err != nil {
			return errs.New(errs.Internal, "the client: %v", err) // as a service may word it
		}
	}
	return nil
}

func recordPart(text string) *mapreduce.ResultPart {
	return &mapreduce.ResultPart{Record: []byte(text)}
}

func citationPart(ref string, doc mapreduce.DocumentID) *mapreduce.ResultPart {
	return &mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: ref, Document: doc, Start: 3, End: 7, ByteStart: 4, ByteEnd: 8, Quote: "9.50", Grade: "exact"}}
}

func chained(inputs ...string) input.Config {
	return input.Config{Formats: formats(), Inputs: append(inputs, "job:"+string(chainedJob))}
}

// TestRecordsOfJobs reads results in the orders in which services stream them: the
// citations of records right behind each, those of the elements of a value behind all.
func TestRecordsOfJobs(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parts []*mapreduce.ResultPart
		want  map[string]string   // texts, or reasons to skip, by the end of the id
		via   map[string][]string // cited documents likewise
	}{
		{
			"records",
			[]*mapreduce.ResultPart{
				recordPart(`{"shop":"Größe","total":9.50,"_citations":{"total":["REF_00000001"]},"_sources":["a"]}`), citationPart("REF_00000001", "a"),
				recordPart(`{"shop":null,"_citations":{}}`),
				recordPart(`{"shop":"B","_citations":{"shop":["REF_00000002","REF_00000001"]}}`), citationPart("REF_00000001", "a"), citationPart("REF_00000002", "b"),
			},
			map[string]string{"#1": "shop: Größe\ntotal: 9.50\n", "#2": "no text: all fields of the record are null", "#3": "shop: B\n"},
			map[string][]string{"#1": {"a"}, "#3": {"a", "b"}},
		},
		{
			"elements of a value",
			[]*mapreduce.ResultPart{
				recordPart(`{"claim":"x [REF_00000001]"}`), recordPart(`"plain"`), recordPart(`{"claim":"y [REF_00000002, REF_00000001]"}`),
				citationPart("REF_00000001", "a"), citationPart("REF_00000002", "b"),
			},
			map[string]string{"#1": "claim: x [REF_00000001]\n", "#2": "plain\n", "#3": "claim: y [REF_00000002, REF_00000001]\n"},
			map[string][]string{"#1": {"a"}, "#3": {"a", "b"}},
		},
		{
			"one value, with a citation that is not there",
			[]*mapreduce.ResultPart{recordPart(`{"report":"# Title\n\nText [REF_00000001], [REF_00000003].","n":[1,2],"rows":[{"a":true},{"a":null,"b":"q"}]}`), citationPart("REF_00000001", "a")},
			map[string]string{"#1": "report: # Title\n\nText [REF_00000001], [REF_00000003].\nn: 1; 2\nrows:\n  -\n    a: true\n  -\n    b: q\n"},
			map[string][]string{"#1": {"a"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := chained(folder(t, map[string]string{"a.txt": "file"}))
			c.Service = result{mapreduce.JobComplete, tt.parts}
			docs, err := read(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			got, via := map[string]string{}, map[string][]string{}
			if docs[0].ID != "a.txt" {
				t.Errorf("the first document is %q, want the file", docs[0].ID)
			}
			for _, d := range docs[1:] {
				number := strings.TrimPrefix(string(d.ID), "job:"+string(chainedJob))
				got[number] = string(d.Content) + d.Skip
				if d.Skip != "" {
					continue
				}
				if "#"+d.Metadata["record"] != number || d.Metadata["job_id"] != string(chainedJob) {
					t.Errorf("document %s has the metadata %v", d.ID, d.Metadata)
				}
				v := resultfile.ViaOf(&mapreduce.Citation{End: 1 << 20, Via: d.Metadata[mapreduce.MetadataVia]})
				for _, ref := range slices.Sorted(maps.Keys(v.Citations)) {
					via[number] = append(via[number], string(v.Citations[ref].Document))
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("texts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.via, via); diff != "" {
				t.Errorf("cited documents (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJobsThatCannotBeRead(t *testing.T) {
	some := []*mapreduce.ResultPart{recordPart(`{"a":1}`)}
	for _, tt := range []struct {
		name    string
		service result
		inputs  []string
		partial bool
		want    string // "" for none
	}{
		{"complete", result{mapreduce.JobComplete, some}, []string{"job:" + string(chainedJob)}, false, ""},
		{"partial", result{mapreduce.Mapping, some}, []string{"job:" + string(chainedJob)}, true, ""},
		{"running", result{mapreduce.Mapping, some}, []string{"job:" + string(chainedJob)}, false, "not complete; --partial"},
		{"failed", result{mapreduce.JobFailed, some}, []string{"job:" + string(chainedJob)}, false, "is failed, not complete"},
		{"unknown", result{mapreduce.JobComplete, some}, []string{"job:mr_20260101_zzzzzz"}, false, `no job has the id "mr_20260101_zzzzzz"`},
		{"no id", result{mapreduce.JobComplete, some}, []string{"job:"}, false, `"" is not the id of a job`},
		{"twice", result{mapreduce.JobComplete, some}, []string{"job:" + string(chainedJob), "job:" + string(chainedJob)}, false, "twice"},
		{"empty", result{mapreduce.JobComplete, nil}, []string{"job:" + string(chainedJob)}, false, "has found no records"},
		{"damaged", result{mapreduce.JobComplete, []*mapreduce.ResultPart{recordPart(`{"a":`)}}, []string{"job:" + string(chainedJob)}, false, "record 1 of job"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := input.Config{Formats: formats(), Inputs: tt.inputs, Service: tt.service, Partial: tt.partial}
			err := input.Check(t.Context(), c)
			if err == nil {
				err = input.CheckJobs(t.Context(), c)
			}
			if err == nil {
				_, err = read(t.Context(), c)
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if c.Again() == tt.partial {
				t.Errorf("Again is %v for partial %v", c.Again(), tt.partial)
			}
		})
	}
}

// TestRecordsStopWithTheirReader ends a result early when no more documents are read.
func TestRecordsStopWithTheirReader(t *testing.T) {
	c := chained()
	parts := make([]*mapreduce.ResultPart, 10)
	for i := range parts {
		parts[i] = recordPart(fmt.Sprintf(`{"a":%d}`, i))
	}
	c.Service = result{mapreduce.JobComplete, parts}
	n := 0
	for _, err := range input.Documents(t.Context(), c) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d documents, want 3", n)
	}
	c.Service = failing{c.Service}
	if _, err := read(t.Context(), c); !errors.Is(err, errGone) {
		t.Errorf("error %v, want that of the service", err)
	}
}

var errGone = errors.New("gone")

// failing is a service whose results break off.
type failing struct{ input.Service }

func (f failing) GetResult(ctx context.Context, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error {
	return errors.Join(f.Service.GetResult(ctx, id, partial, sink), errGone)
}
