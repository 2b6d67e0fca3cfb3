// Package show has the commands that show jobs, their units and their events, write these to
// files, and verify such files without the service.
package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/label"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/costs"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/jsonform"
)

func (cmds *commands) statusCommand() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "status JOB",
		Short: "Show the state of a job",
		Example: `  coditect mapreduce status mr_20260101_a1b2c3
  coditect mapreduce status last -o json`,
	}

	cmd.RunE = cmds.OnJob(&id, func(ctx context.Context, s *program.Session, job mapreduce.JobID) error {
		j, err := s.GetJob(ctx, job)
		if err != nil {
			return err
		}
		failed, err := firstFailed(ctx, s, j)
		if err != nil {
			return err
		}

		data := StatusOf(j)
		data.Skipped, data.Failures = resultfile.SkippedOf(j.Skipped), failed
		return cmds.PrintData(data, func() {
			cmds.printStatus(j, s.IsOnlyReader())
			printFailed(cmds.Program, failed, j.FailedUnits)
			printSkipped(cmds.Program, data.Skipped, j.Coverage.Documents.Skipped)
		})
	})

	cmds.AddJobID(cmd, &id)
	return cmd
}

// firstFailed returns the first of the failed units of a job.
func firstFailed(ctx context.Context, s *program.Session, j *mapreduce.Job) ([]resultfile.FailedUnit, error) {
	if j.FailedUnits == 0 {
		return nil, nil
	}

	page, err := s.ListUnits(ctx, mapreduce.ListUnitsQuery{
		Job: j.ID, States: []mapreduce.UnitState{mapreduce.UnitFailed}, PageSize: mapreduce.MaxShownSkips,
	})
	if err != nil {
		return nil, err
	}

	var list []resultfile.FailedUnit
	for _, u := range page.Units {
		list = append(list, resultfile.FailedOf(&mapreduce.Source{Unit: u.ID, Document: u.Document, Errors: u.Errors, Lasting: u.Lasting}))
	}
	return list, nil
}

// printStatus prints a job; idle says that no process works on it.
func (cmds *commands) printStatus(j *mapreduce.Job, idle bool) {
	s := StatusOf(j)
	rows := [][2]string{
		{"job", string(j.ID)},
		{"status", s.Status},
		{"phase", s.Phase},
		{"units", unitsOf(s) + reviewHint(j)},
		{"documents", ledgerText(s.Coverage.Documents)},
		{"characters", ledgerText(s.Coverage.Characters)},
		{"not read", unreadText(s.Coverage.Unread)},
		{"tokens", fmt.Sprint(s.Tokens)},
		{"cost", costLine(&s)},
		{"created", s.Created},
		{"updated", s.Updated},
	}

	// Rows without a value are left out.
	if s.Planned != nil {
		rows = append(rows, [2]string{"planned", plannedText(s.Planned)})
	}
	if s.Deadline != "" {
		rows = append(rows, [2]string{"deadline", deadlineText(j, s.Deadline, time.Now())})
	}
	if s.Ended != "" {
		rows = append(rows, [2]string{"ended", s.Ended})
	}
	if s.DeletedAt != "" {
		rows = append(rows, [2]string{"kept until", s.DeletedAt})
	}
	if s.Name != "" {
		rows = append(rows, [2]string{"name", console.VisibleText(s.Name)})
	}
	if len(s.Labels) > 0 {
		rows = append(rows, [2]string{"labels", strings.Join(label.Texts(s.Labels), ", ")})
	}
	if !s.Parameters.IsZero() {
		rows = append(rows, [2]string{"parameters", console.VisibleText(s.Parameters.String())})
	}
	for _, line := range savingsLines(s.Savings) {
		rows = append(rows, [2]string{"saved", line})
	}
	if s.Error != nil {
		rows = append(rows, [2]string{"error", console.VisibleText(*s.Error)})
	}
	if s.Reason != nil {
		rows = append(rows, [2]string{"reason", console.VisibleText(*s.Reason)})
	}
	for _, w := range j.Warnings {
		rows = append(rows, [2]string{"warning", console.VisibleText(w)})
	}
	if idle && j.State.Running() {
		rows = append(rows, [2]string{"note", "no process works on it; continue with `coditect mapreduce resume`"})
	}

	for _, r := range rows {
		fmt.Fprintf(cmds.Stdout, "%-10s  %s\n", r[0], r[1])
	}
	cmds.printStages(s.Stages)
}

