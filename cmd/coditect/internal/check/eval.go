package check

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/internal/outcome/eval"
)

// evalFlags are the flags of eval.
type evalFlags struct {
	result, truth, schema, baseline string
	normalise, html                 string
	list, reviewed                  bool
}

func (cmds *commands) evalCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval --result FILE --truth FILE",
		Short: "Compare a result with the truth: precision, recall and F1 of each field",
		Long: `Eval compares the records of a result.json with a truth file of JSON lines,
{"document": …, field: value, …}. Eval normalises values by the types of the schema
before it compares them; without --schema it guesses the types. It is an error if the
result does not have a document of the truth, or if the schema lacks one of its fields.

For precision and recall the output has 95 % confidence intervals. --errors lists each value
that is wrong, missing, unverified or spurious, with its quotes. Unverified is a value that
stands under _unverified: the record lacks it, so recall counts it as missing. --html writes a page that shows these
values beside the truth. --baseline names the result of an earlier run, and shows which
values became right or wrong. Its p is the probability of so large a difference by chance
alone (McNemar's exact test).

A result is compared with what its job found. With --reviewed, what people have decided about values
(see _reviewed in result.json) is the truth, and other values do not count. --truth then names another
result.json, or a file that "review --truth" has written.

The reliability table shows whether confidences can be trusted. For each range of
confidence it has the mean confidence beside the share of values that are right.`,
		Example: `  coditect mapreduce eval --result results/result.json --truth truth.jsonl --schema schema.yaml
  coditect mapreduce eval --result new/result.json --baseline old/result.json --truth truth.jsonl --errors`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.reviewed && f.truth == "" {
				f.truth = f.result
			}
			if err := program.RequireFlags(cmd, "result"); err != nil {
				return err
			}
			if f.truth == "" {
				return exit.UsageError("--truth: is missing; give a file with the true values, or --reviewed for what people have decided")
			}
			return cmds.evaluate(cmd.Context(), &f)
		},
	}

	flags := cmd.Flags()
	flags.StringVar(&f.result, "result", "", "`file` result.json of a job")
	flags.StringVar(&f.truth, "truth", "", "`file` of JSON lines with the true values")
	flags.StringVar(&f.schema, "schema", "", "`file` with the schema of the job")
	flags.StringVar(&f.baseline, "baseline", "", "`file` result.json to compare the result with")
	flags.StringVar(&f.normalise, "normalise", "default", "rules by which texts are compared: default, squad or kleister")
	flags.BoolVar(&f.reviewed, "reviewed", false, "the truth is what people have decided about values: those of --truth, or of --result itself; no others count")
	flags.BoolVar(&f.list, "errors", false, "list the values that are wrong, missing, unverified or spurious")
	flags.StringVar(&f.html, "html", "", "`file` for a page that shows these values beside the truth")

	for _, name := range []string{"result", "truth", "schema", "baseline", "html"} {
		_ = cmd.MarkFlagFilename(name) // the flag exists
	}
	return cmd
}

// An evaluation is what eval prints.
type evaluation struct {
	eval.Report
	Changes map[string]eval.Change `json:"changes,omitempty"`
}

func (cmds *commands) evaluate(ctx context.Context, f *evalFlags) error {
	normalise, ok := eval.Normalisations()[f.normalise]
	if !ok {
		return exit.UsageError("--normalise: must be default, squad or kleister, not %q", f.normalise)
	}

	var s *schema.Schema
	if f.schema != "" {
		var err error
		if s, err = console.ReadSchema(ctx, f.schema); err != nil {
			return err
		}
	}

	var truth []eval.Truth
	err := openBounded("--truth", f.truth, func(r io.Reader) (err error) {
		if f.reviewed {
			truth, err = eval.ReadReviewed(f.truth, r)
		} else {
			truth, err = eval.ReadTruth(f.truth, r)
		}
		return err
	})
	if err != nil {
		return err
	}

	report, err := compareResult("--result", f.result, s, truth, normalise, f.reviewed)
	if err != nil {
		return err
	}

	e := evaluation{Report: report}
	if f.baseline != "" {
		first, err := compareResult("--baseline", f.baseline, s, truth, normalise, f.reviewed)
		if err != nil {
			return err
		}
		e.Changes = eval.Changes(first, report)
	}

	if f.html != "" {
		if err := writePage(f.html, e); err != nil {
			return err
		}
	}

	return cmds.PrintData(e, func() {
		cmds.printScores(e.Report)
		cmds.printChanges(e.Changes)
		if f.list {
			cmds.printErrors(e.Errors)
		}
	})
}

