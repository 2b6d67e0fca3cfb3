// Command simulate runs scenarios of internal/dev/simulation so that the same seed has the same history:
//
//	go run ./internal/dev/simulate -seed 17
//	go run ./internal/dev/simulate -seed 17 -to 400 -twice
//	go run ./internal/dev/simulate -seed 17 -shrink
//	go run ./internal/dev/simulate -seed 17 -orders 50
//
// It compiles the service to WebAssembly, which has one thread, and runs it with clocks and with
// randomness that follow from the seed. For each seed it prints the hash of all that happened: what was
// sent, stored, begun and ended, and when. With -twice it runs each seed twice and compares. A scenario
// has other histories beside that one, for what goes on at once may go on in any order, and pauses are
// drawn: with -orders it runs so many of them, each of which is the same again by its -order. What breaks
// an invariant is printed with the command that has it again; with -shrink it is made as small as it
// can be first, and with -trace everything that happens is printed. It fails if anything was broken.
//
// It imports nothing of the project but internal/dev/simulation.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/internal/dev/simulation"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

// errBroken is what the command ends with if an invariant is broken.
var errBroken = errors.New("invariants are broken")

// A command is what was asked for.
type command struct {
	first, last           uint64 // seeds
	order, orders         uint64 // the first history of each, and how many
	twice, shrink, traced bool
	change                func(*simulation.Scenario)
}

func run(ctx context.Context, args []string) error {
	c, err := parse(args)
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	m, err := newMachine(ctx, filepath.Join(cache, "coditect-simulate"))
	if err != nil {
		return err
	}
	defer m.close(ctx)

	broken := 0
	for seed := c.first; seed <= c.last && ctx.Err() == nil; seed++ {
		well, err := c.runOrders(ctx, m, seed)
		if err != nil {
			return err
		}
		if !well {
			broken++
		}
	}
	if broken > 0 {
		return fmt.Errorf("%w: %d of %d seeds", errBroken, broken, c.last-c.first+1)
	}
	return context.Cause(ctx)
}

// parse reads the arguments.
func parse(args []string) (*command, error) {
	c := new(command)
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	flags.Uint64Var(&c.first, "seed", 1, "run the scenario of this seed")
	flags.Uint64Var(&c.last, "to", 0, "and of all seeds up to this one")
	flags.Uint64Var(&c.order, "order", 0, "let what goes on at once go on in this order")
	flags.Uint64Var(&c.orders, "orders", 1, "and in so many orders from that one on, until one breaks something")
	flags.BoolVar(&c.twice, "twice", false, "run each seed twice, and compare the hashes")
	flags.BoolVar(&c.shrink, "shrink", false, "make what fails smaller")
	flags.BoolVar(&c.traced, "trace", false, "print everything that happens")
	nodes := flags.Int("nodes", 0, "run so many orchestrators, 0 for as many as the seed says")
	workers := flags.Int("workers", 0, "run so many workers, likewise")
	jobs := flags.Int("jobs", 0, "run so many jobs, likewise")
	documents := flags.Int("documents", 0, "submit so many documents with each, likewise")
	rate := flags.Float64("rate", -1, "let each fault of the store happen at this rate, -1 for that of the seed")
	faults := flags.String("faults", "all", "let only the faults with these numbers happen, separated by commas")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	c.last = max(c.last, c.first)

	keep, err := numbers(*faults)
	if err != nil {
		return nil, err
	}
	c.change = func(s *simulation.Scenario) {
		for _, p := range []struct{ said, of *int }{{nodes, &s.Nodes}, {workers, &s.Workers}, {jobs, &s.Jobs}, {documents, &s.Documents}} {
			if *p.said > 0 {
				*p.of = *p.said
			}
		}
		if *rate >= 0 {
			s.Rate = *rate
		}
		if *faults != "all" {
			s.Keep(keep)
		}
	}
	return c, nil
}

// numbers reads a list of numbers. An empty one, and all, has none.
func numbers(list string) (all []int, err error) {
	if list == "" || list == "all" {
		return nil, nil
	}
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("-faults: %q is no number of a fault", text)
		}
		all = append(all, n)
	}
	return all, nil
}

// runOrders runs the scenario of a seed in as many orders as were asked for, up to the first in which it
// breaks something.
func (c *command) runOrders(ctx context.Context, m *machine, seed uint64) (well bool, err error) {
	for order := c.order; order < c.order+c.orders; order++ {
		s := simulation.Of(seed)
		s.Order = order
		c.change(s)
		if well, err = c.runScenario(ctx, m, s); !well || err != nil {
			return false, err
		}
	}
	return true, nil
}

// runScenario runs a scenario, and prints what it came to. It returns an error if that cannot be found
// out.
func (c *command) runScenario(ctx context.Context, m *machine, s *simulation.Scenario) (well bool, err error) {
	report, err := m.play(ctx, s, c.traced)
	if err != nil {
		return false, err
	}
	name := fmt.Sprintf("seed %d", s.Seed)
	if s.Order > 0 {
		name += fmt.Sprintf(", order %d", s.Order)
	}
	fmt.Printf("%s: %s, %d events, %v, %d broken\n", name, report.Hash, report.Events, report.Took, len(report.Broken))

	if c.twice {
		again, err := m.play(ctx, s, false)
		if err != nil {
			return false, err
		}
		if again.Hash != report.Hash {
			fmt.Printf("  the second time it is %s, with %d events\n", again.Hash, again.Events)
			return false, nil
		}
	}

	if len(report.Broken) == 0 {
		return true, nil
	}
	if c.shrink {
		s, report, err = c.shrunk(ctx, m, s, report)
	}
	for _, what := range report.Broken {
		fmt.Println("  " + what)
	}
	for _, f := range s.Faults {
		fmt.Printf("  fault %d, %v after the one before it: %v for %v\n", f.Number, f.After, f.Kind, f.For)
	}
	fmt.Printf("  to have it again: go run ./internal/dev/simulate %s\n", s.Arguments())
	return false, err
}

// mostTries bounds how many scenarios are tried to make one smaller.
const mostTries = 200

// shrunk makes a scenario that fails smaller.
func (c *command) shrunk(ctx context.Context, m *machine, s *simulation.Scenario, report *simulation.Report) (*simulation.Scenario, *simulation.Report, error) {
	var failed error
	s = simulation.Shrink(s, mostTries, func(candidate *simulation.Scenario) bool {
		if failed != nil {
			return false
		}
		r, err := m.play(ctx, candidate, false)
		if err != nil {
			failed = err
			return false
		}
		if len(r.Broken) > 0 {
			report = r
		}
		return len(r.Broken) > 0
	})
	return s, report, failed
}
