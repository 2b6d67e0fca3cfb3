package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/show"
)

// Bounds of calls.
const (
	maxDocuments = 1000
	maxWait      = 300 // seconds
	maxRecords   = 100 // of one answer
	maxAnswer    = 128 << 10
	maxListed    = 20 // jobs
)

const instructions = `Coditect extracts structured data from many documents; every value has a checked citation.
Call submit with documents and a schema, then status with wait_seconds until the job is over, then result or search_results. A job goes on between calls, and its id stays good.`

// newServer returns a server of MCP over jobs.
func newServer(j *jobs, version string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "coditect", Title: "Coditect map-reduce", Version: cmp.Or(version, "unknown")}, &sdk.ServerOptions{
		Instructions: instructions, Capabilities: &sdk.ServerCapabilities{},
	})

	no := false
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &no}

	sdk.AddTool(s, &sdk.Tool{
		Name: "submit", Title: "Submit a job",
		Description: "Submits a job over documents and returns its status with its job_id at once; the job then runs. Pipelines: " + pipelineList() + ".",
		Annotations: &sdk.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no},
	}, j.submit)
	sdk.AddTool(s, &sdk.Tool{
		Name: "status", Title: "Show a job", Annotations: reads,
		Description: "Returns the state of a job: status (complete, failed, running …), units, tokens, cost, and what was skipped. With wait_seconds it returns when the job is over, or when that time is. Without job_id it lists the newest jobs.",
	}, j.status)
	sdk.AddTool(s, &sdk.Tool{
		Name: "result", Title: "Read a result", Annotations: reads,
		Description: "Returns records of a finished job with their citations: the quote, its document and place. next_offset says where to go on; a job that wrote a report has it under report.",
	}, j.result)
	sdk.AddTool(s, &sdk.Tool{
		Name: "search_results", Title: "Search in a result", Annotations: reads,
		Description: "Returns the records of a finished job that have most words of the query, in values or quotes, best first, with their citations.",
	}, j.search)

	return s
}

// pipelineList names the pipelines that come with the program.
func pipelineList() string {
	var all []string
	for _, p := range pipeline.Presets() {
		all = append(all, p.Name+" ("+p.Description+")")
	}
	return strings.Join(all, "; ")
}

type document struct {
	ID       string            `json:"id,omitempty" jsonschema:"unique name of the document, such as a file name; by default its number"`
	Text     string            `json:"text" jsonschema:"the whole text"`
	Metadata map[string]string `json:"metadata,omitempty" jsonschema:"travels with the document, such as title, author and year of a citation"`
}

type submission struct {
	Documents []document        `json:"documents,omitempty" jsonschema:"what the job reads, at most 1000"`
	Schema    any               `json:"schema,omitempty" jsonschema:"JSON Schema of a record, as an object or as text in JSON or YAML; needed by extract"`
	Pipeline  string            `json:"pipeline,omitempty" jsonschema:"name of a pipeline; extract by default"`
	Question  string            `json:"question,omitempty" jsonschema:"that the pipeline answers"`
	Topic     string            `json:"topic,omitempty" jsonschema:"that the pipeline is about; of compare it is the question"`
	Variables map[string]string `json:"variables,omitempty" jsonschema:"other inputs of the pipeline"`
	Budget    int64             `json:"budget,omitempty" jsonschema:"tokens that the job may spend, below what the operator allows"`
	RequestID string            `json:"request_id,omitempty" jsonschema:"name of this submission: the same name again gives the same job"`
}

// submit submits a job.
func (j *jobs) submit(ctx context.Context, _ *sdk.CallToolRequest, in submission) (*sdk.CallToolResult, any, error) {
	spec, err := j.specOf(&in)
	if err != nil {
		return nil, nil, err
	}
	docs, err := documentsOf(&in)
	if err != nil {
		return nil, nil, err
	}

	var job *mapreduce.Job
	err = j.do(ctx, func(c mapreduce.Client) (err error) {
		job, err = c.SubmitJob(ctx, spec, docs)
		return err
	})
	if err != nil {
		return nil, nil, err
	}

	return nil, show.StatusOf(job), j.goOn(ctx, job)
}

