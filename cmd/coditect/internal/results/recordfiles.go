package results

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/records"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
)

// recordFiles are the files in which records are written for other programs.
type recordFiles struct {
	files []*folder.File // of the result
	print *folder.File   // a scratch file of what is printed; nil if nothing is
	all   *records.Collector
}

// newRecordFiles creates the files of the formats that are wanted.
func (w *writer) newRecordFiles() (*recordFiles, error) {
	c, err := recordConfig(w.job, w.config.Citations)
	if err != nil {
		return nil, err
	}

	f := &recordFiles{}
	var writers []records.Writer
	add := func(format string, out *folder.File) error {
		to, err := records.NewWriter(format, out, c)
		writers = append(writers, to)
		return err
	}

	for _, format := range w.config.Formats {
		out, err := w.dir.Create("records." + format)
		if err != nil {
			return nil, err
		}
		f.files = append(f.files, out)
		if err := add(format, out); err != nil {
			return nil, err
		}
	}

	if format := w.config.Print; format != "" {
		if f.print, err = w.dir.CreateScratch(".printed"); err != nil {
			return nil, err
		}
		if err := add(format, f.print); err != nil {
			return nil, err
		}
	}

	f.all = records.NewCollector(writers...)
	return f, nil
}

// recordConfig returns what to write of the records of a job.
func recordConfig(job *mapreduce.Job, citations bool) (records.Config, error) {
	c := records.Config{Citations: citations, Seen: job.Spec.See() != mapreduce.SeeNever}
	if len(job.Spec.Schema) == 0 {
		return c, nil
	}
	var err error
	c.Schema, err = schema.Parse("schema", job.Spec.Schema)
	return c, err
}

func (f *recordFiles) addPart(p *mapreduce.ResultPart) error {
	if len(f.files) == 0 && f.print == nil {
		return nil
	}
	return f.all.AddPart(p)
}

// close writes the ends of the files, and closes those of the result. It returns the file
// to be printed; nil if there is none.
func (f *recordFiles) close() (printed io.ReadCloser, err error) {
	err = f.all.Close()
	for _, out := range f.files {
		err = errors.Join(err, out.CloseDurably())
	}
	if f.print == nil || err != nil {
		return nil, err
	}
	return f.print.Keep()
}

// PrintRecords writes the records of a job's result in a format of package records, as
// they come. Of c, Job, Partial and Citations count. It returns the job and the summary
// of its result.
func PrintRecords(ctx context.Context, s Service, c Config, format string, out io.Writer) (*mapreduce.Job, *mapreduce.Summary, error) {
	job, err := s.GetJob(ctx, c.Job)
	if err != nil {
		return nil, nil, err
	}

	how, err := recordConfig(job, c.Citations)
	if err != nil {
		return nil, nil, err
	}

	buffer := bufio.NewWriterSize(out, 64<<10)
	w, err := records.NewWriter(format, buffer, how)
	if err != nil {
		return nil, nil, err
	}

	all := records.NewCollector(w)
	var summary *mapreduce.Summary
	err = s.GetResult(ctx, c.Job, c.Partial, func(p *mapreduce.ResultPart) error {
		if p.Summary != nil {
			summary = p.Summary
		}
		return all.AddPart(p)
	})
	// A stream without its last part is not complete.
	if err == nil && summary == nil {
		err = resultfile.ErrEndedEarly
	}
	if err != nil {
		return nil, nil, err
	}
	return job, summary, errors.Join(all.Close(), buffer.Flush())
}

// PrintResult writes result.json. Only the end of the stream decides its form, so it is collected
// in a folder for temporary files first.
func PrintResult(ctx context.Context, s Service, c Config, out io.Writer) (*mapreduce.Job, error) {
	c = c.withDefaults()
	job, err := s.GetJob(ctx, c.Job)
	if err != nil {
		return nil, err
	}
	scratch, err := folder.NewScratch()
	if err != nil {
		return nil, err
	}
	defer scratch.Discard() //nolint:errcheck // it is of use to nobody

	w := &writer{service: s, config: c, job: job, dir: scratch}

	sections, err := w.newSections()
	if err != nil {
		return nil, err
	}

	add := func(p *mapreduce.ResultPart) error {
		_, err := sections.AddPart(p)
		return err
	}
	if err := s.GetResult(ctx, c.Job, c.Partial, add); err != nil {
		return nil, err
	}

	to := bufio.NewWriterSize(out, 64<<10)
	return job, errors.Join(sections.WriteFile(to, w.shownJob()), to.Flush())
}
