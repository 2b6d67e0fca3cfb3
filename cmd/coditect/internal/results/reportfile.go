package results

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
)

// reportOutput returns the output whose report gets a file of its own, as the pipeline of a job
// says, if there is one.
func reportOutput(spec *mapreduce.JobSpec) (pipeline.Output, bool) {
	p, err := pipeline.Preset(spec.Pipeline)
	if len(spec.Definition) > 0 {
		p, err = pipeline.Parse("pipeline", spec.Definition)
	}
	if err != nil { // of a job of another version
		return pipeline.Output{}, false
	}
	return p.ReportFile()
}

// writeReportFile writes the report alone, as the pipeline asks: its text and its references.
// The name of the file follows from that: the same report has the same name, and no report
// replaces another one, whatever else the folder has.
func (w *writer) writeReportFile(context.Context) error {
	output, ok := reportOutput(&w.job.Spec)
	if !ok || w.report.written == nil || w.config.Partial {
		return nil
	}

	v, err := w.report.buildView()
	if err != nil {
		return err
	}

	var text bytes.Buffer
	m := &markdownPage{out: &text}
	m.writeText(w.report.written, v)
	if m.err != nil {
		return m.err
	}

	sum := sha256.Sum256(text.Bytes())
	code := strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))

	// A name that another file has becomes longer by a character of the code.
	for more := 0; more < len(code); more++ {
		name := output.FileName(code, more)
		there, err := os.ReadFile(filepath.Join(w.dir.Path(), name))
		if err == nil && !bytes.Equal(there, text.Bytes()) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // something else has the name
		}
		return w.dir.WriteFile(name, func(out *folder.File) error {
			_, err := out.Write(text.Bytes())
			return err
		})
	}
	return fmt.Errorf("every name for the report that %s allows is taken in %s", output.File, w.dir.Path())
}
