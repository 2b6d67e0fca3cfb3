package source

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/coditect/mapreduce/api/schema/validator"
)

// DraftsOf returns the drafts of JSON Schema by which a schema may be meant, the likeliest
// first. Many schemas name none, or one that nobody knows; then keywords that only earlier
// drafts had in their form tell.
func (f *Faults) DraftsOf(root *Node, doc any) []*jsonschema.Draft {
	if named := root.Get("$schema"); named != nil {
		known := regexp.MustCompile(`^https?://json-schema\.org/(draft-0[467]|draft/20(19-09|20-12))/schema#?$`)
		if known.MatchString(named.Text) {
			return []*jsonschema.Draft{jsonschema.Draft2020}
		}
		f.Warn(named, "$schema", "%q is no draft of JSON Schema that is known, from 4 to 2020-12; the schema is read as one of these", Clip(named.Text))
		if m, ok := doc.(map[string]any); ok {
			delete(m, "$schema")
		}
	}

	drafts := []*jsonschema.Draft{jsonschema.Draft2020}
	if isWritten(root, Keywords, func(n *Node) bool { items := n.Get("items"); return items != nil && items.Kind == List }) {
		drafts = append(drafts, jsonschema.Draft7)
	}

	if isWritten(root, Keywords, func(n *Node) bool {
		isOld := func(key string) bool { v := n.Get(key); return v != nil && v.Kind == Bool }
		return isOld("exclusiveMinimum") || isOld("exclusiveMaximum") || n != root && n.Get("$id") != nil // which draft 4 does not know
	}) {
		drafts = append(drafts, jsonschema.Draft4)
	}

	return drafts
}

// isWritten reports whether told holds of some schema object of a part of a schema.
func isWritten(n *Node, as Role, told func(*Node) bool) bool {
	if as == Data || as == Hints || as == Values {
		return false
	}

	if as == Keywords && n.Kind == Map && told(n) {
		return true
	}

	for i, item := range n.Items {
		inner := as
		if n.Kind == Map {
			inner = as.RoleOf(n.Keys[i].Text)
		}
		if isWritten(item, inner, told) {
			return true
		}
	}

	return false
}

// CompileError finds the places that a compiler error speaks of.
func (f *Faults) CompileError(root *Node, err error) {
	var invalid *jsonschema.SchemaValidationError
	var mismatch *jsonschema.ValidationError

	ours := slices.Clone(f.Errs)
	if !errors.As(err, &invalid) || !errors.As(invalid.Err, &mismatch) {
		if len(ours) == 0 { // else it says again what we found
			f.RecordFault(root, "", "%s", strings.ReplaceAll(err.Error(), validator.Resource, ""))
		}
		return
	}
	// Each fault is put to the deepest node on the way to it that the file has.
	for _, leaf := range validator.Leaves(mismatch) {
		n, path := root, ""
		for _, token := range leaf.InstanceLocation {
			next := n.ChildAt(token)
			if next == nil {
				break
			}
			n, path = next, JoinPath(path, token)
		}

		known := func(e *Error) bool { return e.Line == n.Line && e.Column == n.Col }
		// What was found before in this place is said in better words.
		if !slices.ContainsFunc(ours, known) {
			f.RecordFault(n, path, "%s", leaf.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
		}
	}
}
