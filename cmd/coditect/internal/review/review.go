// Package review has the command that lists what is worth a person's look in a result, takes decisions about
// values from files, and writes what was decided.
package review

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/dashboard/review"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/reviewfile"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

// commands makes the command of this group.
type commands struct{ *program.Program }

// Commands returns the command of this group.
func Commands(p *program.Program) []*cobra.Command {
	c := &commands{p}
	return []*cobra.Command{c.reviewCommand()}
}

// flags are those of the command.
type flags struct {
	decide, export, truth, examples string
	part                            string
	sample                          int
	seed                            uint64
}

func (cmds *commands) reviewCommand() *cobra.Command {
	var id string
	var f flags
	cmd := &cobra.Command{
		Use:   "review JOB",
		Short: "List values that are worth a look, and decide about them",
		Long: `Of a job that runs, review lists the values that its units wait for (run --review, or the key review of a
stage): a unit goes on once each of its values is decided about. Of a complete job it lists those values of the
result that are most likely wrong, those first that are worth most: unverified ones, those with conflicts, fuzzy quotes or a low confidence, and missing ones that other
records have. --sample adds values that chance has chosen, of which the share of right ones is honest.

--export writes the list as a table (.csv) or as JSON lines (.jsonl). Fill in the column verdict (accept, correct,
reject, absent, withdraw) and, of a correction, the column value, and give the file to --decide. Rows without
a verdict are passed over, and so are those that are decided in the same way already: a file may be given again.
A row of which the job's value is not the one under model any more is refused.

--truth writes what was decided as the truth for "eval --reviewed", and --examples documents of which each field is
decided as examples for a stage of a pipeline. The page of the job does the same by keyboard, beside the document.`,
		Example: `  coditect mapreduce review last --export values.csv
  coditect mapreduce review last --decide values.csv
  coditect mapreduce review last --truth truth.jsonl --examples examples.yaml`,
	}

	look := cmds.OnJob(&id, func(ctx context.Context, s *program.Session, job mapreduce.JobID) error {
		return cmds.review(ctx, s, job, &f)
	})
	decide := cmds.MoveJob(&id, func(ctx context.Context, s *program.Session, job mapreduce.JobID) error {
		return cmds.review(ctx, s, job, &f)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for name, file := range map[string]string{"decide": f.decide, "export": f.export} {
			if file == "" {
				continue
			}
			if _, err := isTable(name, file); err != nil {
				return exit.UsageError("%w", err)
			}
		}
		if f.decide != "" {
			return decide(cmd, args)
		}
		return look(cmd, args)
	}

	cmds.AddJobID(cmd, &id)
	flags := cmd.Flags()
	flags.StringVar(&f.decide, "decide", "", "`file` of decisions (.csv or .jsonl) that are to be taken")
	flags.StringVar(&f.export, "export", "", "`file` (.csv or .jsonl) for the list")
	flags.StringVar(&f.truth, "truth", "", "`file` of JSON lines for what was decided to be right")
	flags.StringVar(&f.examples, "examples", "", "`file` of YAML for documents as examples of a pipeline")
	flags.IntVar(&f.sample, "sample", 0, "`number` of values that chance adds to the list")
	flags.Uint64Var(&f.seed, "seed", 1, "`number` that chooses the sample")
	flags.StringVar(&f.part, "part", "", "part of the records, such as 1/3 for the first of three people")
	for _, name := range []string{"decide", "export", "truth", "examples"} {
		_ = cmd.MarkFlagFilename(name) // the flag exists
	}
	return cmd
}

// review does what the flags ask for, and lists the queue if they ask for nothing.
func (cmds *commands) review(ctx context.Context, s *program.Session, id mapreduce.JobID, f *flags) error {
	j, err := s.GetJob(ctx, id)
	if err != nil {
		return err
	}
	parsed, err := schema.Parse("schema", j.Spec.Schema)
	if err != nil {
		return errs.New(errs.Precondition, "job %s has no schema, so there are no values to review", id)
	}

	if f.decide != "" {
		if err := cmds.decide(ctx, s, id, parsed, f.decide); err != nil {
			return err
		}
	}
	if f.truth != "" {
		err := replaceFile(f.truth, func(out io.Writer) error {
			return reviewfile.WriteTruth(out, parsed, func(sink func(*mapreduce.ResultPart) error) error { return s.GetResult(ctx, id, false, sink) })
		})
		if err != nil {
			return err
		}
	}
	if f.examples != "" {
		err := replaceFile(f.examples, func(out io.Writer) error {
			made, err := reviewfile.WriteExamples(ctx, out, s, j)
			if err == nil {
				fmt.Fprintln(cmds.Stderr, made)
			}
			return err
		})
		if err != nil {
			return err
		}
	}

	if f.export == "" && (f.decide != "" || f.truth != "" || f.examples != "") {
		return nil
	}
	return cmds.list(ctx, s, j, parsed, f)
}

// replaceFile writes a file once all of it is known: what goes wrong before leaves the old one.
func replaceFile(name string, write func(io.Writer) error) error {
	var out bytes.Buffer
	if err := write(&out); err != nil {
		return err
	}
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		return exit.RefusedError("%w", err)
	}
	return nil
}

