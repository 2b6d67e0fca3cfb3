package check

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/files"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/worker/eval"
)

func (a *commands) evalCommand() *cobra.Command {
	var result, truth, schemaFile string
	cmd := &cobra.Command{
		Use:   "eval --result FILE --truth FILE",
		Short: "Compare a result with the truth: precision, recall and F1 of each field",
		Long: `Eval compares the records of a result.json with a truth file of JSON lines,
{"document": …, field: value, …}. Eval normalises values by the types of the schema
before it compares them; without --schema it guesses the types.

The reliability table shows how far confidences can be trusted. For each range of
confidence it has the mean confidence beside the share of values that are right.`,
		Example: `  coditect mapreduce eval --result results/result.json --truth truth.jsonl --schema schema.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := program.RequireFlags(cmd, "result", "truth"); err != nil {
				return err
			}
			report, err := compareFiles(cmd.Context(), schemaFile, result, truth)
			if err != nil {
				return err
			}
			return a.PrintData(report, func() { a.printScores(report) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&result, "result", "", "`file` result.json of a job")
	f.StringVar(&truth, "truth", "", "`file` of JSON lines with the true values")
	f.StringVar(&schemaFile, "schema", "", "`file` with the schema of the job")
	for _, name := range []string{"result", "truth", "schema"} {
		_ = cmd.MarkFlagFilename(name) // the flag exists
	}
	return cmd
}

// compareFiles reads the files and compares them.
func compareFiles(ctx context.Context, schemaFile, result, truth string) (eval.Report, error) {
	var s *schema.Schema
	if schemaFile != "" {
		var err error
		if s, err = files.ReadSchema(ctx, schemaFile); err != nil {
			return eval.Report{}, err
		}
	}
	found, err := os.Open(result)
	if err != nil {
		return eval.Report{}, exit.RefusedError("--result: %w", err)
	}
	defer found.Close()
	records, err := eval.ReadResult(result, found)
	if err != nil {
		return eval.Report{}, exit.RefusedError("--result: %w", err)
	}
	right, err := os.Open(truth)
	if err != nil {
		return eval.Report{}, exit.RefusedError("--truth: %w", err)
	}
	defer right.Close()
	truths, err := eval.ReadTruth(truth, right)
	if err != nil {
		return eval.Report{}, exit.RefusedError("--truth: %w", err)
	}
	return eval.Compare(s, records, truths), nil
}

func (a *commands) printScores(r eval.Report) {
	a.PrintTable("FIELD PRECISION RECALL F1 SUPPORT", func(row func(...any)) {
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
	fmt.Fprintf(a.Stdout, "%d documents in the truth, %d of them in the result; %d of the result are not in the truth\n", d.Truth, d.Found, d.Unknown)
	if r.Calibration != nil {
		a.printCalibration(r.Calibration)
	}
}

// printCalibration prints the reliability table.
func (a *commands) printCalibration(c *eval.Calibration) {
	fmt.Fprintln(a.Stdout)
	a.PrintTable("CONFIDENCE VALUES MEAN RIGHT", func(row func(...any)) {
		for _, b := range c.Bins {
			row(fmt.Sprintf("%.1f-%.1f", b.From, b.To), b.Values, fmt.Sprintf("%.3f", b.Confidence), fmt.Sprintf("%.3f", b.Accuracy))
		}
	})
	fmt.Fprintf(a.Stdout, "expected calibration error %.3f over %d values", c.Error, c.Values)
	for i, name := range slices.Sorted(maps.Keys(c.Fields)) {
		sep := "; "
		if i > 0 {
			sep = ", "
		}
		fmt.Fprintf(a.Stdout, "%s%s %.3f", sep, name, c.Fields[name])
	}
	fmt.Fprintln(a.Stdout)
}
