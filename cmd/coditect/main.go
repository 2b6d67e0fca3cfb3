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
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"golang.org/x/term"
	"google.golang.org/grpc/grpclog"

	"github.com/coditect/mapreduce/cmd/coditect/internal/apart"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
)

// version is set by the linker.
var version string

func main() { os.Exit(mainCode(extra())) }

// mainCode runs the command line of this process, with a provider beside its own, and returns its
// exit code.
func mainCode(beside runners.Extra) int {
	grpclog.SetLoggerV2(silentLog{})
	ctx, stop := withInterrupt(context.Background())
	defer stop()

	return runMain(ctx, &program.Program{
		Console: console.Console{
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
			StdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
			Terminal:       term.IsTerminal(int(os.Stderr.Fd())),
			Width:          func() int { return terminalWidth(os.Stderr) },
		},
		Getenv: os.Getenv, Environ: os.Environ(), Self: self(), Runners: runners.Runners{Extra: beside},
	}, os.Args[1:])
}

// self returns what starts this program again, with the same command line: by the name that
// it was started by, as what it does may depend on that.
func self() apart.Command {
	path, err := exec.LookPath(os.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		path, err = os.Executable()
	}
	if err != nil {
		return apart.Command{} // units that have to run alone have this process to themselves
	}

	return apart.Command{Path: path, Args: os.Args[1:], Env: os.Environ()}
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

// withInterrupt returns a context that ends with exit.ErrInterrupted at the first
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

			// The first signal asks for an orderly end; the second does not wait for it.
			if !first {
				os.Exit(exit.Interrupted)
			}
			cancel(exit.ErrInterrupted)
		}
	}()

	return ctx, func() {
		signal.Stop(signals)
		close(ended)
		<-done
		cancel(nil)
	}
}
