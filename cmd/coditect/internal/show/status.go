package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/costs"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
)

// A JobStatus is the data that status prints, and that list prints of each job.
type JobStatus struct {
	ID         mapreduce.JobID              `json:"job_id"`
	Status     string                       `json:"status"`
	Phase      string                       `json:"phase"`
	Total      int64                        `json:"total_units"`
	Completed  int64                        `json:"completed_units"`
	Failed     int64                        `json:"failed_units"`
	Running    int64                        `json:"running_units"`
	Parked     int64                        `json:"parked_units"`
	Tokens     int64                        `json:"total_tokens"`
	Cost       *float64                     `json:"cost"` // null if it is not known
	Unpriced   []string                     `json:"unpriced_models,omitempty"`
	Savings    *costs.Savings               `json:"savings,omitempty"`
	Planned    *costs.Planned               `json:"planned,omitempty"` // beside what happened
	Reason     *string                      `json:"reason,omitempty"`  // why it is paused
	Error      *string                      `json:"error"`
	Level      int                          `json:"level"`
	Budget     int64                        `json:"budget"`             // in tokens
	MaxCost    *float64                     `json:"max_cost,omitempty"` // the budget, if it is in dollars
	Name       string                       `json:"name,omitempty"`     // what people call it
	Labels     map[string]string            `json:"labels,omitempty"`
	Created    string                       `json:"created_at"`
	Updated    string                       `json:"updated_at"`
	Coverage   resultfile.Coverage          `json:"coverage"`
	Deadline   string                       `json:"deadline,omitempty"`
	Ended      string                       `json:"ended_at,omitempty"`
	DeletedAt  string                       `json:"deleted_at,omitempty"` // when it will be
	AuditHead  string                       `json:"audit_head"`
	Parameters parameters.Set               `json:"parameters,omitzero"` // of answers, that the run gave
	Warnings   []string                     `json:"warnings,omitempty"`
	Output     string                       `json:"output,omitempty"`
	Skipped    []resultfile.SkippedDocument `json:"skipped_documents,omitempty"` // the first of them
	Failures   []resultfile.FailedUnit      `json:"failures,omitempty"`          // the first of the failed units, with their reasons
	Stages     []StageStatus                `json:"stages,omitempty"`            // only of status
	Activity   []UnitActivity               `json:"activity,omitempty"`          // only of watch
}

// A UnitActivity is what a running unit says of itself.
type UnitActivity struct {
	Unit    mapreduce.UnitID `json:"unit_id"`
	Attempt int              `json:"attempt"`
	Number  int64            `json:"number"` // of the attempt's notes, from 1; some may be left out
	Tokens  int64            `json:"tokens"` // that the attempt had spent
	Note    string           `json:"note"`
}

func unitActivities(all []mapreduce.Activity) []UnitActivity {
	var out []UnitActivity
	for _, a := range all {
		out = append(out, UnitActivity{Unit: a.Unit, Attempt: a.Attempt, Number: a.Number, Tokens: a.Tokens.Total(), Note: a.Note})
	}
	return out
}

// A StageStatus is how far a stage of a job is.
type StageStatus struct {
	Stage     string `json:"stage,omitempty"` // of the pipeline; none of units that parse
	Phase     string `json:"phase"`
	Total     int64  `json:"total_units"` // planned so far
	Completed int64  `json:"completed_units"`
	Failed    int64  `json:"failed_units"`
}

func stageStatuses(stages []mapreduce.StageProgress) []StageStatus {
	var all []StageStatus
	for _, p := range stages {
		all = append(all, StageStatus{Stage: p.Name, Phase: p.Phase.String(), Total: p.Units, Completed: p.Completed, Failed: p.Failed})
	}
	return all
}