// specOf returns the job that an agent asks for. Its errors name the argument.
func (j *jobs) specOf(in *submission) (mapreduce.JobSpec, error) {
	spec := j.spec
	spec.Pipeline, spec.Vars = cmp.Or(in.Pipeline, "extract"), maps.Clone(j.spec.Vars)
	spec.RequestID = mapreduce.RequestID(cmp.Or(in.RequestID, "mcp_"+rand.Text())) // so that it can be sent again

	p, err := pipeline.Preset(spec.Pipeline)
	if err != nil {
		return spec, errs.Field("pipeline", "there is none named %.80q; there are %s", spec.Pipeline, pipelineList())
	}

	asked := map[string]string{"question": in.Question}
	topic, _ := p.TopicInput()
	topic = cmp.Or(topic, "topic") // which is no input then
	if in.Topic != "" && asked[topic] != "" {
		return spec, errs.Field("topic", "the topic of the pipeline %s is its question; give one of them", p.Name)
	}
	asked[topic] = cmp.Or(in.Topic, asked[topic])
	maps.DeleteFunc(asked, func(_, value string) bool { return value == "" })
	maps.Copy(asked, in.Variables)

	for _, name := range slices.Sorted(maps.Keys(asked)) { // settings of models are the operator's
		if _, ok := p.Inputs[name]; !ok {
			return spec, errs.Field("variables", "%.80q is no input of the pipeline %s, which has %s", name, p.Name, cmp.Or(strings.Join(slices.Sorted(maps.Keys(p.Inputs)), ", "), "none"))
		}
	}
	maps.Copy(spec.Vars, asked)

	switch {
	case in.Budget < 0:
		return spec, errs.Field("budget", "must be at least 1")
	case in.Budget > 0 && spec.Budget > 0 && in.Budget > spec.Budget:
		return spec, errs.Field("budget", "is more than the operator allows, which is %d tokens", spec.Budget)
	case in.Budget > 0:
		spec.Budget = in.Budget
	}

	if in.Schema != nil {
		if spec.Schema, err = schemaOf(in.Schema); err != nil {
			return spec, err
		}
	} else if p.NeedsSchema() {
		return spec, errs.Field("schema", "is missing: the pipeline %s needs one, a JSON Schema of a record", p.Name)
	}

	if err := j.runners.CheckRunnable(&spec, nil); err != nil {
		return spec, err
	}
	return spec, j.runners.CheckAccepted(spec)
}

// schemaOf reads a schema that is an object, or a text of one.
func schemaOf(given any) ([]byte, error) {
	data, isText := []byte(nil), false
	if text, ok := given.(string); ok {
		data, isText = []byte(text), true
	}
	if !isText {
		var err error
		if data, err = json.Marshal(given); err != nil {
			return nil, errs.Field("schema", "%w", err)
		}
	}

	s, err := schema.Parse("schema", data)
	if err != nil {
		return nil, errs.Field("schema", "%w", err)
	}
	return s.Canonical(), nil
}

// documentsOf returns the documents of a submission.
func documentsOf(in *submission) (iter.Seq2[*mapreduce.Document, error], error) {
	all := in.Documents
	switch {
	case len(all) > maxDocuments:
		return nil, errs.Field("documents", "there are %d; at most %d are accepted by this tool: `coditect mapreduce run` reads folders of any size", len(all), maxDocuments)
	case len(all) == 0 && in.Question != "" && cmp.Or(in.Pipeline, "extract") != "extract":
		all = []document{{ID: "question", Text: in.Question}} // such as of research, which brings its own texts
	case len(all) == 0:
		return nil, errs.Field("documents", "are missing")
	}

	return func(yield func(*mapreduce.Document, error) bool) {
		for i, d := range all {
			id := cmp.Or(d.ID, fmt.Sprintf("document-%d", i+1))
			if !yield(&mapreduce.Document{ID: mapreduce.DocumentID(id), Metadata: d.Metadata, Content: []byte(d.Text), Size: int64(len(d.Text))}, nil) {
				return
			}
		}
	}, nil
}

