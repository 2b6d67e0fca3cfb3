// Command scale simulates a large fleet in virtual time, with the scheduler that
// orchestrators run, and prints how busy its slots are and what it asks of the store.
// docs/scale.md has the figures of a run.
//
// What each orchestrator does next is decided by that scheduler. Simulated are the time that
// things take, and the store: which units wait, and which transactions conflict.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	var c Config
	flag.IntVar(&c.Orchestrators, "orchestrators", 100, "orchestrators")
	flag.IntVar(&c.Workers, "workers", 10_000, "workers")
	flag.IntVar(&c.Slots, "slots", 1, "slots of a worker")
	flag.IntVar(&c.Prefetch, "prefetch", 0, "units that a worker holds beside those that run")
	flag.IntVar(&c.Units, "units", 1_000_000, "units of the job")
	flag.IntVar(&c.Lanes, "lanes", 8, "transactions of an orchestrator at once")
	flag.DurationVar(&c.Mean, "mean", 10*time.Second, "mean time of a unit; the times are log-normal")
	flag.Float64Var(&c.Sigma, "sigma", .8, "deviation of the logarithm of the times")
	flag.DurationVar(&c.Turn.Median, "turn", 5*time.Millisecond, "median time of a transaction that writes")
	flag.DurationVar(&c.Turn.P99, "turn-p99", 30*time.Millisecond, "its 99th percentile")
	flag.DurationVar(&c.Read.Median, "read", 2*time.Millisecond, "median time of a reading of a queue")
	flag.DurationVar(&c.Read.P99, "read-p99", 10*time.Millisecond, "its 99th percentile")
	flag.DurationVar(&c.Network, "network", time.Millisecond, "time of a message between worker and orchestrator")
	flag.Uint64Var(&c.Seed, "seed", 1, "of all that is drawn")
	flag.Parse()

	start := time.Now()
	r, err := Run(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
	r.Print(os.Stdout)
	fmt.Printf("simulated in %.1f s\n", time.Since(start).Seconds())
}
