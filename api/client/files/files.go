// Package files is for programs that use the service with folders and files: it submits
// the documents of a folder as a job, waits for the end of the job, and writes its records.
// result.json is written by client.Client.GetResultFile.
package files

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/document"
)

// A Job is a job over the documents of a folder.
type Job struct {
	// Folder has the documents: its files, and those of folders in it, but hidden ones.
	// Needed. It may also be the path of one file.
	Folder string
	// Schema describes the records that are wanted, as JSON or YAML. Defaults to
	// Spec.Schema.
	Schema []byte
	// Spec has the other settings. Zero values have the defaults of the service.
	Spec mapreduce.JobSpec
	// Formats are those that documents may have; each has a package below
	// worker/document. Needed. Those that are not plain text are parsed by workers, which
	// have to know them too. A file of several documents, such as JSON lines or an
	// archive, is skipped.
	Formats *document.Registry
	// Include and Exclude choose files, as globs over paths relative to Folder. They
	// default to all and to none.
	Include, Exclude []string
	// MaxBytes bounds a document; a larger one is skipped. Defaults to
	// document.DefaultMaxBytes.
	MaxBytes int64
}

// Submit submits a job. A file that cannot be processed is a skipped document of the job,
// with the reason. Submit returns errs.Invalid, with the field, if the schema is none, if
// there is nothing to read, or if the service refuses the job.
func Submit(ctx context.Context, c mapreduce.Client, j Job) (*mapreduce.Job, error) {
	spec := j.Spec
	if len(j.Schema) > 0 {
		s, err := schema.Parse("schema", j.Schema)
		if err != nil {
			return nil, errs.Field("schema", "%w", err)
		}
		spec.Schema = s.Canonical()
	}
	return c.SubmitJob(ctx, spec, j.Documents(ctx))
}

// Documents yields the documents of the folder, sorted by name. It holds one at a time. An
// error ends them.
func (j Job) Documents(ctx context.Context) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		if j.Formats == nil {
			yield(nil, errs.Field("formats", "are missing: name those that documents may have"))
			return
		}

		readable, why := 0, "no file was found, and hidden ones do not count"
		for e, err := range document.Walk(ctx, []string{j.Folder}, document.WalkOptions{
			Include: j.Include, Exclude: j.Exclude, MaxBytes: j.MaxBytes, Formats: j.Formats,
		}) {
			if err != nil {
				yield(nil, walkError(ctx, err))
				return
			}

			d := j.read(ctx, e)
			if d.Skip == "" {
				readable++
			} else {
				why = fmt.Sprintf("every file is skipped, the last is %s: %s", e.Name, d.Skip)
			}
			if !yield(d, nil) {
				return
			}
		}

		if readable == 0 {
			yield(nil, errs.Field("documents", "there is nothing to read in %s: %s", j.Folder, why))
		}
	}
}

func walkError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errs.Field("documents", "%w", err)
}

// read returns the document in a file, or a skipped one with the reason.
func (j Job) read(ctx context.Context, e document.Entry) *mapreduce.Document {
	d := &mapreduce.Document{ID: mapreduce.DocumentID(e.ID), Skip: e.Skip, Size: max(0, e.Size)}
	if d.Skip != "" {
		d.ID = d.ID[:min(len(d.ID), mapreduce.MaxDocumentID)]
		return d
	}

	if err := j.fill(ctx, e, d); err != nil {
		d.Skip, d.Content = err.Error(), nil
		if refused, ok := errors.AsType[*document.RefusedError](err); ok {
			d.Skip = refused.Reason
		}
	}
	return d
}

// fill reads a file into d. Plain text is decoded; a worker parses all else.
func (j Job) fill(ctx context.Context, e document.Entry, d *mapreduce.Document) error {
	f, err := os.Open(e.Path)
	if err != nil {
		return err
	}
	defer f.Close()

	// One byte more than that shows a file that is too large.
	most := cmp.Or(j.MaxBytes, document.DefaultMaxBytes)
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return err
	}

	kind, err := j.Formats.Detect(e.Name, data, "")
	if err != nil {
		return err
	}

	format, _ := j.Formats.Format(kind)
	switch {
	case format.Parse == nil:
		return document.Refuse("a file of several documents: submit each of them")
	case int64(len(data)) > most:
		return document.Refuse("too large: more than %d bytes", most)
	}

	d.MediaType, d.Content, d.Size = format.MediaTypes[0], data, int64(len(data))

	if format.Plain {
		text, err := j.Formats.Parse(ctx, document.Input{Name: e.Name, Content: bytes.NewReader(data)})
		if err != nil {
			return err
		}
		d.Content = []byte(text.Text)
	}
	return nil
}

// Wait waits until a job does not run, and returns it: its State says whether it is
// complete, or why it stands. If the server goes away meanwhile, Wait returns
// errs.Unavailable, and may be called again.
func Wait(ctx context.Context, c mapreduce.Client, id mapreduce.JobID) (last *mapreduce.Job, err error) {
	err = c.WatchJob(ctx, id, func(j *mapreduce.Job) error {
		last = j
		return nil
	})
	if err != nil {
		return nil, err
	}
	return last, nil
}

// WriteRecords writes the records of a complete job to out as they come, each on a line of
// JSON.
func WriteRecords(ctx context.Context, c mapreduce.Client, id mapreduce.JobID, out io.Writer) error {
	lines, whole := bufio.NewWriterSize(out, 64<<10), false
	err := c.GetResult(ctx, id, false, func(p *mapreduce.ResultPart) error {
		whole = whole || p.Summary != nil
		if p.Record == nil {
			return nil
		}

		var line bytes.Buffer
		if err := json.Compact(&line, p.Record); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		line.WriteByte('\n')
		_, err := lines.Write(line.Bytes())
		return err
	})

	// The summary is the last part.
	if err == nil && !whole {
		err = errs.New(errs.Unavailable, "the result of job %s ended before its last part", id)
	}
	return errors.Join(err, lines.Flush())
}
