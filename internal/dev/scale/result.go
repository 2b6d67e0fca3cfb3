package main

import (
	"fmt"
	"io"
	"time"
)

// A Result is what a simulation found.
type Result struct {
	Config    Config
	Ended     int           // units
	Commits   int           // of turns, those that conflicted as well
	Conflicts int           // of them, which ran again
	Gone      int           // candidates that another orchestrator had claimed before
	Reads     int           // of queues
	Makespan  time.Duration // until the last turn
	LastBegin time.Duration // until the last unit began
	spans     []span
}

// A span is when a unit ran.
type span struct{ begun, took time.Duration }

func (r *Result) begin(now, took time.Duration) {
	r.LastBegin = now
	r.spans = append(r.spans, span{now, took})
}

// Utilisation returns which part of all slots was busy until the last unit began: later
// there is nothing left for those that are free.
func (r *Result) Utilisation() float64 {
	busy := 0.0
	for _, s := range r.spans {
		busy += min(s.took, r.LastBegin-s.begun).Seconds()
	}
	return busy / r.LastBegin.Seconds() / float64(r.Config.Workers*r.Config.Slots)
}

// CommitsPerSecond returns how many transactions of turns the store carried out a second.
func (r *Result) CommitsPerSecond() float64 { return float64(r.Commits) / r.LastBegin.Seconds() }

// ConflictShare returns which part of the commits conflicted.
func (r *Result) ConflictShare() float64 { return float64(r.Conflicts) / float64(max(1, r.Commits)) }

// Print prints the figures as a table.
func (r *Result) Print(w io.Writer) {
	c, seconds := r.Config, r.LastBegin.Seconds()
	fmt.Fprintf(w, "%d orchestrators, %d workers of %d slots and %d units ahead, %d units of log-normal %v (σ %v)\n", c.Orchestrators, c.Workers, c.Slots, c.Prefetch, c.Units, c.Mean, c.Sigma)
	fmt.Fprintf(w, "| utilisation until the last unit begins | %.2f %% |\n", 100*r.Utilisation())
	fmt.Fprintf(w, "| the last unit begins after | %.1f s, the least possible %.1f s |\n", seconds, c.Mean.Seconds()*float64(c.Units)/float64(c.Workers*c.Slots))
	fmt.Fprintf(w, "| units a second | %.0f |\n", float64(c.Units)/seconds)
	fmt.Fprintf(w, "| turns that commit, a second | %.0f, with %.2f units each |\n", r.CommitsPerSecond(), float64(c.Units)/float64(r.Commits-r.Conflicts))
	fmt.Fprintf(w, "| conflicts of turns | %d, %.3f %% of commits |\n", r.Conflicts, 100*r.ConflictShare())
	fmt.Fprintf(w, "| candidates that others had claimed | %d, %.2f %% of units |\n", r.Gone, 100*float64(r.Gone)/float64(c.Units))
	fmt.Fprintf(w, "| readings of queues, a second | %.0f |\n", float64(r.Reads)/seconds)
	fmt.Fprintf(w, "| signs of life, a second (one an orchestrator) | %d |\n", c.Orchestrators)
}