// StatusOf returns the data of a job that commands print.
func StatusOf(j *mapreduce.Job) JobStatus {
	prices := costs.PricingOf(&j.Spec)
	s := JobStatus{
		ID: j.ID, Status: j.State.String(), Phase: j.Phase.String(),
		Total: j.TotalUnits, Completed: j.CompletedUnits, Failed: j.FailedUnits, Running: j.RunningUnits, Parked: j.ParkedUnits,
		Tokens: j.TotalTokens.Total(), Cost: prices.Cost(j.TotalTokens, j.CostMicros), Unpriced: prices.Unpriced, Level: j.Level, Budget: j.Spec.TokenBudget(), MaxCost: costs.MaxCost(&j.Spec), Labels: j.Spec.Labels, Name: j.Spec.Name,
		Created: console.FormatTime(j.Created), Updated: console.FormatTime(j.Updated),
		Coverage: resultfile.CoverageOf(j.Coverage), AuditHead: j.AuditHead, Warnings: j.Warnings,
		Parameters: settings.RunParameters(&j.Spec),
		Stages:     stageStatuses(j.Stages), Activity: unitActivities(j.Activity),
	}

	s.Planned = costs.PlannedOf(j, prices, s.Cost)
	switch {
	case j.Error == "":
	case j.State == mapreduce.JobPaused:
		// A pause is no failure.
		s.Reason = &j.Error
	default:
		s.Error = &j.Error
	}

	if !j.Spec.Deadline.IsZero() {
		s.Deadline = console.FormatTime(j.Spec.Deadline)
	}
	if !j.Ended.IsZero() {
		s.Ended = console.FormatTime(j.Ended)
	}
	if !j.DeleteAfter.IsZero() {
		s.DeletedAt = console.FormatTime(j.DeleteAfter)
	}
	if j.Savings != (mapreduce.Savings{}) {
		s.Savings = new(prices.Savings(j.Savings))
	}

	return s
}

// PrintEnd prints how a job ended, and where its results are.
func PrintEnd(p *program.Program, j *mapreduce.Job, end End) error {
	s := StatusOf(j)
	s.Output = end.Dir
	s.Warnings = slices.Concat(s.Warnings, brokenLines(end.Broken))
	s.Skipped, _ = cutList(end.Skipped, maxSkippedJSON)
	s.Failures = end.Failed[:min(len(end.Failed), maxSkippedJSON)]

	return p.PrintData(s, func() {
		fmt.Fprintf(p.Stdout, "%s is %s: %s\n", j.ID, endingText(j), outcomeText(j, end.Took))
		if j.Error != "" && j.State != mapreduce.JobComplete {
			fmt.Fprintf(p.Stdout, "%s\n", console.VisibleText(j.Error))
		}
		if s.Cost == nil {
			fmt.Fprintf(p.Stdout, "cost unknown: %s\n", console.VisibleText(costs.PriceAdvice(s.Unpriced)))
		}

		for _, w := range j.Warnings {
			fmt.Fprintf(p.Stdout, "warning: %s\n", console.VisibleText(w))
		}
		for _, line := range brokenLines(end.Broken) {
			fmt.Fprintf(p.Stdout, "warning: %s\n", line)
		}

		printFailed(p, end.Failed, j.FailedUnits)
		printSkipped(p, end.Skipped, j.Coverage.Documents.Skipped)

		if end.Dir != "" {
			fmt.Fprintf(p.Stdout, "results are in %s\n", end.Dir)
		}
		if j.AuditHead != "" {
			fmt.Fprintf(p.Stdout, "audit chain ends in %s\n", j.AuditHead)
		}
		// Some errors say how to resume the job already.
		if hint := hintOf(j, end.Failed); hint != "" && !strings.Contains(j.Error, "resume") {
			fmt.Fprintf(p.Stdout, "%s: %s\n", hint, p.CommandLine("resume", j.ID))
		}
	})
}

// How many skipped documents and failed units are shown. All of them are in result.json.
const (
	maxSkippedText = 5
	maxSkippedJSON = 100
)

// An End says what became of the result of a job that has ended. It is empty if none was
// written.
type End struct {
	Dir     string        // of the files
	Took    time.Duration // of the whole command; 0 shows how long the job took
	Skipped []resultfile.SkippedDocument
	Failed  []resultfile.FailedUnit
	Broken  []mapreduce.BrokenConstraint // of the schema, by the records of the result
}

// maxBroken bounds the broken constraints that are shown. All of them are in result.json.
const maxBroken = 5

// brokenLines returns a line for each constraint that records break, those of most records
// first.
func brokenLines(all []mapreduce.BrokenConstraint) (lines []string) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b mapreduce.BrokenConstraint) int { return cmp.Compare(b.Records, a.Records) })
	for i, b := range all {
		if i == maxBroken {
			return append(lines, plural.Count(len(all)-i, "more broken constraint")+": see warnings in result.json")
		}
		lines = append(lines, console.VisibleText(b.String()))
	}
	return lines
}

// cutList returns the first entries of a list, and how many are left out.
func cutList(list []resultfile.SkippedDocument, most int) ([]resultfile.SkippedDocument, int) {
	n := min(len(list), most)
	return list[:n], len(list) - n
}

