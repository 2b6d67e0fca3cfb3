package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
)

// A jobStatus is the data that status prints, and that list prints of each job.
type jobStatus struct {
	ID        mapreduce.JobID  `json:"job_id"`
	Status    string           `json:"status"`
	Phase     string           `json:"phase"`
	Total     int64            `json:"total_units"`
	Completed int64            `json:"completed_units"`
	Failed    int64            `json:"failed_units"`
	Running   int64            `json:"running_units"`
	Parked    int64            `json:"parked_units"`
	Tokens    int64            `json:"total_tokens"`
	Cost      *float64         `json:"cost"` // null if it is not known
	Savings   *results.Savings `json:"savings,omitempty"`
	Error     *string          `json:"error"`
	Level     int              `json:"level"`
	Budget    int64            `json:"budget"`
	Created   string           `json:"created_at"`
	Updated   string           `json:"updated_at"`
	Coverage  results.Coverage `json:"coverage"`
	AuditHead string           `json:"audit_head"`
	Warnings  []string         `json:"warnings,omitempty"`
	Output    string           `json:"output,omitempty"`
	Stages    []stageStatus    `json:"stages,omitempty"` // only of status
}

// A stageStatus is how far a stage of a job is.
type stageStatus struct {
	Stage     string `json:"stage,omitempty"` // of the pipeline; none of units that parse
	Phase     string `json:"phase"`
	Total     int64  `json:"total_units"` // planned so far
	Completed int64  `json:"completed_units"`
	Failed    int64  `json:"failed_units"`
}

func stageStatuses(stages []mapreduce.StageProgress) []stageStatus {
	var all []stageStatus
	for _, p := range stages {
		all = append(all, stageStatus{Stage: p.Name, Phase: p.Phase.String(), Total: p.Units, Completed: p.Completed, Failed: p.Failed})
	}
	return all
}

func statusOf(j *mapreduce.Job) jobStatus {
	s := jobStatus{
		ID: j.ID, Status: j.State.String(), Phase: j.Phase.String(),
		Total: j.TotalUnits, Completed: j.CompletedUnits, Failed: j.FailedUnits, Running: j.RunningUnits, Parked: j.ParkedUnits,
		Tokens: j.TotalTokens.Total(), Cost: results.Cost(&j.Spec, j.TotalTokens, j.CostMicros), Level: j.Level, Budget: j.Spec.Budget,
		Created: formatTime(j.Created), Updated: formatTime(j.Updated),
		Coverage: results.CoverageOf(j.Coverage), AuditHead: j.AuditHead, Warnings: j.Warnings,
		Stages: stageStatuses(j.Stages),
	}
	if j.Error != "" {
		s.Error = &j.Error
	}
	if j.Savings != (mapreduce.Savings{}) {
		s.Savings = new(results.SavingsOf(&j.Spec, j.Savings))
	}
	return s
}

const timeLayout = "2006-01-02T15:04:05Z"

// printData prints v as JSON, or calls inText to print text.
func (a *app) printData(v any, inText func()) error {
	if a.global.format != jsonText {
		inText()
		return nil
	}
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printLine prints v as JSON on one line, or calls inText to print text.
func (a *app) printLine(v any, inText func()) error {
	if a.global.format != jsonText {
		inText()
		return nil
	}
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printTable prints rows below a header.
func (a *app) printTable(header string, rows func(row func(cells ...any))) {
	w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, strings.ReplaceAll(header, " ", "\t"))
	rows(func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, visibleText(fmt.Sprint(c)))
		}
		fmt.Fprintln(w)
	})
	_ = w.Flush() // a terminal that is gone cannot be told so
}

