package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/cmd/coditect/internal/script"
)

// MainCode is the program without its end, and with the scripted provider.
func MainCode() int { return mainCode(script.Extra()) }

// scripted are the runners of a program that has the scripted provider.
func scripted() runners.Runners { return runners.Runners{Extra: script.Extra()} }

// Run runs a command line with nothing set and returns the exit code.
func Run(ctx context.Context, args []string, out io.Writer) int {
	return RunAttending(ctx, args, out, 0)
}

// RunAttending does so and looks that often whether the store of a service answers.
func RunAttending(ctx context.Context, args []string, out io.Writer, every time.Duration) int {
	return runMain(ctx, &program.Program{
		Console: console.Console{Stdin: strings.NewReader(""), Stdout: out, Stderr: out},
		Getenv:  func(string) string { return "" }, AttendEvery: every, Runners: scripted(),
	}, args)
}

// RunIn runs a command line with the settings of an environment, NAME=VALUE, of which the
// last of a name counts, and returns the exit code.
func RunIn(ctx context.Context, env, args []string, out, said io.Writer) int {
	settings := make(map[string]string, len(env))
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		settings[name] = value
	}
	return runMain(ctx, &program.Program{
		Console: console.Console{Stdin: strings.NewReader(""), Stdout: out, Stderr: said},
		Getenv:  func(name string) string { return settings[name] }, Environ: env, Runners: scripted(),
	}, args)
}

// CheckCommandLine returns what is wrong with a command line: a command, a flag or an
// argument that does not exist. It runs nothing.
func CheckCommandLine(args []string) error {
	root := rootCommand(&program.Program{
		Console: console.Console{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard},
		Getenv:  func(string) string { return "" },
	})
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if given := cmd.Flags().Args(); len(given) > 0 { // a text may name a command alone
		return cmd.ValidateArgs(given)
	}
	return nil
}
