// Command rivals measures systems that run units durably, and this project among them, on the
// same work, in turns, on the same machine, and prints one table. `make bench-rivals` builds it and
// a program for each system, which links that system alone; package lap says what is measured.
//
// It is in a module of its own, so that nobody who builds the project builds the others.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/internal/dev/rivals/lap"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "rivals:", err)
		os.Exit(1)
	}
}

// programs are those of the systems, in the order of the table.
var programs = []string{"coditect", "river", "nats", "dbos", "restate", "temporal"}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("rivals", flag.ContinueOnError)
	flags.SetOutput(stderr)
	from := flags.String("programs", "", "folder with the programs of the systems (default: that of this program)")
	names := flags.String("systems", strings.Join(programs, " "), "programs of the systems, apart by blanks")
	dir := flags.String("dir", "", "folder for the stores, on the disk to be measured (default: the temporary folder)")
	laps := flags.Int("laps", 5, "how often each system is measured, in turns; the table has the medians")
	kills := flags.Int("kills", 8, "workers of each system that are killed in each lap, eight at a time")
	short := flags.Bool("short", false, "three laps of a few seconds, kills in the first of them only: some minutes in all")
	if err := flags.Parse(args); err != nil {
		return err
	}

	if *laps < 1 {
		return fmt.Errorf("-laps: %d is not a number of laps", *laps)
	}
	if *from == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		*from = filepath.Dir(self)
	}

	p := plan{laps: *laps, settings: lap.Settings{Dir: *dir, Share: 1, Arrivals: 500, Pause: 20 * time.Millisecond, Kills: *kills}}
	if *short {
		p.laps, p.killsOnce, p.settings.Share, p.settings.Arrivals = 3, true, .4, 250
	}
	for name := range strings.FieldsSeq(*names) {
		if !slices.Contains(programs, name) {
			return fmt.Errorf("-systems: there is no %q; there are %s", name, strings.Join(programs, ", "))
		}
		p.systems = append(p.systems, &measured{program: filepath.Join(*from, name)})
	}
	return p.carryOut(ctx, stdout, stderr)
}

// A plan is what is measured how often.
type plan struct {
	systems   []*measured
	settings  lap.Settings
	laps      int
	killsOnce bool // in the first lap
}

// measured is what came of the laps of a system.
type measured struct {
	program string
	results []*lap.Result
	failed  error // why there are no more of them
}

func (p *plan) carryOut(ctx context.Context, stdout, stderr io.Writer) error {
	before := rig.Machine()
	floor, err := (&rig.Site{Dir: p.settings.Dir}).MeasureFloor(ctx, rig.Arrivals(p.settings.Arrivals, p.settings.Pause))
	if err != nil {
		return err
	}

	for n := range p.laps {
		settings := p.settings
		if n > 0 && p.killsOnce {
			settings.Kills = 0
		}
		for _, s := range p.systems {
			if s.failed != nil {
				continue
			}
			start := time.Now()
			r, err := lap.Run(ctx, s.program, settings)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if errors.Is(err, os.ErrNotExist) {
				err = errors.New("its program was not built")
			}
			s.failed = err
			if err == nil {
				s.results = append(s.results, r)
			}
			fmt.Fprintf(stderr, "lap %d, %s: %v, load average %s\n", n+1, filepath.Base(s.program), time.Since(start).Round(time.Second), rig.LoadAverage())
		}
	}

	fmt.Fprintf(stdout, "%s at the beginning, %s at the end; a sync of a file takes %s, a commit of the embedded store %s (p50 / p99); medians of %d laps in turns\n\n",
		before, "load average "+rig.LoadAverage(), pair(quantileOf(floor.Sync)), pair(quantileOf(floor.Commit)), p.laps)
	return p.printTable(stdout)
}
