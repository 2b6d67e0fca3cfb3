package main

import (
	"context"
	"io"
	"strings"
	"time"
)

// MainCode is the program without its end.
var MainCode = mainCode

// Run runs a command line with nothing set and returns the exit code.
func Run(ctx context.Context, args []string, out io.Writer) int {
	return RunAttending(ctx, args, out, 0)
}

// RunAttending does so and looks that often whether the store of a service answers.
func RunAttending(ctx context.Context, args []string, out io.Writer, every time.Duration) int {
	a := &app{stdin: strings.NewReader(""), stdout: out, stderr: out, getenv: func(string) string { return "" }, attendEvery: every}
	return a.runMain(ctx, args)
}
