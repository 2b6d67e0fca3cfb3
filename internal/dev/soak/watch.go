package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A watch takes samples, kills a worker now and then, and says what grows.
type watch struct {
	house  *house
	load   *load
	config config
	out    io.Writer
	begun  time.Time

	series map[string][]point
	wrong  []error
}

// run watches until ctx ends.
func (w *watch) run(ctx context.Context) {
	w.series = make(map[string][]point)
	look, kill, report := time.NewTicker(w.config.every), time.NewTicker(w.config.kill), time.NewTicker(w.config.report)
	defer look.Stop()
	defer kill.Stop()
	defer report.Stop()

	for {
		select {
		case <-look.C:
			w.sample(ctx)
		case <-kill.C:
			// The next one has its moment to start, whatever comes of this run.
			if err := w.house.replaceMortal(context.WithoutCancel(ctx)); err != nil {
				w.note(err)
				return
			}
		case <-report.C:
			if err := w.verdict(false); err != nil {
				fmt.Fprintln(w.out, "so far:", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// sample takes a sample and prints it on a line.
func (w *watch) sample(ctx context.Context) {
	s, err := w.house.take(ctx)
	if err != nil && ctx.Err() == nil {
		w.note(err)
	}
	if err != nil {
		return
	}

	at := time.Since(w.begun)
	for figure, v := range s {
		w.series[figure] = append(w.series[figure], point{at, v})
	}
	done, _ := w.load.seen()
	fmt.Fprintf(w.out, "%s  %v: server %s, workers %s and %s; %.0f keys of %s, folder %s, %.0f jobs; %s, %d kills\n", time.Now().Format(time.TimeOnly), at.Round(time.Second),
		bytesOf(s["server: memory"]), bytesOf(s[w.house.steady.name+": memory"]), bytesOf(s[w.house.mortal.name+": memory"]),
		s[allKeys], bytesOf(s[allBytes]), bytesOf(s[diskBytes]), s[jobsKept], done, w.house.kills)
}

// note keeps what went wrong, the first hundred, and prints it.
func (w *watch) note(err error) {
	fmt.Fprintln(w.out, "WRONG:", err)
	if len(w.wrong) < 100 {
		w.wrong = append(w.wrong, err)
	}
}

// verdict prints the table, and returns what grows and, at the end, all that went wrong.
func (w *watch) verdict(atEnd bool) error {
	grows, judged := printTable(w.out, w.series)
	done, failed := w.load.seen()
	fmt.Fprintf(w.out, "%s; %d kills\n", done, w.house.kills)
	if !atEnd {
		return errors.Join(append(grows, failed...)...)
	}

	all := slices.Concat(grows, w.wrong, failed)
	if judged == 0 {
		all = append(all, fmt.Errorf("too few samples to judge by: a half needs %d", enough))
	}
	if len(all) == 0 {
		fmt.Fprintln(w.out, "nothing grows, and nothing went wrong")
	}
	return errors.Join(all...)
}

// printTable prints each figure over the second half of the time, and returns those that grow,
// and how many could be judged.
func printTable(out io.Writer, series map[string][]point) (grows []error, judged int) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "second half\tmean\tleast\tmost\tan hour\tgrowth\tof chance\tbound\t\t")

	for _, figure := range slices.Sorted(maps.Keys(series)) {
		t, ok := trendOf(series[figure])
		if !ok {
			continue
		}

		judged++
		b := boundOf(figure)
		limit, word := show(figure, b.limit(t.mean)), "flat"
		switch {
		case b.reason != "":
			limit, word = "", b.reason
		case b.breaks(t):
			word = "GROWS"
			grows = append(grows, fmt.Errorf("%s grows by %s in the second half, more than %s", figure, show(figure, t.growth), limit))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", figure, show(figure, t.mean), show(figure, t.least), show(figure, t.most),
			show(figure, t.hourly), show(figure, t.growth), show(figure, t.noise), limit, word)
	}
	_ = table.Flush() // out is said to be written where it is closed
	return grows, judged
}

// show returns a figure as people read it.
func show(figure string, v float64) string {
	if strings.HasPrefix(figure, "bytes") || strings.HasSuffix(figure, "memory") {
		return bytesOf(v)
	}
	return fmt.Sprintf("%.1f", v)
}

func bytesOf(v float64) string { return fmt.Sprintf("%.2f MiB", v/mebi) }
