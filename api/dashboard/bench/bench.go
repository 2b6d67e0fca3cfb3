// Package bench is the workbench of the pages: a schema beside a few sample documents, what each
// of its fields finds in them by rules and why not, and the schema as a form, both ways.
//
// Nothing of it is stored. What it does is bounded in bytes and in time, and so is how much of it
// is done at once, so that nobody who tries something keeps others from their jobs. The schema is
// a text that somebody types: an edit of the form changes the lines of one property and no others,
// so that comments, blank lines and the order stay.
//
// What runs rules and reads files it is given, and so is what writes the parts of its page. It
// imports nothing of the project but api packages, and not the pages around it.
package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/schema"
)

// Tools are what the program has for the workbench.
type Tools struct {
	// Try says what a schema finds in documents. It ends with ctx.
	Try func(ctx context.Context, s *schema.Schema, sample *Sample) (*Report, error)
	// Infer proposes a schema for documents.
	Infer func(docs []Document) (string, error)
	// Read returns the text of a file. An error says why it has none, for people.
	Read func(ctx context.Context, name string, data []byte) (Document, error)
}

// A Document is a sample of what jobs read.
type Document struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// Notes are what readers should know of the text, such as pages without any.
	Notes []string `json:"notes,omitempty"`
}

// A Sample is what somebody tries.
type Sample struct {
	Schema    string     `json:"schema"`
	Documents []Document `json:"documents"`
	Truth     string     `json:"truth"` // JSON lines, as eval reads them; empty if there is none
	Shown     int        `json:"shown"` // which document is to be shown with its passages
}

// Bounds of what is tried at once.
const (
	MaxDocuments = 50
	MaxTexts     = 2 << 20  // bytes of all documents
	MaxSchema    = 1 << 20  // bytes
	MaxTruth     = 1 << 20  // bytes
	MaxFile      = 16 << 20 // bytes of a file that is read
	maxTime      = 5 * time.Second
	atOnce       = 4 // that are tried at the same time
)

// A Bench tries schemas. It is safe for use by several goroutines.
type Bench struct {
	tools Tools
	turns chan struct{} // one for each that is tried now
}

// New returns a workbench.
func New(t Tools) *Bench { return &Bench{tools: t, turns: make(chan struct{}, atOnce)} }

// CanTry reports whether the program can try schemas.
func (b *Bench) CanTry() bool { return b.tools.Try != nil }

// An Outcome is what somebody sees of what they have tried.
type Outcome struct {
	Problems []Problem // of the schema; warnings leave it usable
	Broken   bool      // the schema cannot be used, and there is no report
	Rows     []Row     // the schema as a form; nil while its text cannot be read
	Report   *Report   // nil without documents
	Failed   string    // why there is no report although schema and documents are there
	Shown    *Shown    // the document with its passages
	Index    int       // of that document among those of the sample
	Took     time.Duration
}

// A Problem is a fault of a schema, or what may surprise its author.
type Problem struct {
	Line, Column int // from 1; 0 where it has no place
	Path, Text   string
	Warning      bool
}

// Run checks a schema, and tries it on the documents if there are any.
func (b *Bench) Run(ctx context.Context, s *Sample) (*Outcome, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	leave, err := b.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	begun := time.Now()
	ctx, stop := context.WithTimeout(ctx, maxTime)
	defer stop()

	out := &Outcome{Rows: readRows(s.Schema), Index: s.Shown}
	parsed, err := schema.Parse("schema", []byte(s.Schema))
	if err != nil {
		out.Problems, out.Broken = problems(err), true
		out.Shown = Show(s, nil)
		return out, nil
	}
	for _, w := range parsed.Warnings {
		out.Problems = append(out.Problems, Problem{w.Line, w.Column, w.Path, w.Msg, true})
	}

	if len(s.Documents) > 0 {
		out.Report, err = b.tools.Try(ctx, parsed, s)
		if out.Failed, err = reason(ctx, err); err != nil {
			return nil, err
		}
	}
	out.Shown = Show(s, out.Report)
	out.Took = time.Since(begun)
	return out, nil
}

