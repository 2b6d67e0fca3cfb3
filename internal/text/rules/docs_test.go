package rules_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/rules"
)

// example of the reference: the properties of a schema, a document, and what is found
// in it.
var exampleForm = regexp.MustCompile("(?s)```yaml\n([^`]*)```\n```text\n(.*?)```\n```json\n([^`]*)```")

// TestReference runs each example of the reference of hints, and checks that there is
// one for each hint.
func TestReference(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "schema.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for section := range strings.SplitSeq(string(page), "\n### ") {
		title, _, _ := strings.Cut(section, "\n")
		if strings.HasPrefix(title, "`given`") { // they are for stages that write
			for hint := range strings.SplitSeq(title, ", ") {
				shown[strings.Trim(hint, "`")] = true
			}
		}
		for _, example := range exampleForm.FindAllStringSubmatch(section, -1) {
			for _, hint := range schema.HintNames() {
				shown[hint] = shown[hint] || strings.Contains(title, "`"+hint+"`") && strings.Contains(example[1], hint+":")
			}
			t.Run(title, func(t *testing.T) { runExample(t, example[1], example[2], example[3]) })
		}
	}
	for _, hint := range schema.HintNames() {
		if !shown[hint] {
			t.Errorf("there is no example of the hint %s", hint)
		}
	}
}

func runExample(t *testing.T, properties, text, want string) {
	source := "type: object\nproperties:\n  " + strings.ReplaceAll(strings.TrimSpace(properties), "\n", "\n  ")
	s, err := schema.Parse("s.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	p, err := rules.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	r := one(t, p, text)
	got, err := json.Marshal(s.Nest(p.Values(&r)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, []byte(want)), decode(t, got)); diff != "" {
		t.Errorf("values (-want +got):\n%s\nmissing: %+v", diff, r.Missing)
	}
}

func decode(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}
