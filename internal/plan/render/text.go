package render

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/pack"
)

// Text returns the sketch for people to read: a line for each level, what all of
// it takes, or took, and the warnings.
func (s *Sketch) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s tree: %s, %s of reduction%s\n\n", s.treeName(), countOf(int64(s.Estimate.Tasks), "unit"),
		countOf(int64(s.Estimate.Levels), "level"), ifNot(s.Exact, "; what is marked ~ depends on outputs and is an estimate"))

	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	if s.hasRun() {
		fmt.Fprintln(table, "\tlevel\tunits\tinputs of a unit\ttokens in\ttokens out\tcost\tstate\t")
	} else {
		fmt.Fprintln(table, "\tlevel\tunits\tinputs of a unit\ttokens read\tcalls\ttokens in\ttokens out\t")
	}

	for _, r := range s.rows {
		fmt.Fprintln(table, r.all.tableRow())
	}
	_ = table.Flush() // into b, which takes everything

	if s.Estimate.Parallelism > 0 {
		fmt.Fprintf(&b, "\n%s", outlookText(s.Estimate))
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", visibleText(w.String()))
	}
	return b.String()
}

func (s *Sketch) hasRun() bool { return len(s.rows) > 0 && s.rows[0].all.ran }

func (s *Sketch) treeName() string {
	if s.Mode == "" {
		return "batched"
	}
	return strings.ToLower(string(s.Mode))
}

func ifNot(condition bool, s string) string {
	if condition {
		return ""
	}
	return s
}

// tableRow returns the row of a table for all units of a level.
func (b *box) tableRow() string {
	inputs := groupDigits(int64(b.most))
	if b.least != b.most {
		inputs = groupDigits(int64(b.least)) + " to " + inputs
	}
	head := fmt.Sprintf("%s\t%d\t%s\t%s\t", b.kind, b.level, ifNot(!b.expected, "~")+groupDigits(b.count), inputs)
	if b.ran {
		return head + fmt.Sprintf("%s\t%s\t%s\t%s\t", groupDigits(b.tokens.In), groupDigits(b.tokens.Out), strings.TrimPrefix(b.costText(), "cost "), b.stateText())
	}
	return head + fmt.Sprintf("%s\t%s\t%s\t%s\t", groupDigits(b.load.Read), groupDigits(b.load.Calls), groupDigits(b.load.In), groupDigits(b.load.Out))
}

func outlookText(e plan.Estimate) string {
	var b strings.Builder
	if e.High.Calls == 0 {
		b.WriteString("no model is called: it costs nothing\n")
		return b.String() + timeText(e)
	}

	fmt.Fprintf(&b, "calls: %s (%s to %s)\n", groupDigits(e.Expected.Calls), groupDigits(e.Low.Calls), groupDigits(e.High.Calls))
	fmt.Fprintf(&b, "tokens: %s in, %s out (%s to %s together)\n", groupDigits(e.Expected.In), groupDigits(e.Expected.Out),
		groupDigits(totalInOut(e.Low)), groupDigits(totalInOut(e.High)))
	fmt.Fprintf(&b, "cost: %s (%s to %s)\n", formatDollars(e.Expected.CostMicros), formatDollars(e.Low.CostMicros), formatDollars(e.High.CostMicros))
	return b.String() + timeText(e)
}

func timeText(e plan.Estimate) string {
	if e.Makespan == 0 {
		return ""
	}
	return fmt.Sprintf("time: about %s, %s at a time\n", roundDuration(e.Makespan), countOf(int64(e.Parallelism), "unit"))
}

func totalInOut(s plan.Spend) int64 { return pack.Sum(s.In, s.Out) }

// roundDuration leaves of a duration what an estimate can mean.
func roundDuration(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Minute:
		return d.Round(time.Minute)
	case d >= 10*time.Second:
		return d.Round(time.Second)
	}
	return max(d.Round(10*time.Millisecond), 10*time.Millisecond)
}
