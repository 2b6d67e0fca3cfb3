// Command soak lets a server and two workers work for hours on jobs of every kind, and looks
// whether anything grows that should not:
//
//	go run ./internal/dev/soak -program bin/coditect-scripted -hours 24
//	go run ./internal/dev/soak -program bin/coditect-scripted-fdb -store fdb:fdb.cluster -hours 24
//
// Jobs are submitted at a low rate, read while they run and after they have ended; some are
// cancelled, and old ones are deleted. One worker is killed again and again, so that the
// other and the server may be looked at as processes that live long. At each interval it
// checks the whole store, and notes the memory, descriptors and goroutines of each process,
// the keys and bytes of the store by its own count, the bytes of its folder, and the jobs
// that are kept. Every hour and at its end it prints, for each of these, how much it grows
// over the second half of the time, beside its mean. It fails if something grows by more than its
// bound, a check finds something wrong, or a job does not end as it should.
//
// It knows the service by its protocol alone. The program has to be built with the tag
// scripted, as one kind of job has a model that follows a script.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// A config says what is done, and for how long.
type config struct {
	program string
	store   string        // fdb:FILE, or empty for the embedded one
	data    string        // the folder
	time    time.Duration // how long it lasts
	every   time.Duration // between two samples
	jobs    time.Duration // between two submissions
	kill    time.Duration // between two kills
	report  time.Duration // between two tables
	keep    int           // jobs that have ended and are not yet deleted
	seed    uint64
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var c config
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.program, "program", "bin/coditect-scripted", "the `program`, built with the tag scripted")
	flags.StringVar(&c.store, "store", "", "where jobs are kept: fdb:`FILE` (default: the embedded store, in the folder)")
	flags.StringVar(&c.data, "data", "", "`folder` for the store and the logs of all processes; it must be empty or not there (default: a temporary one)")
	hours := flags.Float64("hours", 24, "how long it lasts")
	flags.DurationVar(&c.every, "every", 2*time.Minute, "time between two samples")
	flags.DurationVar(&c.jobs, "jobs", 5*time.Second, "time between two submissions")
	flags.DurationVar(&c.kill, "kill", 7*time.Minute, "time between two kills of a worker")
	flags.IntVar(&c.keep, "keep", 40, "how many jobs that have ended are kept")
	flags.Uint64Var(&c.seed, "seed", 1, "of what is drawn at random")
	out := flags.String("out", "", "`file` to which samples and tables are written (default: standard output)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c.time, c.report = time.Duration(*hours*float64(time.Hour)), time.Hour

	if *out != "" {
		f, err := os.OpenFile(*out, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		stdout = f
	}

	if c.data == "" {
		if c.data, err = os.MkdirTemp("", "soak-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(c.data)) }()
	}
	return soak(ctx, c, stdout)
}

// soak works until its time is over, and says what grows and what went wrong.
func soak(ctx context.Context, c config, out io.Writer) (err error) {
	h, err := openHouse(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()

	working, stop := context.WithTimeout(ctx, c.time)
	defer stop()
	l := newLoad(h, c)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.run(ctx, working)
	}()

	w := &watch{house: h, load: l, config: c, out: out, begun: time.Now()}
	w.run(working)
	stop()
	<-ended

	return w.verdict(true)
}