// deadlineText returns by when a job is to end, and by how much it is late, if it is.
func deadlineText(j *mapreduce.Job, deadline string, now time.Time) string {
	end := j.Ended
	if end.IsZero() {
		end = now
	}
	if late := end.Sub(j.Spec.Deadline); late > 0 {
		return fmt.Sprintf("%s, missed by %v", deadline, max(time.Second, late.Round(time.Second)))
	}
	return deadline
}

// plannedText returns what a job was expected to take, and by how much it differs.
func plannedText(p *costs.Planned) string {
	parts := []string{plural.Count(p.Units.Planned, "unit") + differenceText(p.Units.Difference)}
	if p.Calls.Planned > 0 {
		parts = append(
			parts,
			plural.Count(p.Calls.Planned, "call")+differenceText(p.Calls.Difference),
			plural.Count(p.In.Planned, "token")+" read"+differenceText(p.In.Difference),
			plural.Count(p.Out.Planned, "token")+" written"+differenceText(p.Out.Difference),
			formatDollars(p.Cost.Planned)+differenceText(p.Cost.Difference),
		)
	}
	return strings.Join(parts, ", ")
}

// differenceText says by how much something differs from its plan, if that is known.
func differenceText(percent *float64) string {
	if percent == nil {
		return ""
	}
	return fmt.Sprintf(" (%+.1f %%)", *percent)
}

// printStages prints a line for each stage of a job.
func (cmds *commands) printStages(stages []StageStatus) {
	if len(stages) == 0 {
		return
	}
	fmt.Fprintln(cmds.Stdout)
	cmds.PrintTable("STAGE PHASE DONE FAILED ALL", func(row func(...any)) {
		for _, s := range stages {
			// No stage has a name like that of the units that parse documents.
			row(cmp.Or(s.Stage, "(parse)"), s.Phase, s.Completed, s.Failed, s.Total)
		}
	})
}

func unitsOf(s JobStatus) string {
	text := fmt.Sprintf("%d of %d complete, %d failed, %d running", s.Completed, s.Total, s.Failed, s.Running)
	if s.Parked > 0 {
		text += fmt.Sprintf(", %d parked: `coditect mapreduce units` shows what each waits for", s.Parked)
	}
	return text
}

// reviewHint says how to decide about values for which units of a job may wait.
func reviewHint(j *mapreduce.Job) string {
	if j.ParkedUnits == 0 || !pipeline.Reviews(j.Spec.Vars, j.Spec.Definition) {
		return ""
	}
	return "; `coditect mapreduce review` has the values that a person is to decide about"
}

func ledgerText(l resultfile.Ledger) string {
	return fmt.Sprintf("%d: %d mapped, %d failed, %d skipped", l.Total, l.Mapped, l.Failed, l.Skipped)
}

// unreadText returns how many bytes of documents gave no text.
func unreadText(l resultfile.Ledger) string {
	return fmt.Sprintf("%d bytes: %d of documents that failed, %d of skipped ones", l.Total, l.Failed, l.Skipped)
}

// A jobList is what list prints.
type jobList struct {
	Jobs []JobStatus `json:"jobs"`
	Next string      `json:"next_page_token"`
}

