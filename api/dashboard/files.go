package dashboard

import (
	"io"
	"net/http"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
)

// An Export writes the records of a result in a form of its own.
type Export func(out io.Writer, job *mapreduce.Job, read resultfile.Reader) error

// sendFile sends the result of a job as a file.
func (d *Dashboard) sendFile(w http.ResponseWriter, r *http.Request) error {
	v := d.visit(r)
	id, err := v.Job()
	if err != nil {
		return err
	}

	j, err := v.Jobs.GetJob(v, id)
	if err != nil {
		return err
	}

	name := v.Names("file")
	read := func(sink func(*mapreduce.ResultPart) error) error {
		return v.Jobs.GetResult(v, id, j.State != mapreduce.JobComplete, sink)
	}
	export := d.config.Exports[strings.TrimPrefix(name, "records.")]
	switch {
	case name == "result.json":
		export = func(out io.Writer, _ *mapreduce.Job, read resultfile.Reader) error {
			return resultfile.Write(out, read)
		}
	case name == truthFile || name == examplesFile:
		export = reviewExport(v, name)
	case !strings.HasPrefix(name, "records.") || export == nil:
		return errs.New(errs.NotFound, "there is no file %s of a job", name)
	}

	out := &download{w: w, name: string(id) + "-" + name}
	if err := export(out, j, read); err != nil {
		if !out.began {
			return err
		}
		panic(http.ErrAbortHandler) // the browser must see that the file is not whole
	}
	return nil
}

// A download is a file that begins with its first bytes, so that what goes wrong before is said on
// a page.
type download struct {
	w     http.ResponseWriter
	name  string
	began bool
}

// Write implements io.Writer.
func (d *download) Write(p []byte) (int, error) {
	if !d.began {
		d.began = true
		d.w.Header().Set("Content-Type", "application/octet-stream")
		d.w.Header().Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
	}
	return d.w.Write(p)
}
