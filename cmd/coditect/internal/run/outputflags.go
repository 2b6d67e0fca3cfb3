package run

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/records"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
	"github.com/coditect/mapreduce/cmd/coditect/internal/show"
)

// outputFlags are the flags that say what becomes of a result.
type outputFlags struct {
	dir           string // "" for the default
	formats       []string
	citations     bool
	noReport      bool
	failOnSkipped bool
	print         console.Choice
}

// addFlags adds the flags of commands that run jobs and write their results.
func (o *outputFlags) addFlags(cmd *cobra.Command) {
	o.addFlagsFor(cmd, "how the job ended (`result -o json` prints all of its result)")
}

// addFlagsFor adds the flags of commands that write results. With -o json they print what
// ofJSON says.
func (o *outputFlags) addFlagsFor(cmd *cobra.Command, ofJSON string) {
	f := cmd.Flags()
	f.StringVar(&o.dir, "output", "", "`folder` for the results (default results/JOB_ID)")
	f.StringSliceVar(&o.formats, "format", nil, "also write the records to records.csv, records.jsonl, records.json or records.parquet; `FORMAT` is csv, jsonl, json or parquet; may be repeated")
	f.BoolVar(&o.citations, "citations", false, "with --format or -o: add the citation of each value to the records")
	f.BoolVar(&o.noReport, "no-report", false, "do not write report.md and report.html")
	o.print = console.NewChoice(string(console.Text), string(console.Text), string(console.JSON), records.JSONL, records.CSV, records.Parquet)
	f.VarP(&o.print, "print", "o", "what to print: text; json, "+ofJSON+"; or the records as jsonl, csv or parquet")

	_ = cmd.MarkFlagDirname("output") // the flag exists
	console.OfferWords(cmd, "format", records.Formats()...)
	console.OfferWords(cmd, "print", o.print.Of...)
}

// addSkipped adds the flag that makes skipped documents count as failures.
func (o *outputFlags) addSkipped(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.failOnSkipped, "fail-on-skipped", false, "exit with code 3 if documents were skipped, as if units had failed")
}

// printed returns the format of the records to print, or "" if none are printed.
func (o *outputFlags) printed() string {
	if slices.Contains(records.Formats(), o.print.Value) && o.print.Value != records.JSON {
		return o.print.Value
	}
	return ""
}

// apply checks the flags, and sets the format of what else is printed.
func (o *outputFlags) apply(p *program.Program) error {
	for _, format := range o.formats {
		if !slices.Contains(records.Formats(), format) {
			return exit.UsageError("--format: %q is no format of records; the formats are %s", format, strings.Join(records.Formats(), ", "))
		}
	}

	slices.Sort(o.formats)
	o.formats = slices.Compact(o.formats)

	p.Format = console.Text
	if o.print.Value == string(console.JSON) {
		p.Format = console.JSON
	}

	if o.printed() == records.Parquet && p.StdoutTerminal {
		return exit.UsageError("-o parquet: this is no text for a terminal; redirect it to a file")
	}
	if o.citations && len(o.formats) == 0 && o.printed() == "" {
		return exit.UsageError("--citations: needs --format, or -o with a format of records")
	}
	return nil
}

// checkFolder refuses a folder that cannot be written to. The default folder is below the
// one checked.
func (o *outputFlags) checkFolder() error {
	if o.dir == "" {
		return folder.Check(filepath.Join(defaultOutput, "job"))
	}
	return folder.Check(o.dir)
}

// defaultOutput holds the folders of results, by the id of their jobs.
const defaultOutput = "results"

// folderOf returns the folder of a job's result.
func (o *outputFlags) folderOf(id mapreduce.JobID) string {
	if o.dir == "" {
		return filepath.Join(defaultOutput, string(id))
	}
	return o.dir
}

// remembered returns where this command writes, as its job remembers it for a resume. Without
// --output that is the folder that holds one for each job, with a separator at its end.
func (o *outputFlags) remembered() (mapreduce.Output, error) {
	dir, end := o.dir, ""
	if dir == "" {
		dir, end = defaultOutput, string(filepath.Separator)
	}

	whole, err := filepath.Abs(dir)
	if err != nil {
		return mapreduce.Output{}, err
	}
	if whole += end; len(whole) > mapreduce.MaxFolder {
		whole = "" // then a resume needs --output again
	}

	return mapreduce.Output{Folder: whole, Formats: o.formats, Citations: o.citations, NoReport: o.noReport}, nil
}

