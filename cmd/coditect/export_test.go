package main

import (
	"context"
	"io"
	"strings"
)

// MainCode is the program without its end.
var MainCode = mainCode

// Run runs a command line with nothing set and returns the exit code.
func Run(ctx context.Context, args []string, out io.Writer) int {
	a := &app{stdin: strings.NewReader(""), stdout: out, stderr: out, getenv: func(string) string { return "" }}
	return a.main(ctx, args)
}