type statusQuestion struct {
	JobID string `json:"job_id,omitempty" jsonschema:"id of the job, or last for the newest"`
	Wait  int    `json:"wait_seconds,omitempty" jsonschema:"how long to wait for the end of the job, at most 300"`
}

// status returns the state of a job, or lists jobs.
func (j *jobs) status(ctx context.Context, r *sdk.CallToolRequest, in statusQuestion) (*sdk.CallToolResult, any, error) {
	if in.Wait < 0 || in.Wait > maxWait {
		return nil, nil, errs.Field("wait_seconds", "must be from 0 to %d", maxWait)
	}

	if in.JobID == "" {
		all, err := j.list(ctx, maxListed)
		return nil, map[string]any{"jobs": all}, err
	}

	id, err := j.find(ctx, in.JobID)
	if err != nil {
		return nil, nil, err
	}

	var job *mapreduce.Job
	err = j.do(ctx, func(c mapreduce.Client) (err error) {
		job, err = c.GetJob(ctx, id)
		return err
	})

	// A job that was left is continued first, or waiting for it would be in vain.
	if err == nil {
		err = j.goOn(ctx, job)
	}
	if err == nil && in.Wait > 0 {
		job, err = j.wait(ctx, r, id, time.Duration(in.Wait)*time.Second)
	}

	if err != nil {
		return nil, nil, err
	}
	return nil, show.StatusOf(job), nil
}

// goOn continues a job that an earlier process has left, if this one may spend what the
// job does: programs of agents start and end this one as they like.
func (j *jobs) goOn(ctx context.Context, job *mapreduce.Job) error {
	if !j.local || !job.State.Running() || job.Spec.Provider != cmp.Or(j.spec.Provider, mapreduce.DefaultProvider) || job.Spec.Model != j.spec.Model || !slices.Equal(job.Spec.Fallbacks, j.spec.Fallbacks) {
		return nil
	}

	if _, known := j.going.LoadOrStore(job.ID, true); known {
		return nil
	}

	return j.do(ctx, func(c mapreduce.Client) error {
		_, err := c.ResumeJob(ctx, job.ID, mapreduce.Resume{})
		if errs.KindOf(err) != errs.Precondition {
			return err
		}

		// The job may have ended since it was looked at: then there is nothing to go on with.
		if now, failed := c.GetJob(ctx, job.ID); failed == nil && !now.State.Running() {
			return nil
		}
		return err
	})
}

// errWaited ends a wait whose time is over.
var errWaited = errors.New("the time to wait is over")

// wait waits for the end of a job, and tells the agent how far it is.
func (j *jobs) wait(ctx context.Context, r *sdk.CallToolRequest, id mapreduce.JobID, most time.Duration) (last *mapreduce.Job, err error) {
	within, cancel := context.WithTimeoutCause(ctx, most, errWaited)
	defer cancel()

	token := r.Params.GetProgressToken()
	err = j.do(within, func(c mapreduce.Client) error {
		return c.WatchJob(within, id, func(job *mapreduce.Job) error {
			last = job
			if token == nil {
				return nil
			}
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ // an agent that does not listen still waits
				ProgressToken: token, Progress: float64(job.CompletedUnits + job.FailedUnits), Total: float64(job.TotalUnits), Message: job.Phase.String(),
			})
			return nil
		})
	})

	if err != nil && (last == nil || !errors.Is(context.Cause(within), errWaited)) {
		return nil, err
	}
	return last, nil
}

