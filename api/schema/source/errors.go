package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An Error is one fault of a schema file.
type Error struct {
	File   string
	Line   int    // from 1; 0 when the fault has no place
	Column int    // from 1, in characters
	Path   string // where in the schema, names joined by dots; "" is the top
	Msg    string
}

// Error says where the fault is and what it is, as compilers do.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}

	b.WriteString(": ")

	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Msg)

	return b.String()
}

// Errors are all faults of a schema file, in the order of its lines.
type Errors []*Error

// Error gives one fault a line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes the single faults visible to errors.As.
func (es Errors) Unwrap() []error {
	errs := make([]error, len(es))
	for i, e := range es {
		errs[i] = e
	}
	return errs
}

// SortedUnique returns es sorted by position, without duplicates.
func (es Errors) SortedUnique() Errors {
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	return slices.CompactFunc(es, func(a, b *Error) bool { return *a == *b })
}
