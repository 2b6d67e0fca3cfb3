package agentfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/agentfile"
)

const librarian = `---
name: librarian
description: knows the law books
tools: Read, WebFetch, mcp__books__look
model: inherit
color: blue
---

You look through law books for {{input.question}}.

Quote letter by letter.
`

func parseAgent(t *testing.T, file, text string) *pipeline.Agent {
	t.Helper()
	a, _, err := agentfile.Parse(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// E3: an agent has a name, a description, instructions, tools and a model of its own, out of a
// Markdown file as other programs have them.
func TestAgentFiles(t *testing.T) {
	want := &pipeline.Agent{
		Name: "librarian", Role: "librarian", Description: "knows the law books",
		Tools: []string{"read", "fetch", "mcp:books/look"}, Instructions: "You look through law books for {{input.question}}.\n\nQuote letter by letter.",
	}
	for name, text := range map[string]string{
		"as other programs have it": librarian,
		"with a mark before it":     "\ufeff" + librarian,
		"of Windows":                strings.ReplaceAll(librarian, "\n", "\r\n"),
		"tools as a list":           strings.Replace(librarian, "Read, WebFetch, mcp__books__look", "\n  - read\n  - fetch\n  - mcp:books/look", 1),
	} {
		if diff := cmp.Diff(want, parseAgent(t, "a.md", text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if a := parseAgent(t, "a.md", "---\nname: a\ndescription: b\nmodel: cheap\n---\nDo it.\n---\nAnd more.\n"); a.Model != "cheap" || a.Instructions != "Do it.\n---\nAnd more." || a.Tools != nil {
		t.Errorf("%+v", a)
	}
}

// Files of other programs are read as they are. What has no effect here is left out, and said
// once.
func TestAgentFilesOfOthers(t *testing.T) {
	agent := func(tools ...string) *pipeline.Agent {
		return &pipeline.Agent{Name: "a", Role: "a", Description: "b", Instructions: "x", Tools: tools}
	}
	told := func(instructions string) *pipeline.Agent {
		a := agent()
		a.Instructions = instructions
		return a
	}
	named := func(name, description string) *pipeline.Agent {
		a := agent()
		a.Name, a.Role, a.Description = name, name, description
		return a
	}
	for name, tt := range map[string]struct {
		text  string
		want  *pipeline.Agent
		notes []string
	}{
		"keys of others":       {"---\nname: a\ndescription: b\nturns: 3\ncolor: red\npermissionMode: plan\n---\nx", agent(), []string{"keys without an effect: turns, permissionMode"}},
		"a colon in a text":    {"---\nname: a\ndescription: Use this: it is \"good\".\ntools: Read\n---\nx", &pipeline.Agent{Name: "a", Role: "a", Description: `Use this: it is "good".`, Instructions: "x", Tools: []string{"read"}}, nil},
		"a text of many lines": {"---\nname: a\ndescription: Use: it\n  <example>user: hi</example>\ntools: Read\n---\nx", &pipeline.Agent{Name: "a", Role: "a", Description: "Use: it\n<example>user: hi</example>", Instructions: "x", Tools: []string{"read"}}, nil},
		"tools that change":    {"---\nname: a\ndescription: b\ntools: Read, Bash, Edit, Bash(git:*), TaskList, other:look, LS, Read\n---\nx", agent("read", "glob"), []string{"tools that agents do not have here are left out: Bash, Edit, Bash(git:*), TaskList, other:look"}},
		"tools of a server":    {"---\nname: a\ndescription: b\ntools: [mcp__books__look, mcp__shop]\n---\nx", agent("mcp:books/look", "mcp:shop"), nil},
		"no tools":             {"---\nname: a\ndescription: b\ntools: []\n---\nx", agent(), nil},
		"the model of others":  {"---\nname: a\ndescription: b\nmodel: inherit\n---\nx", agent(), nil},
		"a model in words":     {"---\nname: a\ndescription: b\nmodel: my best\n---\nx", agent(), []string{`its model, "my best", is neither provider/model nor an alias: it asks the model of the run`}},
		"braces in the text":   {"---\nname: a\ndescription: b\n---\nwrite ${{ secrets.X }} and {{var}}", told("write ${ { secrets.X } } and { {var} }"), []string{"braces that name no variable stand apart: { { and } }"}},
		"a name with spaces":   {"---\nname: Code Reviewer!\ndescription: b\n---\nx", named("Code-Reviewer", "b"), []string{"its name is Code-Reviewer here, as a name has no other characters than letters, digits, dots, dashes and underscores"}},
		"a long text":          {"---\nname: a\ndescription: b\n---\n" + strings.Repeat("word ", 12_000), told(strings.TrimSpace(strings.Repeat("word ", 12_000))), nil},
	} {
		got, notes, err := agentfile.Parse("a.md", []byte(tt.text))
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if diff := cmp.Diff(tt.notes, notes); diff != "" {
			t.Errorf("%s: notes (-want +got):\n%s", name, diff)
		}
	}
}

// A wrong file is refused with its line and the key.
func TestAgentFilesThatAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, text, op, field, message string }{
		{"empty", "", "a.md:1", "agent", "must begin with front matter"},
		{"no front matter", "# Librarian\n", "a.md:1", "agent", "must begin with front matter"},
		{"no end", "---\nname: a\n", "a.md:1", "agent", "does not end"},
		{"not UTF-8", "---\nname: \xff\n---\nx", "a.md", "agent", "not valid UTF-8"},
		{"too long", "---\n" + strings.Repeat("#", agentfile.MaxBytes), "a.md", "agent", "at most 65536"},
		{"not a mapping", "---\n- name\n---\nx", "a.md:2", "agent", "must be a mapping"},
		{"twice", "---\nname: a\nname: b\n---\nx", "a.md:3", "agent", "stands in line 2 already"},
		{"no name", "---\ndescription: b\n---\nx", "a.md:2", "name", "is required"},
		{"no description", "---\nname: a\n---\nx", "a.md:2", "description", "is required"},
		{"a name of no letters", "---\ndescription: b\nname: [\n---\nx", "a.md:3", "name", "must be 1 to 64 letters"},
		{"no instructions", "---\nname: a\ndescription: b\n---\n \n", "a.md:4", "agent", "has no text"},
	} {
		_, _, err := agentfile.Parse("a.md", []byte(tt.text))
		e, ok := errors.AsType[*errs.Error](err)
		if !ok || e.Op != tt.op || e.Field != tt.field || !strings.Contains(e.Message, tt.message) {
			t.Errorf("%s: %#v, want %s: %s: %s", tt.name, err, tt.op, tt.field, tt.message)
		}
	}
}