func (j *jobs) list(ctx context.Context, most int) (all []show.JobStatus, err error) {
	var page *mapreduce.JobPage
	err = j.do(ctx, func(c mapreduce.Client) (err error) {
		page, err = c.ListJobs(ctx, mapreduce.ListJobsQuery{PageSize: most})
		return err
	})
	if err != nil {
		return nil, err
	}

	for _, job := range page.Jobs {
		all = append(all, show.StatusOf(job))
	}
	return all, nil
}

// find returns the job that an agent names.
func (j *jobs) find(ctx context.Context, name string) (mapreduce.JobID, error) {
	if name != program.Last {
		if id := mapreduce.JobID(name); id.Valid() {
			return id, nil
		}
		return "", errs.Field("job_id", "%.80q is not the id of a job, which looks like mr_20260101_a1b2c3, nor last, the newest", name)
	}

	all, err := j.list(ctx, 1)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", errs.Field("job_id", "there are no jobs")
	}
	return all[0].ID, nil
}

type resultQuestion struct {
	JobID   string `json:"job_id" jsonschema:"id of the job, or last for the newest"`
	Offset  int    `json:"offset,omitempty" jsonschema:"number of the first record, from 0"`
	Limit   int    `json:"limit,omitempty" jsonschema:"most records, at most 100; 20 by default"`
	Partial bool   `json:"partial,omitempty" jsonschema:"of a job that is not over: what it has found so far"`
}

// A citation is a quote on which a value of a record rests.
type citation struct {
	Ref      string              `json:"ref"`
	Document string              `json:"document"`
	Quote    string              `json:"quote"`
	Start    int64               `json:"start"` // code points of the document's text
	End      int64               `json:"end"`
	Grade    string              `json:"grade"`
	Label    string              `json:"label,omitempty"`
	Location *mapreduce.Location `json:"location,omitempty"`
}

// A found record is one with its citations.
type found struct {
	Number    int             `json:"number"`
	Score     float64         `json:"score,omitempty"` // of a search: the share of the query's words
	Record    json.RawMessage `json:"record,omitempty"`
	Citations []citation      `json:"citations,omitempty"`
	TooLarge  bool            `json:"too_large,omitempty"` // for an answer; the result itself has it
}

func (f *found) size() int {
	n := len(f.Record)
	for _, c := range f.Citations {
		n += len(c.Quote) + len(c.Document) + len(c.Label) + 100
	}
	return n
}

// A resultPage is some records of a result.
type resultPage struct {
	JobID      mapreduce.JobID `json:"job_id"`
	Status     string          `json:"status"`
	Total      int             `json:"total_records"`
	Records    []*found        `json:"records"`
	NextOffset *int            `json:"next_offset"` // null at the end
	Report     json.RawMessage `json:"report,omitempty"`
	Note       string          `json:"note,omitempty"`
}

// read calls visit with each record of a result, in order. It returns the job and its
// report.
func (j *jobs) read(ctx context.Context, id mapreduce.JobID, partial bool, visit func(*found)) (job *mapreduce.Job, report []byte, err error) {
	var now *found
	number := 0

	err = j.do(ctx, func(c mapreduce.Client) error {
		// Records that were visited cannot be taken back, so a result is not read twice.
		if number > 0 || now != nil {
			return errs.New(errs.Unavailable, "the service went away in the middle of the result; ask again")
		}

		return c.GetResult(ctx, id, partial, func(p *mapreduce.ResultPart) error {
			switch {
			case p.Job != nil:
				job = p.Job
			case p.Record != nil:
				// The record before is whole now: citations come behind their record.
				if now != nil {
					visit(now)
				}
				now = &found{Number: number, Record: bytes.Clone(p.Record)}
				number++
			case p.Citation != nil && now != nil:
				q := p.Citation
				now.Citations = append(now.Citations, citation{Ref: q.Ref, Document: string(q.Document), Quote: q.Quote, Start: q.Start, End: q.End, Grade: q.Grade, Label: q.Label, Location: q.Location})
			case p.Report != nil:
				report = bytes.Clone(p.Report)
			}
			return nil
		})
	})

	if err == nil && now != nil {
		visit(now)
	}

	if err == nil && job == nil {
		err = errs.New(errs.Unavailable, "the result of job %s is not whole; ask again", id)
	}
	return job, report, err
}

