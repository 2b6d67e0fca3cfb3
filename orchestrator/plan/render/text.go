package render

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/coditect/mapreduce/orchestrator/pack"
	"github.com/coditect/mapreduce/orchestrator/plan"
)

// Text returns the sketch for people to read: a line for each level, what all of
// it takes, or took, and the warnings.
func (s *Sketch) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s tree: %s, %s of reduction%s\n\n", s.treeName(), count(int64(s.Estimate.Tasks), "unit"),
		count(int64(s.Estimate.Levels), "level"), ifNot(s.Exact, "; what is marked ~ depends on outputs and is an estimate"))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	if s.ran() {
		fmt.Fprintln(table, "\tlevel\tunits\tinputs of a unit\ttokens in\ttokens out\tcost\tstate\t")
	} else {
		fmt.Fprintln(table, "\tlevel\tunits\tinputs of a unit\ttokens read\tcalls\ttokens in\ttokens out\t")
	}
	for _, r := range s.rows {
		fmt.Fprintln(table, r.all.line())
	}
	_ = table.Flush() // into b, which takes everything
	if s.Estimate.Parallelism > 0 {
		fmt.Fprintf(&b, "\n%s", outlookText(s.Estimate))
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", visible(w.String()))
	}
	return b.String()
}

func (s *Sketch) ran() bool { return len(s.rows) > 0 && s.rows[0].all.ran }

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

// line returns the row of a table for all units of a level.
func (b *box) line() string {
	inputs := grouped(int64(b.most))
	if b.least != b.most {
		inputs = grouped(int64(b.least)) + " to " + inputs
	}
	head := fmt.Sprintf("%s\t%d\t%s\t%s\t", b.kind, b.level, ifNot(!b.expected, "~")+grouped(b.count), inputs)
	if b.ran {
		return head + fmt.Sprintf("%s\t%s\t%s\t%s\t", grouped(b.tokens.In), grouped(b.tokens.Out), dollars(b.cost), b.stateText())
	}
	return head + fmt.Sprintf("%s\t%s\t%s\t%s\t", grouped(b.load.Read), grouped(b.load.Calls), grouped(b.load.In), grouped(b.load.Out))
}

func outlookText(e plan.Estimate) string {
	var b strings.Builder
	if e.High.Calls == 0 {
		b.WriteString("no model is called: it costs nothing\n")
		return b.String() + timeText(e)
	}
	fmt.Fprintf(&b, "calls: %s (%s to %s)\n", grouped(e.Expected.Calls), grouped(e.Low.Calls), grouped(e.High.Calls))
	fmt.Fprintf(&b, "tokens: %s in, %s out (%s to %s together)\n", grouped(e.Expected.In), grouped(e.Expected.Out),
		grouped(total(e.Low)), grouped(total(e.High)))
	fmt.Fprintf(&b, "cost: %s (%s to %s)\n", dollars(e.Expected.CostMicros), dollars(e.Low.CostMicros), dollars(e.High.CostMicros))
	return b.String() + timeText(e)
}

func timeText(e plan.Estimate) string {
	if e.Makespan == 0 {
		return ""
	}
	return fmt.Sprintf("time: about %s, %s at a time\n", round(e.Makespan), count(int64(e.Parallelism), "unit"))
}

func total(s plan.Spend) int64 { return pack.Sum(s.In, s.Out) }

// round leaves of a duration what an estimate can mean.
func round(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Minute:
		return d.Round(time.Minute)
	case d >= 10*time.Second:
		return d.Round(time.Second)
	}
	return max(d.Round(10*time.Millisecond), 10*time.Millisecond)
}
