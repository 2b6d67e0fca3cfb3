// Coditect extracts structured data from many documents, with a checked citation
// behind every value.
//
// This package reads the command line, connects the parts, shows progress and turns
// outcomes into exit codes. It decides nothing about jobs: it calls
// mapreduce.Client, whose service runs in this process or on a server.
package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/step"
)

// version is set by the linker.
var version string

func main() { os.Exit(mainCode()) }

// mainCode runs the command line of this process and returns its exit code.
func mainCode() int {
	ctx, stop := withInterrupt(context.Background())
	defer stop()
	a := &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv,
		terminal: term.IsTerminal(int(os.Stderr.Fd())),
		width:    func() int { return terminalWidth(os.Stderr) },
	}
	return a.runMain(ctx, os.Args[1:])
}

// An app is one run of the command line.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer // without control characters once runMain has begun
	screen         io.Writer // stderr as it is, for the progress meter
	getenv         func(string) string
	terminal       bool // stderr is one
	width          func() int
	attendEvery    time.Duration // between looks at the store of a service; 0 is the default

	global globals // set by flags
	models modelFlags
	limits limitFlags
	steps  *step.Registry          // set by providers
	askers map[string]*model.Agent // set by providers; those of agents that ask models
	gates  *decorator.Gates        // set by providers; of their calls
}

func terminalWidth(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 80
	}
	return width
}

// versionOf returns the version of this program.
func versionOf() string {
	built := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		built = info.Main.Version
	}
	return cmp.Or(version, built, "unknown")
}

// withInterrupt returns a context that ends with errInterrupted at the first
// SIGINT or SIGTERM. The second ends the process at once.
func withInterrupt(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for first := true; ; first = false {
			select {
			case <-ended:
				return
			case <-signals:
			}
			if !first {
				os.Exit(exitInterrupted)
			}
			cancel(errInterrupted)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(ended)
		<-done
		cancel(nil)
	}
}