// maxEvalFile bounds the files of eval, which it holds in memory.
const maxEvalFile = 2 << 30

// openBounded calls read with a file that is no device and not too large.
func openBounded(flag, name string, read func(io.Reader) error) error {
	info, err := os.Stat(name) // before it is opened: a pipe would wait for its writer
	switch {
	case err != nil:
		return exit.RefusedError("%s: %w", flag, err)
	case !info.Mode().IsRegular():
		return exit.RefusedError("%s: %s is no file", flag, name)
	case info.Size() > maxEvalFile:
		return exit.RefusedError("%s: %s has %d bytes; at most %d are read", flag, name, info.Size(), maxEvalFile)
	}

	in, err := os.Open(name)
	if err != nil {
		return exit.RefusedError("%s: %w", flag, err)
	}
	defer in.Close()

	if err := read(io.LimitReader(in, maxEvalFile)); err != nil {
		return exit.RefusedError("%s: %w", flag, err)
	}
	return nil
}

// compareResult reads a result and compares it with the truth.
func compareResult(flag, name string, s *schema.Schema, truth []eval.Truth, normalise eval.Normalisation, some bool) (report eval.Report, err error) {
	var results []eval.Result
	var others []string
	err = openBounded(flag, name, func(r io.Reader) (err error) {
		results, others, err = eval.ReadResultFile(name, r)
		return err
	})
	if err != nil {
		return report, err
	}

	if err := eval.CheckNames(s, results, others, truth); err != nil {
		return report, exit.RefusedError("--truth: %w", err)
	}
	if some { // only values that people have decided about have a truth
		results = eval.Within(results, truth)
	}
	return eval.CompareBy(s, results, truth, normalise), nil
}

// printChanges prints what got better and worse.
func (cmds *commands) printChanges(changes map[string]eval.Change) {
	if len(changes) == 0 {
		return
	}
	fmt.Fprintln(cmds.Stdout)
	cmds.PrintTable("FIELD F1_BEFORE F1 BETTER WORSE P", func(row func(...any)) {
		for _, name := range slices.Sorted(maps.Keys(changes)) {
			c := changes[name]
			row(name, fmt.Sprintf("%.4f", c.F1First), fmt.Sprintf("%.4f", c.F1), c.Better, c.Worse, probability(c.P))
		}
	})
}

// probability returns a probability as text. A small one is not shown as 0.
func probability(p float64) string {
	if p < 0.0001 {
		return "<0.0001"
	}
	return fmt.Sprintf("%.4f", p)
}

// printErrors lists the values that differ from the truth.
func (cmds *commands) printErrors(all []eval.Difference) {
	for _, d := range all {
		fmt.Fprintf(cmds.Stdout, "\n%s %s: %s\n", d.Kind, console.VisibleText(d.Document), console.VisibleText(d.Field))
		if d.Truth != nil {
			fmt.Fprintf(cmds.Stdout, "  truth %s\n", console.VisibleText(shown(d.Truth)))
		}

		if d.Kind == eval.KindUnverified {
			fmt.Fprintf(cmds.Stdout, "  under _unverified %s: %s\n", console.VisibleText(shown(d.Found)), console.VisibleText(reason(d)))
		} else if d.Found != nil {
			fmt.Fprintf(cmds.Stdout, "  found %s, confidence %.2f\n", console.VisibleText(shown(d.Found)), d.Confidence)
		}
		for _, quote := range d.Quotes {
			fmt.Fprintf(cmds.Stdout, "  quote %s\n", console.VisibleText(quote))
		}
	}
}