// result returns records of a result.
func (j *jobs) result(ctx context.Context, _ *sdk.CallToolRequest, in resultQuestion) (*sdk.CallToolResult, any, error) {
	if in.Offset < 0 || in.Limit < 0 || in.Limit > maxRecords {
		return nil, nil, errs.Field("limit", "must be from 1 to %d, and offset at least 0", maxRecords)
	}

	id, err := j.find(ctx, in.JobID)
	if err != nil {
		return nil, nil, err
	}

	page, left, full := &resultPage{JobID: id, Records: []*found{}}, maxAnswer, false
	job, report, err := j.read(ctx, id, in.Partial, func(f *found) {
		page.Total++
		if f.Number < in.Offset || full {
			return
		}

		if len(page.Records) == cmp.Or(in.Limit, 20) || f.size() > left && len(page.Records) > 0 {
			full, page.NextOffset = true, &f.Number
			return
		}

		// A record that is larger than a whole answer is only named.
		if f.size() > left {
			f = &found{Number: f.Number, TooLarge: true}
		}

		left -= f.size()
		page.Records = append(page.Records, f)
	})
	if err != nil {
		return nil, nil, err
	}

	page.Status = job.State.String()
	switch {
	case len(report) > maxAnswer:
		page.Note = fmt.Sprintf("the report has %d bytes and is left out; `coditect mapreduce result %s` writes it", len(report), id)
	case in.Offset == 0:
		page.Report = report
	}
	return nil, page, nil
}

type searchQuestion struct {
	JobID string `json:"job_id" jsonschema:"id of the job, or last for the newest"`
	Query string `json:"query" jsonschema:"words to look for"`
	Limit int    `json:"limit,omitempty" jsonschema:"most records, at most 100; 10 by default"`
}

// search returns the records that have most words of a query.
func (j *jobs) search(ctx context.Context, _ *sdk.CallToolRequest, in searchQuestion) (*sdk.CallToolResult, any, error) {
	if in.Limit < 0 || in.Limit > maxRecords {
		return nil, nil, errs.Field("limit", "must be from 1 to %d", maxRecords)
	}

	q, err := newQuery(in.Query)
	if err != nil {
		return nil, nil, err
	}

	id, err := j.find(ctx, in.JobID)
	if err != nil {
		return nil, nil, err
	}

	page, most := &resultPage{JobID: id, Records: []*found{}}, cmp.Or(in.Limit, 10)
	job, _, err := j.read(ctx, id, true, func(f *found) {
		if f.Score = q.score(f); f.Score == 0 {
			return
		}
		page.Total++
		// The best records so far are kept in order, as many as were asked for.
		at, _ := slices.BinarySearchFunc(page.Records, f, func(a, b *found) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Number, b.Number)) })
		page.Records = slices.Insert(page.Records, at, f)
		page.Records = page.Records[:min(len(page.Records), most)]
	})
	if err != nil {
		return nil, nil, err
	}

	page.Status = job.State.String()
	left := maxAnswer
	for i, f := range page.Records {
		if left -= f.size(); left < 0 {
			page.Records[i] = &found{Number: f.Number, Score: f.Score, TooLarge: true}
		}
	}
	return nil, page, nil
}

// readCloser and writeCloser leave the streams of the process open.
type (
	readCloser  struct{ io.Reader }
	writeCloser struct{ io.Writer }
)

// Close does nothing.
func (readCloser) Close() error { return nil }

// Close does nothing.
func (writeCloser) Close() error { return nil }