func (cmds *commands) listCommand() *cobra.Command {
	var (
		states []string
		labels []string
		q      mapreduce.ListJobsQuery
	)

	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show all jobs, the newest first",
		Example: `  coditect mapreduce list --limit 5
  coditect mapreduce list --status running -o json
  coditect mapreduce list --label team=billing --label urgent`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if q.States, err = parseStates(states); err != nil {
				return err
			}
			if q.Labels, err = parseLabelFilters(labels); err != nil {
				return err
			}
			if q.PageSize < 1 || q.PageSize > 1000 {
				return exit.UsageError("--limit: must be 1 to 1000")
			}

			// A command that only reads must not make a data directory.
			if cmds.HasNoData() {
				return cmds.printJobs(&mapreduce.JobPage{})
			}

			return cmds.WithReader(cmd.Context(), func(s *program.Session) error {
				page, err := s.ListJobs(cmd.Context(), q)
				if err != nil {
					return err
				}
				return cmds.printJobs(page)
			})
		},
	}

	f := cmd.Flags()
	f.StringSliceVar(&states, "status", nil, "only jobs that are running, completed, failed, cancelled or paused")
	f.StringVar((*string)(&q.Tenant), "tenant", "", "only jobs of this `tenant`")
	f.StringArrayVar(&labels, "label", nil, "only jobs with this label: `KEY=VALUE`, or KEY for any value; of several, with all of them")
	f.IntVar(&q.PageSize, "limit", 20, "largest number of jobs to show")
	f.StringVar(&q.PageToken, "page-token", "", "`token` that an earlier page ended with")
	console.OfferWords(cmd, "status", "running", "completed", "failed", "cancelled", "paused")
	return cmd
}

// parseLabelFilters returns the filters of --label.
func parseLabelFilters(texts []string) ([]label.Filter, error) {
	filters, err := label.ParseFilters(texts)
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return nil, exit.UsageError("--label: %s", e.Message)
	}
	return filters, err
}

// parseStates returns the states for the words that users give.
func parseStates(names []string) ([]mapreduce.JobState, error) {
	var states []mapreduce.JobState
	for _, name := range names {
		// These names are for people: one of several states, and two spellings.
		switch name {
		case "running":
			states = append(states, mapreduce.Decomposition, mapreduce.Mapping, mapreduce.Reducing)
			continue
		case "completed":
			name = mapreduce.JobComplete.String()
		case "canceled":
			name = mapreduce.JobCancelled.String()
		}

		s, err := mapreduce.ParseJobState(name)
		if err != nil {
			return nil, exit.UsageError("--status: %q is no state; the states are running, completed, failed, cancelled and paused", name)
		}
		states = append(states, s)
	}

	return states, nil
}

func (cmds *commands) printJobs(page *mapreduce.JobPage) error {
	l := jobList{Jobs: []JobStatus{}, Next: page.NextPageToken}
	for _, j := range page.Jobs {
		l.Jobs = append(l.Jobs, StatusOf(j))
	}
	return cmds.PrintData(l, func() {
		cmds.printJobTable(l.Jobs)
		cmds.PrintNextPage(l.Next)
	})
}

// printJobTable prints a line for each job, with when it will be deleted, with its labels and its name, if
// any of them has such.
func (cmds *commands) printJobTable(jobs []JobStatus) {
	header := "JOB STATUS UNITS FAILED TOKENS CREATED"
	expires := slices.ContainsFunc(jobs, func(j JobStatus) bool { return j.DeletedAt != "" })
	if expires {
		header += " KEPT-UNTIL"
	}
	labelled := slices.ContainsFunc(jobs, func(j JobStatus) bool { return len(j.Labels) > 0 })
	if labelled {
		header += " LABELS"
	}
	named := slices.ContainsFunc(jobs, func(j JobStatus) bool { return j.Name != "" })
	if named {
		header += " NAME"
	}

	cmds.PrintTable(header, func(row func(...any)) {
		for _, j := range jobs {
			cells := []any{j.ID, j.Status, fmt.Sprintf("%d/%d", j.Completed, j.Total), j.Failed, j.Tokens, j.Created}
			if expires {
				cells = append(cells, cmp.Or(j.DeletedAt, "-"))
			}
			if labelled {
				cells = append(cells, cmp.Or(strings.Join(label.Texts(j.Labels), ","), "-"))
			}
			if named {
				cells = append(cells, cmp.Or(console.VisibleText(j.Name), "-"))
			}
			row(cells...)
		}
	})
}

// A unitList is what units prints.
type unitList struct {
	Units []jsonform.UnitLine `json:"units"`
	Next  string              `json:"next_page_token"`
}

