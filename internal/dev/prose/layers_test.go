package prose_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/prose"
)

func readLayers(t *testing.T, list string) *prose.Layers {
	t.Helper()
	l, err := prose.ReadLayers(list)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// layers.txt says what may import what, and names packages that there are.
func TestImportsKeepTheLayers(t *testing.T) {
	list, err := os.ReadFile("layers.txt")
	if err != nil {
		t.Fatal(err)
	}

	layers := readLayers(t, string(list))
	root := filepath.Join("..", "..", "..")
	var all []string
	checked := 0
	each(t, ".go", func(file string, content []byte) error {
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		from := filepath.ToSlash(rel)
		if !slices.Contains(all, from) {
			all = append(all, from)
		}

		parsed, err := parser.ParseFile(token.NewFileSet(), file, content, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			checked++
			if why := layers.Refusal(from, strings.TrimPrefix(name, prose.Module), strings.HasSuffix(file, "_test.go")); why != "" {
				t.Errorf("%s imports %s: %s", file, name, why)
			}
		}
		return nil
	})

	if checked < 10_000 {
		t.Errorf("%d imports were looked at; want over ten thousand", checked)
	}
	for _, p := range layers.Unused(all) {
		t.Errorf("layers.txt: no package is %s", p)
	}
}

func TestLayers(t *testing.T) {
	const list = `
# Head of the list.

# The vocabulary imports nothing but errors.
api/words -> api/errs

# Parsers know no jobs.
internal/document/* !internal/document/all -> internal/document internal/text/...

# Nobody guesses.
internal/text/... -/> math/rand/... crypto/rand

# One driver knows it,
# and its bench.
example.org/db/... <- store/db internal/dev/bench/... tests
log <- nothing

# What all may say.
api/plural -> nothing
api/plural <- all
`
	layers := readLayers(t, list)
	for _, test := range []struct {
		from, imported string
		isTest         bool
		want           string
	}{
		{"api/words", "api/errs", false, ""},
		{"api/words", "api/schema", false, "The vocabulary imports nothing but errors."},
		{"api/words", "api/schema", true, ""},
		{"api/words", "encoding/json", false, ""},
		{"api/words", "example.org/other", false, ""},
		{"api/words/sub", "api/schema", false, ""},
		{"internal/document/pdf", "internal/text/ground/deep", false, ""},
		{"internal/document/pdf", "internal/document", false, ""},
		{"internal/document/pdf", "internal/document/html", false, "Parsers know no jobs."},
		{"internal/document/pdf/deep", "store", false, ""},
		{"internal/document/all", "store", false, ""},
		{"internal/document", "store", false, ""},
		{"internal/text", "math/rand/v2", false, "Nobody guesses."},
		{"internal/text/ground", "crypto/rand", false, "Nobody guesses."},
		{"internal/text/ground", "crypto/sha256", false, ""},
		{"internal/text/ground", "crypto/rand", true, ""},
		{"store/db", "example.org/db/v2", false, ""},
		{"internal/dev/bench/rig", "example.org/db", false, ""},
		{"store/other", "example.org/db", false, "One driver knows it, and its bench."},
		{"store/other", "example.org/db", true, ""},
		{"store/other", "example.org/dbase", false, ""},
		{"store/other", "log", true, "One driver knows it, and its bench."},
		{"store/other", "log/slog", false, ""},
		{"api/words", "api/plural", false, ""},
		{"api/plural", "api/words", false, "What all may say."},
	} {
		if got := layers.Refusal(test.from, test.imported, test.isTest); got != test.want {
			t.Errorf("%s imports %s, test %t: got %q, want %q", test.from, test.imported, test.isTest, got, test.want)
		}
	}

	got := layers.Unused([]string{"api/words", "api/errs", "api/plural", "internal/document", "internal/document/all", "store/db", "internal/dev/bench"})
	if want := []string{"internal/text/...", "internal/text/..."}; !slices.Equal(got, want) {
		t.Errorf("unused: got %q, want %q", got, want)
	}
}

func TestReason(t *testing.T) {
	layers := readLayers(t, "# All of it.\na/... -> a/...\n\n# This one.\na/b a/c -> nothing\n\n# No guesses.\na/b -/> math/rand\n")
	for of, want := range map[string]string{"a/b": "This one.", "a/b/c": "All of it.", "b": ""} {
		if got := layers.Reason(of); got != want {
			t.Errorf("%s: got %q, want %q", of, got, want)
		}
	}
}

func TestLayersThatAreNoRules(t *testing.T) {
	for _, list := range []string{"api", "api ->", "-> api", "api = store", "a b c"} {
		if _, err := prose.ReadLayers("# Why.\napi -> store\n" + list); err == nil || !strings.Contains(err.Error(), "line 3") {
			t.Errorf("%q: got %v, want an error that names line 3", list, err)
		}
	}
}
