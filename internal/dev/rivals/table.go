package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/coditect/mapreduce/internal/dev/bench/figures"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/internal/dev/rivals/lap"
)

// absent are systems that belong into the table and have no program here, and why.
var absent = []struct{ name, why string }{
	{"Hatchet", "its server's module could not be had from Go's proxy of modules; it comes as images of containers"},
}

// printTable prints a line for each system, and below the table what has to be known of them.
func (p *plan) printTable(w io.Writer) error {
	fmt.Fprint(w, "| system | no-op units/s | told → start | asked → start | kill → elsewhere |\n|---|---|---|---|---|\n")
	for _, s := range p.systems {
		fmt.Fprintln(w, s.row())
	}
	for _, a := range absent {
		fmt.Fprintf(w, "| %s | not measured: %s | | | |\n", a.name, a.why)
	}

	fmt.Fprint(w, "\nTimes are p50 / p99. *Told → start* is from when the submitter was told that its unit is kept to the first line of what runs it, on an idle queue; it is below zero where a worker is faster than the answer. *Asked → start* is from before the submission.\n\n")
	var err error
	for _, s := range p.systems {
		if len(s.results) > 0 {
			i := s.results[0].Info
			_, err = fmt.Fprintf(w, "- %s: %s. After a kill: %s.\n", i.Name, i.Settings, i.Killed)
		}
	}
	return err
}

func (s *measured) row() string {
	if len(s.results) == 0 {
		return fmt.Sprintf("| %s | not measured: %v | | | |", filepath.Base(s.program), s.failed)
	}

	first := s.results[0]
	name := first.Info.Name
	if first.Version != "" {
		name += " " + first.Version
	}
	if s.failed != nil {
		name += fmt.Sprintf(" (%d laps, then %v)", len(s.results), s.failed)
	}

	rates := make([]float64, len(s.results))
	for i, r := range s.results {
		rates[i] = r.PerSecond
	}
	slices.Sort(rates)

	killed, kills := s.results[:0:0], 0
	for _, r := range s.results {
		if r.Kills > 0 {
			killed, kills = append(killed, r), kills+r.Kills
		}
	}
	elsewhere := "not measured"
	if kills > 0 {
		q := medianOf(killed, func(r *lap.Result) lap.Quantile { return r.Elsewhere })
		elsewhere = fmt.Sprintf("%s / %s s (%d kills)", figures.Number(q.P50.Seconds()), figures.Number(q.P99.Seconds()), kills)
	}

	return fmt.Sprintf("| %s | %s (%s to %s) | %s | %s | %s |", name,
		figures.Number(median(rates)), figures.Number(rates[0]), figures.Number(rates[len(rates)-1]),
		pair(medianOf(s.results, func(r *lap.Result) lap.Quantile { return r.Told })),
		pair(medianOf(s.results, func(r *lap.Result) lap.Quantile { return r.Asked })), elsewhere)
}

// median returns the one in the middle of what is sorted; of an even number the lower one.
func median[T any](sorted []T) T { return sorted[(len(sorted)-1)/2] }

// medianOf returns the medians of the laps' quantiles.
func medianOf(results []*lap.Result, of func(*lap.Result) lap.Quantile) lap.Quantile {
	var halves, nearlyAll []time.Duration
	for _, r := range results {
		q := of(r)
		halves, nearlyAll = append(halves, q.P50), append(nearlyAll, q.P99)
	}
	slices.Sort(halves)
	slices.Sort(nearlyAll)
	return lap.Quantile{P50: median(halves), P99: median(nearlyAll)}
}

func quantileOf(s *rig.Sample) lap.Quantile {
	return lap.Quantile{P50: s.Quantile(.5), P99: s.Quantile(.99)}
}

func pair(q lap.Quantile) string {
	return fmt.Sprintf("%s / %s ms", figures.Number(milliseconds(q.P50)), figures.Number(milliseconds(q.P99)))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
