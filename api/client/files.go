package client

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
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/folder"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
)

// A FolderJob is a job over the documents of a folder.
type FolderJob struct {
	// Folder has the documents: its files, and those of folders in it, but hidden ones.
	// Needed. It may also be the path of one file.
	Folder string
	// Schema describes the records that are wanted, as JSON or YAML. Defaults to
	// Spec.Schema.
	Schema []byte
	// Spec has the other settings. Zero values have the defaults of the service.
	Spec mapreduce.JobSpec
	// Formats says what files are. A document that is not plain text is parsed by a worker,
	// which has to know its format too. Defaults to PlainText.
	Formats Formats
	// Include and Exclude choose files, as globs over paths relative to Folder. They
	// default to all and to none.
	Include, Exclude []string
	// MaxBytes bounds a document; a larger one is skipped. Defaults to
	// folder.DefaultMaxBytes.
	MaxBytes int64
}

// Formats says what files are.
type Formats interface {
	// Content returns the media type of a file and what the service is to get of it: plain
	// text in UTF-8, and the bytes of everything else. name is the path of the file relative
	// to its folder, with forward slashes. The text of an error says why the file is skipped.
	Content(ctx context.Context, name string, data []byte) (mediaType string, content []byte, err error)
}

// PlainText takes each file for plain text in UTF-8, and refuses one that is not.
type PlainText struct{}

// Content returns the text without a mark of its byte order.
func (PlainText) Content(_ context.Context, _ string, data []byte) (mediaType string, content []byte, err error) {
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", nil, errors.New("not plain text in UTF-8; Formats may read more")
	}
	return "text/plain", bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

// SubmitFolder submits a job. A file that cannot be processed is a skipped document of the job,
// with the reason. Submit returns errs.Invalid, with the field, if the schema is none, if
// there is nothing to read, or if the service refuses the job.
func SubmitFolder(ctx context.Context, c mapreduce.Client, j FolderJob) (*mapreduce.Job, error) {
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
func (j FolderJob) Documents(ctx context.Context) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		readable, why := 0, "no file was found, and hidden ones do not count"
		for e, err := range folder.Walk(ctx, []string{j.Folder}, folder.Options{
			Include: j.Include, Exclude: j.Exclude, MaxBytes: j.MaxBytes,
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
func (j FolderJob) read(ctx context.Context, e folder.Entry) *mapreduce.Document {
	d := &mapreduce.Document{ID: mapreduce.DocumentID(e.ID), Skip: e.Skip, Size: max(0, e.Size)}
	if d.Skip != "" {
		d.ID = d.ID[:min(len(d.ID), mapreduce.MaxDocumentID)]
		return d
	}

	if err := j.fill(ctx, e, d); err != nil {
		d.Skip, d.Content = err.Error(), nil
	}
	return d
}

// fill reads a file into d.
func (j FolderJob) fill(ctx context.Context, e folder.Entry, d *mapreduce.Document) error {
	f, err := os.Open(e.Path)
	if err != nil {
		return err
	}
	defer f.Close()

	// The file may have grown since its folder was listed.
	most := cmp.Or(j.MaxBytes, folder.DefaultMaxBytes)
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return err
	}
	if int64(len(data)) > most {
		return fmt.Errorf("too large: more than %d bytes", most)
	}

	formats := j.Formats
	if formats == nil {
		formats = PlainText{}
	}
	d.Size = int64(len(data))
	d.MediaType, d.Content, err = formats.Content(ctx, e.Name, data)
	return err
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
