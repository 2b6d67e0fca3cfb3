package render

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/coditect/mapreduce/orchestrator/pack"
	"github.com/coditect/mapreduce/orchestrator/plan"
)

// Text returns d for people to read: a line for each level, what all of it
// takes, and the warnings.
func Text(d *plan.DAG) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s tree: %s, %s of reduction%s\n\n", treeName(d), count(int64(d.Estimate.Tasks), "unit"),
		count(int64(d.Estimate.Levels), "level"), ifNot(d.Exact, "; what is marked ~ depends on outputs and is an estimate"))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tlevel\tunits\tinputs of a unit\tcalls\ttokens in\ttokens out\t")
	for _, l := range d.Levels {
		levelLine(table, d, l)
	}
	_ = table.Flush() // into b, which takes everything
	if d.Estimate.Parallelism > 0 {
		fmt.Fprintf(&b, "\n%s", outlookText(d.Estimate))
	}
	for _, w := range d.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", visible(w.String()))
	}
	return b.String()
}

func treeName(d *plan.DAG) string {
	if d.Mode == "" {
		return "batched"
	}
	return strings.ToLower(string(d.Mode))
}

func ifNot(condition bool, s string) string {
	if condition {
		return ""
	}
	return s
}

func levelLine(table *tabwriter.Writer, d *plan.DAG, l plan.Level) {
	var calls, in, out int64
	least, most := -1, 0
	for i := l.First; i < l.End; i++ {
		n := &d.Nodes[i]
		calls, in, out = pack.Sum(calls, n.Load.Calls), pack.Sum(in, n.Load.In), pack.Sum(out, n.Load.Out)
		inputs := len(n.Inputs) + n.Items
		if most = max(most, inputs); least < 0 || inputs < least {
			least = inputs
		}
	}
	inputs := grouped(int64(most))
	if least != most {
		inputs = grouped(int64(least)) + " to " + inputs
	}
	fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t\n", d.Nodes[l.First].Kind, l.Level,
		ifNot(!l.Expected, "~")+grouped(int64(l.Count())), inputs, grouped(calls), grouped(in), grouped(out))
}

func outlookText(e plan.Estimate) string {
	var b strings.Builder
	fmt.Fprintf(&b, "calls: %s (%s to %s)\n", grouped(e.Expected.Calls), grouped(e.Low.Calls), grouped(e.High.Calls))
	fmt.Fprintf(&b, "tokens: %s in, %s out (%s to %s together)\n", grouped(e.Expected.In), grouped(e.Expected.Out),
		grouped(total(e.Low)), grouped(total(e.High)))
	fmt.Fprintf(&b, "cost: %s (%s to %s)\n", dollars(e.Expected.CostMicros), dollars(e.Low.CostMicros), dollars(e.High.CostMicros))
	if e.Makespan > 0 {
		fmt.Fprintf(&b, "time: about %s, %s at a time\n", round(e.Makespan), count(int64(e.Parallelism), "unit"))
	}
	return b.String()
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
	return d.Round(10 * time.Millisecond)
}
