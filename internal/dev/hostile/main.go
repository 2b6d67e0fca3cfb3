// Command hostile attacks a server of this repository as a hostile client and a hostile
// worker would, while an honest tenant's jobs run, and prints what came of it. It fails
// unless the server lived, stayed small and quick, and the honest results are equal.
// It knows the service by its protocol alone: what it sends is what the protocol lets a
// stranger send, and it must not import anything else of the project.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("hostile", flag.ContinueOnError)
	flags.SetOutput(stderr)
	program := flags.String("program", "bin/coditect", "the program whose server is attacked")
	long := flags.Duration("time", 30*time.Second, "how long the attacks last")
	settle := flags.Duration("settle", time.Minute, "how long after them the server may take to give memory back")
	seed := flags.Uint64("seed", 1, "of what is drawn at random")
	only := flags.String("only", "", "the attacks whose names match this expression")
	untimed := flags.Bool("untimed", false, "print how quick the server was, and how soon it gave memory back, but do not fail for it")
	tenant := flags.String("tenant", "", "be the honest tenant of the server at this `address`; the attacker starts it")

	if err := flags.Parse(args); err != nil {
		return err
	}

	if *tenant != "" {
		// The attacker starts this program again with that flag.
		return RunTenant(ctx, *tenant, os.Stdin, stdout)
	}

	r, err := Run(ctx, Config{Program: *program, Time: *long, Settle: *settle, Seed: *seed, Only: *only, Untimed: *untimed})
	if r != nil {
		r.Print(stdout)
	}
	return err
}