// visibleText returns s on one line, without control characters for a terminal.
func visibleText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case unicode.IsControl(r), !unicode.IsPrint(r) && !unicode.IsSpace(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// printEnd prints how a job ended, and where its results are.
func (a *app) printEnd(j *mapreduce.Job, dir string) error {
	s := statusOf(j)
	s.Output = dir
	return a.printData(s, func() {
		fmt.Fprintf(a.stdout, "%s is %s: %s\n", j.ID, endingText(j), outcomeText(j))
		if j.Error != "" && j.State != mapreduce.JobComplete {
			fmt.Fprintf(a.stdout, "%s\n", visibleText(j.Error))
		}
		for _, w := range j.Warnings {
			fmt.Fprintf(a.stdout, "warning: %s\n", visibleText(w))
		}
		if dir != "" {
			fmt.Fprintf(a.stdout, "results are in %s\n", dir)
		}
		if j.AuditHead != "" {
			fmt.Fprintf(a.stdout, "audit chain ends in %s\n", j.AuditHead)
		}
		if hint := hintOf(j); hint != "" && !strings.Contains(j.Error, "resume") {
			fmt.Fprintf(a.stdout, "%s: %s\n", hint, a.commandLine("resume", j.ID))
		}
	})
}

// formatDollars returns a cost as text. A nil cost is unknown.
func formatDollars(cost *float64) string {
	if cost == nil {
		return "cost unknown: this model has no price; --prices sets one"
	}
	return fmt.Sprintf("$%.4f", *cost)
}

// savingsLines returns one line for each cache that saved something.
func savingsLines(s *results.Savings) (lines []string) {
	if s == nil {
		return nil
	}
	if s.Answers > 0 {
		lines = append(lines, fmt.Sprintf("%s: %d answers came from other jobs", formatDollars(s.AnswersCost), s.Answers))
	}
	if s.CacheRead+s.CacheWrite > 0 {
		lines = append(lines, fmt.Sprintf("%s: %d tokens of prompts were read from the vendor's cache, %d written to it",
			formatDollars(s.PromptsCost), s.CacheRead, s.CacheWrite))
	}
	return lines
}

func endingText(j *mapreduce.Job) string {
	if j.State == mapreduce.JobComplete && j.FailedUnits > 0 {
		return "complete with failed units"
	}
	return j.State.String()
}

// outcomeText returns the numbers of a job's documents and units, with tokens and time.
func outcomeText(j *mapreduce.Job) string {
	d := j.Coverage.Documents
	parts := []string{
		fmt.Sprintf("%d of %d documents mapped", d.Mapped, d.Total),
		fmt.Sprintf("%d units", j.TotalUnits),
	}
	if j.FailedUnits > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", j.FailedUnits))
	}
	switch {
	case d.Skipped == 1:
		parts = append(parts, "1 document skipped")
	case d.Skipped > 1:
		parts = append(parts, fmt.Sprintf("%d documents skipped", d.Skipped))
	}
	if t := j.TotalTokens.Total(); t > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", t))
	}
	if cost := results.Cost(&j.Spec, j.TotalTokens, j.CostMicros); cost == nil || *cost > 0 {
		parts = append(parts, formatDollars(cost))
	}
	return strings.Join(append(parts, j.Updated.Sub(j.Created).Round(1e6).String()), ", ")
}

// hintOf says what a resume of the job would do; "" if nothing.
func hintOf(j *mapreduce.Job) string {
	switch {
	case j.State == mapreduce.JobPaused, j.State == mapreduce.JobFailed:
		return "continue with"
	case j.State == mapreduce.JobComplete && j.FailedUnits > 0:
		return "try the failed units again with"
	}
	return ""
}

// addJobID adds the flag that names a job.
func (a *app) addJobID(cmd *cobra.Command, id *string) {
	cmd.Flags().StringVar(id, "job-id", "", "`id` of the job, such as mr_20260101_a1b2c3")
	_ = cmd.RegisterFlagCompletionFunc("job-id", a.completeJobID) // the flag exists
}

// jobID returns the id that --job-id gives.
func jobID(cmd *cobra.Command, name string) (mapreduce.JobID, error) {
	if err := requireFlags(cmd, "job-id"); err != nil {
		return "", err
	}
	id := mapreduce.JobID(name)
	if !id.Valid() {
		return "", usageError("--job-id: %q is not the id of a job, which looks like mr_20260101_a1b2c3", name)
	}
	return id, nil
}