// reason tells what went wrong with what somebody has typed from what ends the call.
func reason(ctx context.Context, err error) (failed string, fatal error) {
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return fmt.Sprintf("it took longer than %v, and was stopped: try fewer or shorter documents", maxTime), nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	}
	return err.Error(), nil
}

// enter waits for a turn.
func (b *Bench) enter(ctx context.Context) (leave func(), err error) {
	if b.tools.Try == nil {
		return nil, errs.New(errs.Precondition, "this program has no rules to try a schema with")
	}

	wait := time.NewTimer(maxTime)
	defer wait.Stop()
	select {
	case b.turns <- struct{}{}:
		return func() { <-b.turns }, nil
	case <-wait.C:
		return nil, errs.New(errs.Exhausted, "%d schemas are being tried, as many as may be at once; what you typed is kept, so try again", atOnce)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// check refuses what is too much, and says of what.
func (s *Sample) check() error {
	texts := 0
	for _, d := range s.Documents {
		texts += len(d.Text)
	}

	switch {
	case len(s.Schema) > MaxSchema:
		return errs.Field("schema", "has %d KiB, of %d KiB at most", len(s.Schema)>>10, MaxSchema>>10)
	case len(s.Documents) > MaxDocuments:
		return errs.Field("documents", "are %d, of %d at most: a few of each kind show what a schema finds; the job then reads all", len(s.Documents), MaxDocuments)
	case texts > MaxTexts:
		return errs.Field("documents", "have %d KiB of text together, of %d KiB at most: leave some out, and the job then reads all", texts>>10, MaxTexts>>10)
	case len(s.Truth) > MaxTruth:
		return errs.Field("truth", "has %d KiB, of %d KiB at most", len(s.Truth)>>10, MaxTruth>>10)
	case strings.TrimSpace(s.Schema) == "" && len(s.Documents) == 0:
		return errs.Field("schema", "is empty: type one, or choose documents and propose one")
	}
	return nil
}

// problems are the faults of a schema.
func problems(err error) []Problem {
	var faults schema.Errors
	if !errors.As(err, &faults) {
		return []Problem{{Text: err.Error()}}
	}
	all := make([]Problem, len(faults))
	for i, e := range faults {
		all[i] = Problem{Line: e.Line, Column: e.Column, Path: e.Path, Text: e.Msg}
	}
	return all
}

// Infer proposes a schema for documents.
func (b *Bench) Infer(ctx context.Context, s *Sample) (string, error) {
	s.Schema = "-" // it is not looked at
	if err := s.check(); err != nil {
		return "", err
	}
	if len(s.Documents) == 0 {
		return "", errs.Field("documents", "are missing: choose a few, and their labels and tables become fields")
	}
	leave, err := b.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()

	proposed, err := b.tools.Infer(s.Documents)
	if err != nil {
		return "", errs.Field("documents", "%w", err)
	}
	return proposed, nil
}

// Read returns the text of a file.
func (b *Bench) Read(ctx context.Context, name string, data []byte) (Document, error) {
	if len(data) > MaxFile {
		return Document{}, errs.Field("documents", "%q has more than %d MiB", name, MaxFile>>20)
	}
	leave, err := b.enter(ctx)
	if err != nil {
		return Document{}, err
	}
	defer leave()

	ctx, stop := context.WithTimeout(ctx, readTime)
	defer stop()
	d, err := b.tools.Read(ctx, name, data)
	if err != nil {
		return d, errs.Field("documents", "%q: %w", name, err)
	}
	if len(d.Text) > MaxTexts {
		return Document{}, errs.Field("documents", "%q has %d KiB of text, of %d KiB at most", name, len(d.Text)>>10, MaxTexts>>10)
	}
	return d, nil
}

// readTime bounds the reading of one file.
const readTime = 30 * time.Second