// reason returns why a value is unverified.
func reason(d eval.Difference) string {
	if d.Constraint == "" {
		return "its quote is not in the document"
	}
	return d.Constraint + ": " + d.Message
}

// shown returns a value as JSON; null as nothing.
func shown(v any) string {
	if v == nil {
		return ""
	}
	b, _ := json.Marshal(v) // it was decoded from JSON
	return string(b)
}

//go:embed eval.html.tmpl
var pageSource string

// writePage writes the differences as a page.
func writePage(name string, e evaluation) error {
	page, err := template.New("eval").Funcs(template.FuncMap{"shown": shown, "reason": reason, "probability": probability}).Parse(pageSource)
	if err != nil {
		return err
	}

	var b bytes.Buffer
	if err := page.Execute(&b, e); err != nil {
		return err
	}

	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		return exit.RefusedError("--html: %w", err)
	}
	return nil
}

func (cmds *commands) printScores(r eval.Report) {
	cmds.PrintTable("FIELD PRECISION RECALL F1 SUPPORT", func(row func(...any)) {
		score := func(name string, s eval.Score) {
			row(name, fmt.Sprintf("%.4f", s.Precision), fmt.Sprintf("%.4f", s.Recall), fmt.Sprintf("%.4f", s.F1), s.Support)
		}

		for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
			score(name, r.Fields[name])
		}
		score("(micro)", r.Micro)
		score("(macro)", r.Macro)
	})

	d := r.Documents
	fmt.Fprintf(cmds.Stdout, "%s in the truth, %d of which the result has; %d of the result not in the truth\n", plural.Count(d.Truth, "document"), d.Found, d.Unknown)
	cmds.printCounts(r)
	if r.Calibration != nil {
		cmds.printCalibration(r.Calibration)
	}
}

// printCounts prints how many values of each field differ, and the bounds of its scores.
func (cmds *commands) printCounts(r eval.Report) {
	counts := make(map[string]map[eval.Kind]int)
	for _, d := range r.Errors {
		if counts[d.Field] == nil {
			counts[d.Field] = make(map[eval.Kind]int)
		}
		counts[d.Field][d.Kind]++
	}

	fmt.Fprintln(cmds.Stdout)
	cmds.PrintTable("FIELD WRONG MISSING UNVERIFIED SPURIOUS PRECISION_95% RECALL_95%", func(row func(...any)) {
		for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
			c, in := counts[name], r.Intervals[name]
			row(name, c[eval.Wrong], c[eval.Missing], c[eval.KindUnverified], c[eval.Spurious], fmt.Sprintf("%.2f-%.2f", in.Precision[0], in.Precision[1]), fmt.Sprintf("%.2f-%.2f", in.Recall[0], in.Recall[1]))
		}
	})
}

// printCalibration prints the reliability table.
func (cmds *commands) printCalibration(c *eval.Calibration) {
	fmt.Fprintln(cmds.Stdout)
	cmds.PrintTable("CONFIDENCE VALUES MEAN RIGHT", func(row func(...any)) {
		for _, b := range c.Bins {
			row(fmt.Sprintf("%.1f-%.1f", b.From, b.To), b.Values, fmt.Sprintf("%.3f", b.Confidence), fmt.Sprintf("%.3f", b.Accuracy))
		}
	})

	fmt.Fprintf(cmds.Stdout, "expected calibration error %.3f over %s", c.Error, plural.Count(c.Values, "value"))
	for i, name := range slices.Sorted(maps.Keys(c.Fields)) {
		sep := "; "
		if i > 0 {
			sep = ", "
		}
		fmt.Fprintf(cmds.Stdout, "%s%s %.3f", sep, name, c.Fields[name])
	}
	fmt.Fprintln(cmds.Stdout)
}
