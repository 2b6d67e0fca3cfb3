package input

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
)

// JobPrefix marks an input that is a finished job, before its id. A file of such a name
// is given with its folder, as ./job:x.
const JobPrefix = "job:"

// A Service is the part of mapreduce.Client that the records of jobs are read from.
type Service interface {
	GetJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error)
	GetResult(ctx context.Context, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error
}

var _ Service = mapreduce.Client(nil)

// Jobs returns the jobs among the inputs.
func (c Config) Jobs() []mapreduce.JobID {
	var ids []mapreduce.JobID
	for _, name := range c.Inputs {
		if id, ok := strings.CutPrefix(name, JobPrefix); ok {
			ids = append(ids, mapreduce.JobID(id))
		}
	}
	return ids
}

// paths returns the inputs that are not jobs.
func (c Config) paths() []string {
	var paths []string
	for _, name := range c.Inputs {
		if !strings.HasPrefix(name, JobPrefix) {
			paths = append(paths, name)
		}
	}
	return paths
}

func (c Config) checkJobNames() error {
	named := make(map[mapreduce.JobID]bool)
	for _, id := range c.Jobs() {
		if !id.Valid() {
			return errs.Field("input", "%q is not the id of a job; to name a file, write ./%s%s", id, JobPrefix, id)
		}
		if named[id] {
			return errs.Field("input", "names job %s twice", id)
		}
		named[id] = true
	}
	return nil
}

// CheckJobs returns an error if one of the jobs among the inputs does not exist, or is
// not complete and Partial is not set.
func CheckJobs(ctx context.Context, c Config) error {
	for _, id := range c.Jobs() {
		job, err := c.Service.GetJob(ctx, id)
		switch {
		case errs.KindOf(err) == errs.NotFound:
			return errs.Field("input", "no job has the id %q", id)
		case err != nil:
			return err
		case job.State != mapreduce.JobComplete && !c.Partial:
			return errs.Field("input", "job %s is %s, not complete; --partial reads what it has found so far", id, job.State)
		}
	}
	return nil
}

// readJob passes on the records of a job.
func (r *reader) readJob(ctx context.Context, id mapreduce.JobID, take func(source) error) error {
	all := &records{reader: r, job: id, take: take, waiting: make(map[string][]*pending)}
	var refused error // by addPart, whatever the service makes of it
	err := r.config.Service.GetResult(ctx, id, r.config.Partial, func(p *mapreduce.ResultPart) error {
		refused = all.addPart(p)
		return refused
	})

	if err = cmp.Or(refused, err); err != nil {
		return err
	}
	if err := all.passOn(true); err != nil {
		return err
	}

	if all.n == 0 {
		return errs.Field("input", "job %s has found no records, so that there is nothing to read in it", id)
	}
	return nil
}

// records turns the parts of a result into documents. It holds the records whose
// citations have not all come yet. Those of a record come right behind it; those of
// the elements of a value come behind the last of them.
type records struct {
	reader  *reader
	job     mapreduce.JobID
	take    func(source) error
	n       int64 // records so far
	held    []*pending
	waiting map[string][]*pending // held records, by the references that have not come
}

// A pending is a record that waits for its citations.
type pending struct {
	record    *resultfile.Record
	number    int64 // in the result, from 1
	missing   int   // citations that have not come
	citations map[string]*mapreduce.Citation
}

func (r *records) addPart(p *mapreduce.ResultPart) error {
	switch {
	case p.Record != nil:
		return r.addRecord(p.Record)
	case p.Citation != nil:
		for _, one := range r.waiting[p.Citation.Ref] {
			one.citations[p.Citation.Ref] = p.Citation
			one.missing--
		}
		delete(r.waiting, p.Citation.Ref)
		return r.passOn(false)
	}
	return nil
}

func (r *records) addRecord(data []byte) error {
	r.n++
	record, err := resultfile.ParseRecord(data)
	if err != nil {
		return errs.New(errs.DataLoss, "record %d of job %s: %v", r.n, r.job, err)
	}

	refs := record.Refs()
	one := &pending{record: record, number: r.n, missing: len(refs), citations: make(map[string]*mapreduce.Citation, len(refs))}
	for _, ref := range refs {
		r.waiting[ref] = append(r.waiting[ref], one)
	}

	r.held = append(r.held, one)
	return r.passOn(false)
}

// passOn passes on the first of the held records, as far as their citations have come;
// at the end of the result, all of them.
func (r *records) passOn(end bool) error {
	for len(r.held) > 0 && (end || r.held[0].missing == 0) {
		one := r.held[0]
		r.held = r.held[1:]

		d, err := r.documentOf(one)
		if err != nil {
			return err
		}

		if err := r.reader.roster.add(string(d.ID), origin{}); err != nil {
			return err
		}
		if err := r.take(source{id: string(d.ID), read: func() *mapreduce.Document { return d }}); err != nil {
			return err
		}
	}
	return nil
}

// documentOf returns a record as a document. Its metadata leads back to what the record
// rests on.
func (r *records) documentOf(p *pending) (*mapreduce.Document, error) {
	number := strconv.FormatInt(p.number, 10)
	d := &mapreduce.Document{ID: mapreduce.DocumentID(JobPrefix + string(r.job) + "#" + number)}

	text := p.record.Text()
	if strings.TrimSpace(text) == "" {
		d.Skip = "no text: all fields of the record are null"
		return d, nil
	}

	via, err := p.record.Encode(r.job, p.number, p.citations)
	if err != nil {
		return nil, err
	}

	d.MediaType, d.Content, d.Size = "text/plain", []byte(text), int64(len(text))
	d.Metadata = map[string]string{"job_id": string(r.job), "record": number, mapreduce.MetadataVia: via}
	return d, nil
}
