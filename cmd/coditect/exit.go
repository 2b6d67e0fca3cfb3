package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
)

// Exit codes.
const (
	exitComplete    = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPartly      = 3 // complete with failed units
	exitPaused      = 4
	exitCancelled   = 5
	exitInterrupted = 130
)

// errInterrupted is why the context of the command ends.
var errInterrupted = errors.New("interrupted")

// An exitError ends the command with a code. A nil err means that the command has
// already printed everything.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError returns an error about how the command was called.
func usageError(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// exitOf returns the exit code for the state of a job.
func exitOf(j *mapreduce.Job) int {
	switch j.State {
	case mapreduce.JobComplete:
		if j.FailedUnits > 0 {
			return exitPartly
		}
		return exitComplete
	case mapreduce.JobPaused:
		return exitPaused
	case mapreduce.JobCancelled:
		return exitCancelled
	}
	return exitFailed
}

// exitWith returns the error that ends the command with a code; nil for 0.
func exitWith(code int) error {
	if code == exitComplete {
		return nil
	}
	return &exitError{code: code}
}

// codeOf returns the exit code of an error.
func codeOf(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return exitComplete
	case errors.As(err, &exit):
		return exit.code
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.Is(err, store.ErrForeign):
		return exitUsage
	}
	switch errs.KindOf(err) {
	case errs.Invalid, errs.NotFound, errs.Exists, errs.Precondition:
		return exitUsage // the command does not fit the state of things
	}
	return exitFailed
}

// errorMessage returns the message for the user; "" if everything was printed already.
func errorMessage(err error) string {
	var exit *exitError
	if errors.As(err, &exit) && exit.err == nil {
		return ""
	}
	var e *errs.Error
	if errors.As(err, &e) && e.Field != "" {
		return flagOf(e.Field) + ": " + treeFlags().Replace(e.Message)
	}
	return err.Error()
}

// flagOf returns how a user names a field of a request.
func flagOf(field string) string {
	switch field {
	case "documents":
		return "--input"
	case "vars":
		return "--var"
	case "direct":
		return "the stage of --pipeline that reads all documents"
	}
	if strings.ContainsAny(field, ".[") {
		return field
	}
	return "--" + strings.ReplaceAll(field, "_", "-")
}

// treeFlags replaces the names of fields by those of their flags, in messages about
// rules between two settings of the tree.
func treeFlags() *strings.Replacer {
	var pairs []string
	for _, flag := range []string{
		"chunk-size", "target-token-budget", "context-window", "budget-ratio", "max-reduce-levels", "reduce-context-limit", "reduce-batch-size",
	} {
		pairs = append(pairs, settingName(flag), "--"+flag)
	}
	return strings.NewReplacer(pairs...)
}

// causeOf returns err, or the cause of ctx if ctx has ended. It keeps an exitError,
// which already has a message for the user.
func causeOf(ctx context.Context, err error) error {
	var exit *exitError
	if err == nil || ctx.Err() == nil || errors.As(err, &exit) {
		return err
	}
	return context.Cause(ctx)
}
