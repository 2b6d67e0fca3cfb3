// Package template reads and renders the texts of agents and tasks, which may name variables and can do
// nothing else. It knows where variables are from, and not what they stand for. It must import nothing of
// the project but how variables are named and how texts are shortened.
package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/pipeline/internal/naming"
	"github.com/coditect/mapreduce/api/shorten"
)

// A Template is a text that names variables, as {{item.dish}}. Nothing else can
// be done in one: no condition, no function, no other template.
type Template struct {
	pieces []piece
}

// A piece is a text, or a variable.
type piece struct {
	text string
	Variable
}

// A Variable is a variable of a template.
type Variable struct {
	Space string // where it is from; empty for text
	Name  string
}

// String returns the variable as templates name it.
func (v Variable) String() string { return v.Space + "." + v.Name }

// The spaces of variables.
const (
	// Item is what a unit gets of a stage that fans out: the id and the metadata of
	// a document, or the properties of an element. For a batch it is as Items.
	Item = "item"
	// Items are all inputs of a stage with each: all. Their number is items.count;
	// of an id or of metadata it is the values of all, in order.
	Items = "items"
	// Input is the space of the inputs of a run.
	Input = "input"
	// OfAgents is the space of the agents that may work in a stage, by its name.
	OfAgents = "agents"
)

// Parse reads a template.
func Parse(text string) (Template, error) {
	var t Template
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "{{")
		if strings.Contains(before, "}}") {
			return t, fmt.Errorf("has }} without {{ before it")
		}

		if before != "" {
			t.pieces = append(t.pieces, piece{text: before})
		}
		if !found {
			break
		}

		inside, next, closed := strings.Cut(after, "}}")
		if !closed {
			return t, fmt.Errorf("has {{ without }} behind it: %.40q", "{{"+after)
		}

		v, err := parseVariable(inside)
		if err != nil {
			return t, err
		}

		t.pieces = append(t.pieces, piece{Variable: v})
		rest = next
	}
	return t, nil
}

// parseVariable parses the text between braces. It accepts a leading dot, as other
// template languages have it.
func parseVariable(inside string) (Variable, error) {
	space, key, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(inside), "."), ".")
	if !slices.Contains([]string{Item, Items, Input, OfAgents}, space) || !naming.IsName(key) {
		return Variable{}, fmt.Errorf("names {{%.60s}}, which is no variable: those are item.NAME, items.NAME, input.NAME and agents.STAGE", inside)
	}
	return Variable{space, key}, nil
}

// Variables returns the variables of the template, sorted, each once.
func (t Template) Variables() []Variable {
	seen := make(map[Variable]bool)
	for _, p := range t.pieces {
		if p.Space != "" {
			seen[p.Variable] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b Variable) int { return strings.Compare(a.String(), b.String()) })
}

// NamesSpace reports whether the template names a variable of a space.
func (t Template) NamesSpace(space string) bool {
	return slices.ContainsFunc(t.pieces, func(p piece) bool { return p.Space == space })
}

// MaxValue bounds the value of a variable in a text, in characters.
const MaxValue = 1000

// Render returns the template with the values of its variables. A value is put
// on one line, without invisible characters, and is never read as a template.
func (t Template) Render(value func(Variable) (string, bool)) (string, error) {
	var b strings.Builder
	for _, p := range t.pieces {
		if p.Space == "" {
			b.WriteString(p.text)
			continue
		}

		text, ok := value(p.Variable)
		if !ok {
			return "", fmt.Errorf("needs the variable %s, which is not there", p.Variable)
		}
		if p.Space != OfAgents { // whose parts are plain
			text = shorten.Text(shorten.Visible(text), MaxValue)
		}

		b.WriteString(text)
	}

	return b.String(), nil
}
