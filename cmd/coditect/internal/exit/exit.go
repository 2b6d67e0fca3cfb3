// Package exit has the exit codes of the program, and the errors that say with which
// code and message a command ends. It decides nothing else.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/store"
)

// Exit codes.
const (
	Complete    = 0
	Failed      = 1
	Usage       = 2
	Partly      = 3 // complete with failed units
	Paused      = 4
	Cancelled   = 5
	Interrupted = 130
)

// ErrInterrupted is why the context of the command ends.
var ErrInterrupted = errors.New("interrupted")

// An Error ends the command with a code. A nil err means that the command has
// already printed everything.
type Error struct {
	Code int
	Err  error
	Help bool // the help of the command tells how to call it
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// UsageError returns an error about how the command was called. Its help is offered.
func UsageError(format string, args ...any) error {
	return &Error{Code: Usage, Err: fmt.Errorf(format, args...), Help: true}
}

// RefusedError returns an error about something that the command was given, such as a
// file. The code is that of a wrong call, but help would not help.
func RefusedError(format string, args ...any) error {
	return &Error{Code: Usage, Err: fmt.Errorf(format, args...)}
}

// OffersHelp reports whether the help of the command tells what was wrong.
func OffersHelp(err error) bool {
	var exit *Error
	return errors.As(err, &exit) && exit.Help
}

// OfJob returns the exit code for the state of a job.
func OfJob(j *mapreduce.Job) int {
	switch j.State {
	case mapreduce.JobComplete:
		if j.FailedUnits > 0 {
			return Partly
		}
		return Complete
	case mapreduce.JobPaused:
		return Paused
	case mapreduce.JobCancelled:
		return Cancelled
	}
	return Failed
}

// With returns the error that ends the command with a code; nil for 0.
func With(code int) error {
	if code == Complete {
		return nil
	}
	return &Error{Code: code}
}

// CodeOf returns the exit code of an error.
func CodeOf(err error) int {
	var exit *Error
	switch {
	case err == nil:
		return Complete
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, ErrInterrupted):
		return Interrupted
	case errors.Is(err, store.ErrForeign):
		return Usage
	}

	switch errs.KindOf(err) {
	case errs.Invalid, errs.NotFound, errs.Exists, errs.Precondition:
		return Usage // the command does not fit the state of things
	}
	return Failed
}

// Message returns the message for the user; "" if there is nothing to say.
func Message(err error) string {
	return withoutCalls(err, messageOf(err))
}

// withoutCalls returns a message about a file without the name of the call of the operating
// system that failed.
func withoutCalls(err error, message string) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return strings.Replace(message, p.Error(), p.Path+": "+p.Err.Error(), 1)
	}
	return message
}

func messageOf(err error) string {
	var exit *Error
	switch found := errors.As(err, &exit); {
	case found && exit.Err == nil:
		return ""
	case !found && errors.Is(err, ErrInterrupted):
		return "" // the user pressed Ctrl-C, and knows
	}

	var e *errs.Error
	if errors.As(err, &e) && e.Field != "" {
		return flagOf(e.Field) + ": " + treeFlags().Replace(e.Message)
	}

	if errs.ReasonOf(err) == errs.StoreFull || errors.Is(err, store.ErrNoSpace) {
		return err.Error() + "; then give this command again" // jobs that run go on by themselves, and it has ended
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

	if name, ok := strings.CutPrefix(field, "vars."); ok && slices.Contains(parameters.Names(), parameters.Name(name)) {
		return "--" + parameters.Name(name).Flag()
	} else if ok {
		return "--var " + name
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
		pairs = append(pairs, strings.ReplaceAll(flag, "-", "_"), "--"+flag)
	}
	return strings.NewReplacer(pairs...)
}

// Cause returns err, or the cause of ctx if ctx has ended. It keeps an Error,
// which already has a message for the user.
func Cause(ctx context.Context, err error) error {
	var exit *Error
	if err == nil || ctx.Err() == nil || errors.As(err, &exit) {
		return err
	}
	return context.Cause(ctx)
}