// recall takes from a job where its run wrote, for each flag that was not given. A job of a
// server remembers what any of its clients chose, so only folders below the current one are
// taken from there. The note says what was not taken.
func (o *outputFlags) recall(job *mapreduce.Job, flags *pflag.FlagSet, remote bool) (note string) {
	was := &job.Spec.Output
	if !flags.Changed("format") {
		o.formats = slices.DeleteFunc(slices.Clone(was.Formats), func(f string) bool { return !slices.Contains(records.Formats(), f) })
	}
	if !flags.Changed("citations") {
		o.citations = was.Citations
	}
	if !flags.Changed("no-report") {
		o.noReport = was.NoReport
	}
	if o.dir != "" || was.Folder == "" {
		return ""
	}

	dir := filepath.Clean(was.Folder)
	if strings.HasSuffix(was.Folder, string(filepath.Separator)) {
		dir = filepath.Join(dir, string(job.ID))
	}

	// A folder below the current one may be written to, whoever named it.
	if here, err := filepath.Abs("."); err == nil {
		if below, err := filepath.Rel(here, dir); err == nil && filepath.IsLocal(below) {
			o.dir = below
			return ""
		}
	}
	if remote {
		return "the job was submitted with --output " + console.ShellQuote(dir) + ", which is not below the current folder; give that flag to write there"
	}
	o.dir = dir
	return ""
}

// configFor returns what to write of a job.
func (o *outputFlags) configFor(id mapreduce.JobID) results.Config {
	return results.Config{
		Dir: o.folderOf(id), Job: id, Formats: o.formats, Citations: o.citations, NoReport: o.noReport,
	}
}

// configWith returns the same, with pictures of pages in the report if they can be drawn.
func (o *outputFlags) configWith(p *program.Program, id mapreduce.JobID) (results.Config, error) {
	c := o.configFor(id)
	if o.noReport {
		return c, nil
	}
	pages, err := p.Runners.PageDrawer()
	if pages != nil {
		c.Pages = pages
	}
	return c, err
}

// printResult prints the result of a job as -o asks: its records, or for json all of
// result.json.
func (o *outputFlags) printResult(ctx context.Context, p *program.Program, s *program.Session, c results.Config) error {
	if format := o.printed(); format != "" {
		_, _, err := results.PrintRecords(ctx, s, c, format, p.Data())
		return err
	}
	_, err := results.PrintResult(ctx, s, c, p.Stdout)
	return err
}

// printEnd prints how a job ended: on standard error if its records are on standard
// output.
func (o *outputFlags) printEnd(p *program.Program, j *mapreduce.Job, end show.End) error {
	if o.printed() == "" {
		return show.PrintEnd(p, j, end)
	}
	aside := *p
	aside.Stdout = p.Stderr
	return show.PrintEnd(&aside, j, end)
}

// exitCode returns the exit code for a job, in whose result constraints of the schema are
// broken. A constraint that the records of several units break together makes no unit of a
// strict job fail. A guess breaks nothing: the record lacks a value.
func (o *outputFlags) exitCode(j *mapreduce.Job, broken []mapreduce.BrokenConstraint) int {
	code := exit.OfJob(j)
	breaksSchema := func(b mapreduce.BrokenConstraint) bool {
		return b.Constraint != mapreduce.LeastConfidence && b.Constraint != mapreduce.SeenOnly
	}

	if code == exit.Complete && j.Spec.StrictSchema && slices.ContainsFunc(broken, breaksSchema) {
		return exit.Partly
	}
	if code == exit.Complete && o.failOnSkipped && j.Coverage.Documents.Skipped > 0 {
		return exit.Partly
	}
	return code
}

// words returns the flags that write the same results on another command line.
func (o *outputFlags) words() string {
	var line strings.Builder
	if o.dir != "" {
		line.WriteString(" --output " + console.ShellQuote(o.dir))
	}
	if len(o.formats) > 0 {
		line.WriteString(" --format " + strings.Join(o.formats, ","))
	}
	if o.citations {
		line.WriteString(" --citations")
	}
	if o.noReport {
		line.WriteString(" --no-report")
	}

	return line.String()
}
