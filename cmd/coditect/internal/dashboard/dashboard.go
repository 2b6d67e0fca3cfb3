// Package dashboard fits the pages of api/dashboard to this program: it reads outputs of units
// and files that people upload, and writes records in the forms of the command line.
package dashboard

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/dashboard/drawn"
	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/records"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/jsonform"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
)

// Config returns the configuration of the pages, but for who answers them. Parses says that this
// process has workers, which parse files in it. Draw draws pages of documents; nil if nothing does.
func Config(version string, formats *document.Registry, parses bool, draw drawn.Draw) *dashboard.Config {
	c := &dashboard.Config{
		Version: version, Draw: draw, Decode: decode, Bench: benchTools(formats, parses),
		Content: func(ctx context.Context, name string, data []byte) (string, []byte, error) {
			return content(ctx, formats, name, data)
		},
		Exports: make(map[string]dashboard.Export),
	}

	for _, format := range records.Formats() {
		c.Exports[format] = func(out io.Writer, job *mapreduce.Job, read resultfile.Reader) error {
			return export(format, out, job, read)
		}
	}
	return c
}

// decode reads the output of a unit.
func decode(job *mapreduce.Job, u *mapreduce.Unit) (*jobs.Output, error) {
	unpacker, err := jsonform.NewUnpacker(job)
	if err != nil {
		return nil, err
	}
	extract, err := unpacker.Unpack(u)
	if err != nil {
		return nil, err
	}

	o := &jobs.Output{Notes: extract.Notes}
	if len(extract.Data) > 0 {
		var indented bytes.Buffer
		if err := json.Indent(&indented, extract.Data, "", "  "); err != nil {
			return nil, err
		}
		o.Records = indented.String()
	}
	if len(extract.Citations) > 0 {
		if err := json.Unmarshal(extract.Citations, &o.Citations); err != nil {
			return nil, err
		}
	}
	if u.Kind != mapreduce.KindParse {
		o.Calls, err = payload.CallsOf(u.Output)
	}
	return o, err
}

// content says what a file is: plain text is decoded, and every other format stays as it is, for
// a worker to parse.
func content(ctx context.Context, formats *document.Registry, name string, data []byte) (mediaType string, sent []byte, err error) {
	kind, err := formats.Detect(name, data, "")
	if err != nil {
		return "", nil, plainReason(err)
	}

	format, _ := formats.Format(kind)
	switch {
	case format.Parse == nil:
		return "", nil, errors.New("a file of several documents: unpack it, and choose each of them")
	case !format.Plain:
		return format.MediaTypes[0], data, nil
	}

	text, err := formats.Parse(ctx, document.Input{Name: name, Content: bytes.NewReader(data)})
	if err != nil {
		return "", nil, plainReason(err)
	}
	return format.MediaTypes[0], []byte(text.Text), nil
}

// plainReason returns an error whose text is the reason of a refusal, for people.
func plainReason(err error) error {
	if refused, ok := errors.AsType[*document.RefusedError](err); ok {
		return errors.New(refused.Reason)
	}
	return err
}

// export writes the records of a job in one of the forms of the command line.
func export(format string, out io.Writer, job *mapreduce.Job, read resultfile.Reader) error {
	c := records.Config{Seen: job.Spec.See() != mapreduce.SeeNever}
	if len(job.Spec.Schema) > 0 {
		var err error
		if c.Schema, err = schema.Parse("schema", job.Spec.Schema); err != nil {
			return err
		}
	}

	buffer := bufio.NewWriterSize(out, 64<<10)
	w, err := records.NewWriter(format, buffer, c)
	if err != nil {
		return err
	}

	all := records.NewCollector(w)
	if err := read(all.AddPart); err != nil {
		return errors.Join(err, all.Close())
	}
	return errors.Join(all.Close(), buffer.Flush())
}
