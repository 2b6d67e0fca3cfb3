package tool

import (
	"fmt"
	"slices"
	"strings"
)

// Only returns a kit that has some tools of another one, which are named as pipelines name
// them within the kit. Closing it closes the other. An error wraps ErrNoTool, and names a
// tool that the kit does not have.
func Only(kit Kit, names ...string) (Kit, error) {
	all := kit.Tools()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(t Spec) bool { return t.memberName() == name }) {
			have := make([]string, len(all))
			for i, t := range all {
				have[i] = t.memberName()
			}
			return nil, fmt.Errorf("%w as %q in %s; it has %s", ErrNoTool, name, kit.Name(), strings.Join(have, ", "))
		}
	}

	return narrowed{kit, slices.DeleteFunc(slices.Clone(all), func(t Spec) bool { return !slices.Contains(names, t.memberName()) })}, nil
}

// A narrowed kit has some tools of another one. Its callers check the names of tools.
type narrowed struct {
	Kit
	tools []Spec
}

// Tools implements Kit.
func (n narrowed) Tools() []Spec { return slices.Clone(n.tools) }