// list prints the queue, or writes it to a file.
func (cmds *commands) list(ctx context.Context, s *program.Session, j *mapreduce.Job, parsed *schema.Schema, f *flags) error {
	choice := review.Choice{Seed: f.seed, Sample: f.sample}
	var err error
	if choice.Part, choice.Parts, err = review.ParsePart(f.part); err != nil {
		return exit.UsageError("--part: %w", err)
	}
	decisions, err := mapreduce.AllDecisions(ctx, s, j.ID)
	if err != nil {
		return err
	}

	b := review.NewBuilder(parsed, decisions, choice)
	if err := b.Read(ctx, s, j); err != nil {
		return err
	}
	q, err := b.Queue()
	if err != nil {
		return errs.New(errs.DataLoss, "the result cannot be shown: %w", err)
	}

	last := latest(decisions)
	rows := make([]Row, 0, len(q.Items))
	for i := range q.Items {
		note := ""
		if d := last[valueAt{q.Items[i].Record, q.Items[i].Field}]; d != nil && q.Items[i].Verdict != "" {
			note = d.Note
		}
		rows = append(rows, rowOf(&q.Items[i], note))
	}
	if f.export != "" {
		table, _ := isTable("export", f.export) // it was checked
		return replaceFile(f.export, func(out io.Writer) error { return writeRows(out, table, rows) })
	}
	return cmds.printQueue(q, rows)
}

// shownText bounds a value in the list for people, in characters.
const shownText = 40

func (cmds *commands) printQueue(q *review.Queue, rows []Row) error {
	out := struct {
		Items     []Row            `json:"items"`
		More      int              `json:"more"`
		Values    int              `json:"values"`
		Sample    review.Share     `json:"sample"`
		Agreement review.Agreement `json:"agreement"`
	}{rows, q.More, q.Values, q.Sample, q.Agreement}

	return cmds.PrintData(out, func() {
		cmds.PrintTable("RECORD FIELD VALUE WHY CONFIDENCE DOCUMENT VERDICT", func(row func(...any)) {
			for _, r := range rows {
				sure := "-"
				if r.Confidence != nil {
					sure = fmt.Sprintf("%.2f", *r.Confidence)
				}
				row(r.Record, console.VisibleText(r.Field), console.VisibleText(clip(string(r.Model))), r.Why, sure, console.VisibleText(string(r.Document)), cmp.Or(r.Verdict, "-"))
			}
		})
		fmt.Fprintf(cmds.Stdout, "%d of %d values are worth a look\n", len(rows)+q.More, q.Values)
		if s := q.Sample; s.Decided > 0 {
			fmt.Fprintf(cmds.Stdout, "of the sample, %d of %d decided values are right: between %.0f %% and %.0f %% of all, with a probability of 95 %%\n", s.Right, s.Decided, 100*s.Low, 100*s.High)
		}
		if a := q.Agreement; a.Values > 0 {
			fmt.Fprintf(cmds.Stdout, "two people agree about %d of %d values, kappa %.2f\n", a.Same, a.Values, a.Kappa)
		}
	})
}

func clip(text string) string {
	runes := []rune(text)
	if len(runes) <= shownText {
		return text
	}
	return string(runes[:shownText-1]) + "…"
}

// A valueAt names a value of a result.
type valueAt struct {
	record mapreduce.RecordID
	field  string
}