// printFailed prints which of the failed units failed, and why at the last attempt.
func printFailed(p *program.Program, failed []resultfile.FailedUnit, count int64) {
	shown := failed[:min(len(failed), maxSkippedText)]
	for _, u := range shown {
		reason := "it has no reason"
		if len(u.Errors) > 0 {
			reason = u.Errors[len(u.Errors)-1]
		}

		line := fmt.Sprintf("failed %s: %s", console.VisibleText(string(u.Unit)), console.VisibleText(reason))
		if u.Retry {
			fmt.Fprintln(p.Stdout, line) // the last line says how
			continue
		}
		fmt.Fprintln(p.Stdout, withAdvice(line, u.Advice))
	}

	if more := count - int64(len(shown)); more > 0 && len(shown) > 0 {
		fmt.Fprintf(p.Stdout, "failed %d more: see failed_units in result.json\n", more)
	}
}

// withAdvice returns a line with what to do behind it, if there is something.
func withAdvice(line, advice string) string {
	if advice == "" {
		return line
	}
	return line + "; " + advice
}

// printSkipped prints which documents were skipped, why, and what to do.
func printSkipped(p *program.Program, skipped []resultfile.SkippedDocument, count int64) {
	shown, _ := cutList(skipped, maxSkippedText)
	for _, d := range shown {
		line := fmt.Sprintf("skipped %s: %s", console.VisibleText(string(d.Document)), console.VisibleText(d.Reason))
		fmt.Fprintln(p.Stdout, withAdvice(line, d.Advice))
	}
	if more := count - int64(len(shown)); more > 0 && len(shown) > 0 {
		fmt.Fprintf(p.Stdout, "skipped %d more: see skipped_documents in result.json\n", more)
	}
}

// formatDollars returns a cost as text. A nil cost is unknown.
func formatDollars(cost *float64) string {
	if cost == nil {
		return "cost unknown"
	}
	return fmt.Sprintf("$%.4f", *cost)
}

// costLine returns the cost of a job, or why it is not known and what to do.
func costLine(s *JobStatus) string {
	if s.Cost == nil {
		return "unknown: " + console.VisibleText(costs.PriceAdvice(s.Unpriced))
	}
	return formatDollars(s.Cost)
}

// savingsLines returns one line for each cache that saved something.
func savingsLines(s *costs.Savings) (lines []string) {
	if s == nil {
		return nil
	}

	if s.Answers > 0 {
		lines = append(lines, formatDollars(s.AnswersCost)+": "+plural.Count(s.Answers, "answer")+" came from other jobs")
	}
	if s.CacheRead+s.CacheWrite > 0 {
		lines = append(lines, fmt.Sprintf("%s: %s of prompts read from the vendor's cache, %d written to it",
			formatDollars(s.PromptsCost), plural.Count(s.CacheRead, "token"), s.CacheWrite))
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
func outcomeText(j *mapreduce.Job, took time.Duration) string {
	d := j.Coverage.Documents
	parts := []string{
		plural.Of(d.Mapped, d.Total, "document") + " mapped",
		plural.Count(j.TotalUnits, "unit"),
	}

	if j.FailedUnits > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", j.FailedUnits))
	}
	if d.Skipped > 0 {
		parts = append(parts, plural.Count(d.Skipped, "document")+" skipped")
	}
	if t := j.TotalTokens.Total(); t > 0 {
		parts = append(parts, plural.Count(t, "token"))
	}

	switch cost := costs.PricingOf(&j.Spec).Cost(j.TotalTokens, j.CostMicros); {
	case cost == nil:
		parts = append(parts, "cost unknown")
	case *cost > 0:
		parts = append(parts, formatDollars(cost))
	}

	// A command that only shows the job has measured nothing.
	took = cmp.Or(took, j.Updated.Sub(j.Created))
	return strings.Join(append(parts, took.Round(time.Millisecond).String()), ", ")
}

// hintOf says what a resume of the job would do; "" if nothing. failed are the first of its
// failed units: trying again does not help a unit that would fail in the same way.
func hintOf(j *mapreduce.Job, failed []resultfile.FailedUnit) string {
	switch {
	case j.State == mapreduce.JobPaused, j.State == mapreduce.JobFailed:
		return "continue with"
	case j.State == mapreduce.JobComplete && j.FailedUnits > 0 && canRetry(failed, j.FailedUnits):
		return "try the failed units again with"
	}
	return ""
}

// canRetry reports whether trying a job's failed units again can help one of them. Units that
// are not listed are taken for such ones.
func canRetry(failed []resultfile.FailedUnit, count int64) bool {
	return int64(len(failed)) < count || slices.ContainsFunc(failed, func(u resultfile.FailedUnit) bool { return u.Retry })
}
