package template_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/pipeline/internal/template"
)

func TestRender(t *testing.T) {
	values := map[template.Variable]string{
		{Space: template.Item, Name: "dish"}:    "soup,\nwith {{input.salt}}\u200b",
		{Space: template.Input, Name: "salt"}:   "",
		{Space: template.OfAgents, Name: "ask"}: "ann (looks)\nbob (writes)",
	}
	value := func(v template.Variable) (string, bool) {
		text, ok := values[v]
		return text, ok
	}

	for text, want := range map[string]string{
		"":                            "",
		"plain { text }":              "plain { text }",
		"a {{ .item.dish }} b":        "a soup, with {{input.salt}} b", // one line, all of it visible, and no template
		"{{input.salt}}{{item.dish}}": "soup, with {{input.salt}}",
		"of {{agents.ask}}":           "of ann (looks)\nbob (writes)",
	} {
		parsed, err := template.Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, err := parsed.Render(value); err != nil || got != want {
			t.Errorf("%q is %q, want %q: %v", text, got, want, err)
		}
	}

	parsed, err := template.Parse("{{items.count}} {{item.dish}} {{item.dish}}")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := parsed.Render(value); err == nil || !strings.Contains(err.Error(), "needs the variable items.count") {
		t.Errorf("a variable without a value: %q, %v", got, err)
	}
	want := []template.Variable{{Space: template.Item, Name: "dish"}, {Space: template.Items, Name: "count"}}
	if diff := cmp.Diff(want, parsed.Variables()); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if !parsed.NamesSpace(template.Items) || parsed.NamesSpace(template.Input) {
		t.Error("it names items, and no input")
	}
}

func TestNoTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"a }} b": "}} without {{", "{{item.x": "{{ without }}", "{{dish}}": "no variable", "{{item.}}": "no variable", "{{if .item.x}}": "no variable",
	} {
		if _, err := template.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
