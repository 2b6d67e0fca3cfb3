package bench_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/dashboard/bench"
)

// Of every schema in CODITECT_TESTDATA/schemas the form can change each property that it shows, and
// then the text says so, has all its comments, and says the same of everything else.
func TestFormOfOthersSchemas(t *testing.T) {
	dir := os.Getenv("CODITECT_TESTDATA")
	if dir == "" {
		t.Skip("CODITECT_TESTDATA names no folder of public inputs")
	}
	files, err := filepath.Glob(filepath.Join(dir, "schemas", "*"))
	if err != nil || len(files) == 0 {
		t.Skip("there are no schemas in it")
	}

	changed, refused := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if len(text) > bench.MaxSchema {
			continue
		}
		out, err := bench.New(bench.Tools{Try: nothing}).Run(t.Context(), &bench.Sample{Schema: text})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for i, row := range out.Rows {
			if i%max(1, len(out.Rows)/12) != 0 {
				continue
			}
			got, err := bench.Apply(text, bench.Edit{At: row.At, What: "description", Value: "what: it is"})
			if err != nil {
				refused++
				t.Logf("%s%s: %v", filepath.Base(file), row.At, err)
				continue
			}
			changed++
			checkChange(t, filepath.Base(file)+row.At, text, got, row.At)
		}
	}
	t.Logf("%d properties were changed, %d could not be", changed, refused)
	if changed == 0 {
		t.Error("the form changes nothing")
	}
}

func checkChange(t *testing.T, name, before, after, at string) {
	t.Helper()
	want, got := comments(before), comments(after)
	for comment, n := range want {
		if got[comment] < n {
			t.Errorf("%s: the comment %q is lost", name, comment)
		}
	}

	var old, fresh any
	if yaml.Unmarshal([]byte(before), &old) != nil || yaml.Unmarshal([]byte(after), &fresh) != nil {
		t.Errorf("%s: the text cannot be read any more", name)
		return
	}
	steps := strings.Split(at, "/")[1:]
	setAt(old, steps)
	a, _ := yaml.Marshal(old)
	b, _ := yaml.Marshal(fresh)
	if !bytes.Equal(a, b) {
		t.Errorf("%s: something else has changed", name)
	}
}

// comments counts the comments of lines that are nothing else.
func comments(text string) map[string]int {
	all := make(map[string]int)
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "# ") {
			all[line]++
		}
	}
	return all
}

// setAt sets the description of what stands at a path.
func setAt(v any, steps []string) {
	for _, step := range steps {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case map[any]any:
			v = at[step]
		case []any:
			i, _ := strconv.Atoi(step)
			v = at[i]
		}
	}
	if m, ok := v.(map[string]any); ok {
		m["description"] = "what: it is"
	}
}