func (cmds *commands) unitsCommand() *cobra.Command {
	var (
		id     string
		states []string
		q      mapreduce.ListUnitsQuery
	)

	cmd := &cobra.Command{
		Use:   "units JOB",
		Short: "Show the units of a job and their states",
		Example: `  coditect mapreduce units mr_20260101_a1b2c3 --status failed
  coditect mapreduce units mr_20260101_a1b2c3 --limit 1000 -o json`,
	}

	cmd.RunE = cmds.OnJob(&id, func(ctx context.Context, s *program.Session, job mapreduce.JobID) error {
		if q.PageSize < 1 || q.PageSize > 1000 {
			return exit.UsageError("--limit: must be 1 to 1000")
		}

		// Only JSON shows outputs, which may be large.
		q.Job, q.Outputs = job, cmds.Format == console.JSON
		for _, name := range states {
			state, err := mapreduce.ParseUnitState(name)
			if err != nil {
				return exit.UsageError("--status: %w", err)
			}
			q.States = append(q.States, state)
		}

		j, err := s.GetJob(ctx, job)
		if err != nil {
			return err
		}
		page, err := s.ListUnits(ctx, q)
		if err != nil {
			return err
		}
		return cmds.printUnits(j, page)
	})

	cmds.AddJobID(cmd, &id)
	f := cmd.Flags()
	f.StringSliceVar(&states, "status", nil, "only units that are blocked, pending, processing, complete, failed or cancelled")
	f.IntVar(&q.PageSize, "limit", 100, "largest number of units to show")
	f.StringVar(&q.PageToken, "page-token", "", "`token` that an earlier page ended with")
	return cmd
}

func (cmds *commands) printUnits(job *mapreduce.Job, page *mapreduce.UnitPage) error {
	unpacker, err := jsonform.NewUnpacker(job)
	if err != nil {
		return err
	}

	l := unitList{Units: []jsonform.UnitLine{}, Next: page.NextPageToken}
	for _, u := range page.Units {
		e, err := unpacker.Unpack(u)
		if err != nil {
			return fmt.Errorf("unit %s: %w", u.ID, err)
		}
		l.Units = append(l.Units, jsonform.UnitLineOf(u, e))
	}

	return cmds.PrintData(l, func() {
		cmds.PrintTable("UNIT KIND LEVEL STATE ATTEMPTS TOKENS ERRORS", func(row func(...any)) {
			for _, u := range l.Units {
				row(u.Unit, u.Kind, u.Level, stateOf(u), u.Attempts, u.Tokens, strings.Join(u.Errors, "; "))
			}
		})
		cmds.PrintNextPage(l.Next)
	})
}

// stateOf returns the state of a unit; of a parked unit also what it waits for.
func stateOf(u jsonform.UnitLine) string {
	if u.Parked == nil {
		return u.State
	}
	return fmt.Sprintf("%s: parked under %s: %s", u.State, u.Parked.Handle, u.Parked.Note)
}

// An auditList is what audit prints.
type auditList struct {
	Checkpoints []jsonform.Checkpoint `json:"checkpoints"`
	Seals       []jsonform.Seal       `json:"seals"`
	Next        string                `json:"next_page_token"`
	Verified    bool                  `json:"verified"`
}

