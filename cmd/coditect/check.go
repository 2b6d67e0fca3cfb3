package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/worker/eval"
)

// A finding is one thing that doctor found.
type finding struct {
	Job     mapreduce.JobID `json:"job_id,omitempty"`
	Key     string          `json:"key,omitempty"`
	Message string          `json:"message"`
}

// String returns the finding on one line.
func (f finding) String() string {
	where := strings.TrimSpace(string(f.Job) + " " + visibleText(f.Key))
	if where != "" {
		where += ": "
	}
	return where + visibleText(f.Message)
}

// A diagnosis is what doctor prints.
type diagnosis struct {
	OK       bool      `json:"ok"`
	Findings []finding `json:"findings"`
	Checked  []string  `json:"checked"`
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check every record, index, counter and hash of the store",
		Long: `Doctor reads the whole store and changes nothing. It names each damaged file, says
which data it cannot read for that reason, and checks the rest. It exits with 1 if it
finds something wrong.`,
		Example: `  coditect mapreduce doctor
  coditect mapreduce doctor --data-dir /var/lib/coditect -o json
  coditect mapreduce doctor --store fdb:/etc/foundationdb/fdb.cluster --store-prefix prod`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.hasNoData() {
				return a.printDiagnosis(&diagnosis{OK: true, Checked: []string{"there is no store in " + a.global.location.dir}})
			}
			err := a.withReader(cmd.Context(), func(s *session) error { return a.examineStore(cmd.Context(), s) })
			if errors.Is(err, store.ErrCorrupt) { // it cannot even be opened
				return a.printDiagnosis(&diagnosis{Findings: []finding{{Message: err.Error()}}})
			}
			return err
		},
	}
}

func (a *app) examineStore(ctx context.Context, s *session) error {
	d := diagnosis{OK: true}
	err := s.CheckStore(ctx, func(f mapreduce.Finding) error {
		if f.Severity == mapreduce.Info {
			d.Checked = append(d.Checked, f.Message)
			return nil
		}
		d.OK = false
		d.Findings = append(d.Findings, finding{Job: f.Job, Key: f.Key, Message: f.Message})
		return nil
	})
	if err != nil {
		return err
	}
	return a.printDiagnosis(&d)
}

func (a *app) printDiagnosis(d *diagnosis) error {
	if d.Findings == nil {
		d.Findings = []finding{}
	}
	if d.Checked == nil {
		d.Checked = []string{}
	}
	err := a.printData(d, func() {
		for _, line := range d.Checked {
			fmt.Fprintln(a.stdout, visibleText(line))
		}
		for _, f := range d.Findings {
			fmt.Fprintln(a.stdout, "WRONG "+f.String())
		}
		if d.OK {
			fmt.Fprintln(a.stdout, "nothing is wrong")
		} else {
			fmt.Fprintf(a.stdout, "%d things are wrong\n", len(d.Findings))
		}
	})
	if err == nil && !d.OK {
		return exitWith(exitFailed)
	}
	return err
}

func (a *app) evalCommand() *cobra.Command {
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
			if err := requireFlags(cmd, "result", "truth"); err != nil {
				return err
			}
			report, err := compareFiles(cmd.Context(), schemaFile, result, truth)
			if err != nil {
				return err
			}
			return a.printData(report, func() { a.printScores(report) })
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
		if s, err = readSchema(ctx, schemaFile); err != nil {
			return eval.Report{}, err
		}
	}
	found, err := os.Open(result)
	if err != nil {
		return eval.Report{}, usageError("--result: %w", err)
	}
	defer found.Close()
	records, err := eval.ReadResult(result, found)
	if err != nil {
		return eval.Report{}, usageError("--result: %w", err)
	}
	right, err := os.Open(truth)
	if err != nil {
		return eval.Report{}, usageError("--truth: %w", err)
	}
	defer right.Close()
	truths, err := eval.ReadTruth(truth, right)
	if err != nil {
		return eval.Report{}, usageError("--truth: %w", err)
	}
	return eval.Compare(s, records, truths), nil
}

func (a *app) printScores(r eval.Report) {
	a.printTable("FIELD PRECISION RECALL F1 SUPPORT", func(row func(...any)) {
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
	fmt.Fprintf(a.stdout, "%d documents in the truth, %d of them in the result; %d of the result are not in the truth\n", d.Truth, d.Found, d.Unknown)
	if r.Calibration != nil {
		a.printCalibration(r.Calibration)
	}
}

// printCalibration prints the reliability table.
func (a *app) printCalibration(c *eval.Calibration) {
	fmt.Fprintln(a.stdout)
	a.printTable("CONFIDENCE VALUES MEAN RIGHT", func(row func(...any)) {
		for _, b := range c.Bins {
			row(fmt.Sprintf("%.1f-%.1f", b.From, b.To), b.Values, fmt.Sprintf("%.3f", b.Confidence), fmt.Sprintf("%.3f", b.Accuracy))
		}
	})
	fmt.Fprintf(a.stdout, "expected calibration error %.3f over %d values", c.Error, c.Values)
	for i, name := range slices.Sorted(maps.Keys(c.Fields)) {
		sep := "; "
		if i > 0 {
			sep = ", "
		}
		fmt.Fprintf(a.stdout, "%s%s %.3f", sep, name, c.Fields[name])
	}
	fmt.Fprintln(a.stdout)
}
