package source

import "fmt"

// Faults are what is wrong with a file, as far as it was read.
type Faults struct {
	File     string
	Errs     Errors
	Warnings Errors // what is accepted, and has no effect or another than its author may think
}

// RecordFault notes what is wrong with a value of the file, at a path.
func (f *Faults) RecordFault(n *Node, path, format string, args ...any) {
	f.Errs = append(f.Errs, &Error{
		File: f.File, Line: n.Line, Column: n.Col, Path: path, Msg: fmt.Sprintf(format, args...),
	})
}

// Warn notes what is accepted and has no effect, or another than its author may think.
func (f *Faults) Warn(n *Node, path, format string, args ...any) {
	f.Warnings = append(f.Warnings, &Error{
		File: f.File, Line: n.Line, Column: n.Col, Path: path, Msg: fmt.Sprintf(format, args...),
	})
}