func (cmds *commands) auditCommand() *cobra.Command {
	var (
		id, export, head string
		log              bool
		q                mapreduce.ListEventsQuery
	)

	cmd := &cobra.Command{
		Use:   "audit [JOB|FILE]",
		Short: "Show, export and verify the chain of events of a job, or of a tenant",
		Long: `Audit shows every transaction of a job, the oldest first, and the seals that chain
them by hash. With --verify it first computes the chain again: it fails at the first
link that differs from its seal, and names the link. The column PROGRESS shows how far
the job was after each --checkpoint-interval of completed units. A unit that is completed
again counts again.

With --export it writes all events to a file, as they are stored. --verify of such a file
needs no service: it says which line was changed, left out, added or cut off. Give the head
of the chain, which the result and status show, by --head. Without it, a file that was
forged as a whole would pass.

With --log it shows the log of a tenant instead: which of its jobs were deleted, when, by
which principal or rule, and the head of the chain of each.`,
		Example: `  coditect mapreduce audit mr_20260101_a1b2c3 --verify
  coditect mapreduce audit mr_20260101_a1b2c3 --export audit.jsonl
  coditect mapreduce audit --verify audit.jsonl
  coditect mapreduce audit --log`,
	}

	show := func(ctx context.Context, s *program.Session, job mapreduce.JobID) error {
		if q.PageSize < 1 || q.PageSize > 1000 {
			return exit.UsageError("--limit: must be 1 to 1000")
		}
		q.Job = job
		if export != "" {
			return cmds.exportEvents(ctx, s, q, export)
		}

		page, err := s.ListEvents(ctx, q)
		if err != nil {
			return err
		}
		return cmds.printEvents(page, q)
	}

	// A job is looked up only if the command is about one, and not about a file or a log.
	onJob := cmds.OnJob(&id, show)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file := len(args) == 1 && isFile(args[0])
		switch {
		case head != "" && !(q.Verify && file):
			return exit.UsageError("--head: is for --verify of a file")
		case q.Tenant != "" && !log:
			return exit.UsageError("--tenant: is for --log")
		case q.Verify && file:
			return cmds.verifyFile(args[0], head)
		case !log:
			return onJob(cmd, args)
		case id != "" || len(args) > 0:
			return exit.UsageError("--log: shows the log of a tenant, and takes no job")
		}
		return cmds.WithReader(cmd.Context(), func(s *program.Session) error { return show(cmd.Context(), s, "") })
	}

	cmds.AddJobID(cmd, &id)
	f := cmd.Flags()
	f.BoolVar(&q.Verify, "verify", false, "check the chain of hashes of the job, or of a file that --export has written")
	f.BoolVar(&log, "log", false, "show the log of a tenant: its deleted jobs")
	f.StringVar((*string)(&q.Tenant), "tenant", "", "`tenant` whose log is shown (default the tenant of the caller)")
	f.StringVar(&export, "export", "", "write all events to a `file`; - is standard output")
	f.StringVar(&head, "head", "", "`hash` in which the chain of the file must end")
	f.IntVar(&q.PageSize, "limit", 100, "largest number of events to show")
	f.StringVar(&q.PageToken, "page-token", "", "`token` that an earlier page ended with")
	return cmd
}

func (cmds *commands) printEvents(page *mapreduce.EventPage, q mapreduce.ListEventsQuery) error {
	l := auditList{Checkpoints: []jsonform.Checkpoint{}, Seals: []jsonform.Seal{}, Next: page.NextPageToken, Verified: q.Verify}
	for _, c := range page.Checkpoints {
		l.Checkpoints = append(l.Checkpoints, jsonform.CheckpointOf(c))
	}
	for _, s := range page.Seals {
		l.Seals = append(l.Seals, jsonform.SealOf(s))
	}

	return cmds.PrintData(l, func() {
		cmds.PrintTable("TIME KIND STATE COMPLETED FAILED TOKENS PROGRESS PRINCIPAL MESSAGE", func(row func(...any)) {
			for i, c := range page.Checkpoints {
				row(console.FormatTime(c.Time), c.Kind, l.Checkpoints[i].State, len(c.Completed), len(c.Failed), c.Tokens.Total(), progressOf(c), c.Principal, messageOf(c))
			}
		})
		cmds.PrintNextPage(l.Next)
		if q.Verify {
			fmt.Fprintf(cmds.Stdout, "the chain is intact: %s\n", WhoseAudit(q.Job, q.Tenant))
		}
	})
}

// messageOf returns what an event says, with the job of one of a tenant's log.
func messageOf(c *mapreduce.Checkpoint) string {
	if c.Deleted == nil {
		return c.Message
	}
	if c.Deleted.Rule != "" {
		return fmt.Sprintf("%s: %s", c.Deleted.Job, c.Deleted.Rule)
	}
	return string(c.Deleted.Job)
}

// progressOf returns the progress of the job at a checkpoint; "" if c has none.
func progressOf(c *mapreduce.Checkpoint) string {
	if c.Progress == nil {
		return ""
	}
	return plural.Count(c.Progress.Completed, "unit") + ", " + plural.Count(c.Progress.Tokens.Total(), "token")
}
