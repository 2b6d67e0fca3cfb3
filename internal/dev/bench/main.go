// Command bench measures how fast the service is and prints each figure beside
// its goal and beside what bounds it, measured in the same run. It decides
// nothing: see package figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/internal/dev/bench/figures"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/orchestrator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ordered, err := figures.RunChild(ctx, os.Stdin, os.Stdout)
	if !ordered {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("run", "", "figures whose name matches this expression")
	dir := flags.String("dir", "", "folder for the stores, on the disk to be measured (default: the temporary folder)")
	where := flags.String("store", "", "fdb:`FILE` to measure on a FoundationDB cluster, in a program built with the tag fdb (default: the embedded store)")
	profiles := flags.String("profiles", "", "folder for profiles of processor, allocations and locks, a file a figure")
	units := flags.Int("units", 0, "units of the job of no-op units (default: 200000); what is compared in laps has a tenth of them in each (default: 100000, for eight minutes)")
	lanes := flags.Int("lanes", 0, "transactions that an orchestrator moves units with at the same time (default: its own)")
	overloaded := flags.Duration("overload", 0, "how long a server is asked for too much (default: 20s)")
	without := flags.String("without", "", "courtesies that orchestrators leave out, apart by commas: precedence, split-reads, reserved-slots")
	if err := flags.Parse(args); err != nil {
		return err
	}

	courtesies, err := parseCourtesies(*without)
	if err != nil {
		return fmt.Errorf("-without: %w", err)
	}
	matching, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}

	cluster, found := strings.CutPrefix(*where, "fdb:")
	if *where != "" && (!found || cluster == "") {
		return fmt.Errorf("-store: %q is not fdb:FILE", *where)
	}

	lab := figures.Lab{
		Site:     rig.Site{Dir: *dir, Cluster: cluster, Lanes: *lanes, Without: courtesies},
		Profiles: *profiles, Units: *units, Overloaded: *overloaded,
	}
	if text := os.Getenv("CODITECT_BENCH_SIZE"); text != "" {
		if lab.Size, err = strconv.Atoi(text); err != nil || lab.Size < 1 {
			return fmt.Errorf("CODITECT_BENCH_SIZE: %q is not a number of units", text)
		}
	}

	fmt.Fprintf(stdout, "%s\n\n| figure | value | goal | | bound, measured in the same run |\n|---|---|---|---|---|\n", rig.Machine())
	for _, f := range figures.All() {
		if !matching.MatchString(f.Name) {
			continue
		}
		start := time.Now()
		// Each figure has a process of its own, so that none leaves memory to the next.
		rows, err := figures.Measure(ctx, f.Name, lab)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		for _, r := range rows {
			fmt.Fprintln(stdout, line(r))
		}
		fmt.Fprintf(stderr, "%s: %v\n", f.Name, time.Since(start).Round(time.Second))
	}

	fmt.Fprintf(stdout, "\nat the end: %s\n", rig.Machine())
	return nil
}

// parseCourtesies returns the courtesies that a list names, which may be empty.
func parseCourtesies(list string) (c orchestrator.Courtesies, err error) {
	for name := range strings.SplitSeq(list, ",") {
		switch strings.TrimSpace(name) {
		case "":
		case "precedence":
			c.Precedence = true
		case "split-reads":
			c.SplitReads = true
		case "reserved-slots":
			c.ReservedSlots = true
		default:
			return c, fmt.Errorf("%q is none of precedence, split-reads, reserved-slots", name)
		}
	}

	return c, nil
}

func line(r figures.Row) string {
	goal, met := "", ""
	if r.Goal != nil {
		goal, met = r.Goal.String(), "missed"
		if r.Goal.Met(r.Value) {
			met = "met"
		}
	}
	return fmt.Sprintf("| %s | %s %s | %s | %s | %s |", r.Name, figures.Number(r.Value), r.Unit, goal, met, r.Bound)
}