// latest returns the decision that counts of each value that somebody has decided about.
func latest(all []*mapreduce.Decision) map[valueAt]*mapreduce.Decision {
	last := make(map[valueAt]*mapreduce.Decision)
	for _, d := range all {
		at := valueAt{d.Record, d.Field}
		if had := last[at]; had == nil || had.Number < d.Number {
			last[at] = d
		}
	}
	return last
}

// maxFile bounds a file of decisions, in bytes.
const maxFile = 1 << 30

// A tally is what became of the rows of a file.
type tally struct {
	Decided   int      `json:"decided"`
	Unchanged int      `json:"unchanged"`
	Refused   []string `json:"refused"` // why, with the line
}

// decide takes the decisions of a file. Rows that the service refuses are told, and the others are taken.
func (cmds *commands) decide(ctx context.Context, s *program.Session, id mapreduce.JobID, parsed *schema.Schema, name string) error {
	before, err := mapreduce.AllDecisions(ctx, s, id)
	if err != nil {
		return err
	}
	file, err := os.Open(name)
	if err != nil {
		return exit.RefusedError("--decide: %w", err)
	}
	defer file.Close()

	done := tally{Refused: []string{}}
	last := latest(before)
	table, _ := isTable("decide", name) // it was checked
	err = readRows(io.LimitReader(file, maxFile), table, parsed, func(r *Row) error {
		return done.take(ctx, s, id, r, last, parsed)
	})
	if _, ofService := errors.AsType[*errs.Error](err); err != nil && !ofService {
		return exit.RefusedError("--decide: %s: %w", name, err)
	}
	if err != nil {
		return err
	}

	if err := cmds.PrintData(done, func() {
		fmt.Fprintf(cmds.Stdout, "decided: %d, as before: %d, refused: %d\n", done.Decided, done.Unchanged, len(done.Refused))
		for _, why := range done.Refused {
			fmt.Fprintln(cmds.Stdout, "  "+console.VisibleText(why))
		}
	}); err != nil {
		return err
	}
	if len(done.Refused) > 0 {
		return exit.RefusedError("--decide: %s: rows that were refused: %d; the others are decided", name, len(done.Refused))
	}
	return nil
}

// take decides about a value, unless that was decided in the same way before.
func (t *tally) take(ctx context.Context, jobs mapreduce.Client, id mapreduce.JobID, r *Row, last map[valueAt]*mapreduce.Decision, parsed *schema.Schema) error {
	verdict := mapreduce.ReviewVerdictOf(strings.ToLower(r.Verdict))
	at := valueAt{r.Record, r.Field}
	if d, p := last[at], parsed.Field(r.Field); d != nil && d.Verdict == verdict && sameValue(p, d.Value, r.Value) && d.Note == r.Note &&
		(len(r.Model) == 0 || sameValue(p, d.Model, r.Model)) {
		t.Unchanged++
		return nil
	}

	n := mapreduce.NewDecision{Job: id, Record: r.Record, Field: r.Field, Verdict: verdict, Note: r.Note, Model: r.Model}
	if verdict == mapreduce.ReviewCorrect {
		n.Value = r.Value
		if p := r.Passage; p != nil {
			n.Passage = &mapreduce.Passage{Document: p.Document, Unit: p.Unit, ByteStart: p.Start, ByteEnd: p.End}
		}
	}
	if verdict == mapreduce.ReviewUnknown {
		t.Refused = append(t.Refused, fmt.Sprintf("line %d: %q is none of accept, correct, reject, absent and withdraw", r.line, r.Verdict))
		return nil
	}

	kept, err := jobs.DecideValue(ctx, n)
	switch errs.KindOf(err) {
	case errs.Invalid, errs.NotFound, errs.Precondition:
		if err != nil {
			t.Refused = append(t.Refused, fmt.Sprintf("line %d: %v", r.line, err))
			return nil
		}
	}
	if err != nil {
		return err
	}
	last[at] = kept
	t.Decided++
	return nil
}

// sameValue reports whether a decided value is the one of a row, however it is written there.
func sameValue(p *schema.Property, decided, row []byte) bool {
	if len(decided) == 0 || len(row) == 0 || p == nil {
		return len(decided) == len(row)
	}
	return bytes.Equal(normalised(p, decided), normalised(p, row))
}

// normalised returns a value in the form of its field, and as it is if it is none.
func normalised(p *schema.Property, raw []byte) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return raw
	}

	if read, err := p.Normalize(v); err == nil {
		v = read
	}

	data, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return data
}
