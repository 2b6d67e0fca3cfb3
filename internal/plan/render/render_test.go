package render_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/plan/plantest"
	"github.com/coditect/mapreduce/internal/plan/render"
)

var update = flag.Bool("update", false, "write the golden files anew")

func build(t testing.TB, c plan.Config, names ...string) *plan.DAG {
	t.Helper()
	p, err := pipeline.Preset("extract")
	if c.Direct {
		p, err = pipeline.Parse("pipeline.yaml", []byte("name: mine\nstages: [{name: direct, each: all, when: tokens <= budget}, "+
			"{name: map, from: documents, each: chunk}, {name: reduce, each: group}]"))
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := plan.NewGraph(p, c)
	if err != nil {
		t.Fatal(err)
	}
	items := make([]plan.Item, len(names))
	for i, n := range names {
		items[i] = plan.Item{Unit: mapreduce.UnitID(n), Tokens: 1200}
	}
	total := int64(1200 * len(items))
	stage, err := g.DocumentStage(int64(len(items)), total)
	if err != nil {
		t.Fatal(err)
	}
	d, err := g.Build(stage, items, plan.Rates{
		Model: true, InPrice: 3_000_000, OutPrice: 15_000_000, CallTime: time.Second, WriteRate: 60, Parallelism: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// B19: the menu of seven dishes.
func menu() []string {
	return []string{"soup", "risotto", "duck", "salad", "cheese", "tart", "coffee"}
}

func many(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("doc-%03d.txt", i))
	}
	return out
}

func dags(t testing.TB) map[string]*plan.DAG {
	return map[string]*plan.DAG{
		"menu":     build(t, plan.Config{ChunkSize: new(int64(3))}, menu()...),
		"adaptive": build(t, plan.Config{TargetTokenBudget: new(int64(400)), PromptOverhead: 50}, menu()...),
		"direct":   build(t, plan.Config{TargetTokenBudget: new(int64(9000)), Direct: true}, menu()...),
		"large":    build(t, plan.Config{}, many(130)...),
		"ran":      ran(t),
	}
}

// ran returns the menu after a run in which one dish failed.
func ran(t testing.TB) *plan.DAG {
	d := build(t, plan.Config{ChunkSize: new(int64(3))}, menu()...)
	var units []*mapreduce.Unit
	for i, n := range d.Nodes {
		u := &mapreduce.Unit{ID: n.ID, Kind: n.Kind, Stage: n.Stage, Level: n.Level, State: mapreduce.UnitComplete, CostMicros: int64(12_300 * (i + 1))}
		for _, in := range n.Inputs {
			u.DependsOn = append(u.DependsOn, d.Nodes[in].ID)
		}
		units = append(units, u)
	}
	units[2].State = mapreduce.UnitFailed
	d, err := plantest.Record(plan.ModeStatic, units)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// as returns a DAG in a format.
func as(t testing.TB, format string, d *plan.DAG) string {
	t.Helper()
	out, err := render.As(format, d)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGolden(t *testing.T) {
	for name, d := range dags(t) {
		for _, format := range render.Formats() {
			got, err := render.As(format, d)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+"."+format)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		}
	}
	if _, err := render.As("png", ran(t)); !errors.Is(err, errs.Invalid) {
		t.Errorf("an unknown format gave %v", err)
	}
}

// B19: badges, and large levels as one node with its count.
func TestSVG(t *testing.T) {
	for name, want := range map[string]map[string]int{
		"menu":   {">MAP<": 7, ">REDUCE L1<": 3, ">AGGREGATE<": 1, "<path": 10, ">map<": 1, ">reduce<": 1, ">stage map<": 1, ">stage reduce<": 1},
		"direct": {">DIRECT<": 1, "<path": 0, ">stage direct<": 1, ">stage ": 1},
		"large":  {">MAP<": 1, ">130 units<": 1, ">26 units<": 1, ">REDUCE L2<": 6, ">AGGREGATE<": 1, ">130<": 1},
		"ran":    {">complete<": 10, ">failed<": 1, ">$0.0246<": 1, `stroke="#c62828"`: 1},
	} {
		svg := as(t, "svg", dags(t)[name])
		for part, n := range want {
			got := strings.Count(svg, part)
			if part == ">130 units<" || part == ">26 units<" {
				got-- // its tooltip
			}
			if got != n {
				t.Errorf("%s has %q %d times, want %d", name, part, got, n)
			}
		}
		for _, outside := range []string{"href", "url(", "@import", "<script", "<image"} {
			if strings.Contains(svg, outside) {
				t.Errorf("%s refers to something outside itself: %s", name, outside)
			}
		}
	}
}

// B12 and B19: what dag.json says.
func TestJSON(t *testing.T) {
	for name, want := range map[string]struct {
		mode  any
		exact bool
		tasks int
	}{
		"menu": {"STATIC", true, 11}, "adaptive": {"ADAPTIVE", false, 7}, "direct": {"ADAPTIVE", true, 1}, "large": {"STATIC", true, 165},
	} {
		out, err := render.JSON(dags(t)[name])
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			SchemaVersion string
			MapReduceMode any
			Exact         bool
			Tasks         []struct {
				ID             string
				NodeType       string
				MapReduceLevel int
				DependsOn      []string
			}
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.SchemaVersion != "1.1" || doc.MapReduceMode != want.mode || doc.Exact != want.exact || len(doc.Tasks) != want.tasks {
			t.Errorf("%s: version %s, mode %v, exact %v, %d tasks", name, doc.SchemaVersion, doc.MapReduceMode, doc.Exact, len(doc.Tasks))
		}
		for _, task := range doc.Tasks {
			if task.DependsOn == nil || (task.MapReduceLevel == 0) != (task.NodeType == "map" || task.NodeType == "direct") {
				t.Errorf("%s: task %+v", name, task)
			}
		}
	}
	batches, err := render.JSON(build(t, plan.Config{Fallback: plan.Batches}, "a"))
	if err != nil || !strings.Contains(batches, `"mapReduceMode": null`) {
		t.Errorf("without a strategy the mode is null: %v\n%s", err, batches)
	}
}

// texts returns the character data of an XML document, and fails if it is none.
func texts(t *testing.T, doc string) (out []string) {
	d := xml.NewDecoder(strings.NewReader(doc))
	for depth := 0; ; {
		token, err := d.Token()
		if err == io.EOF && depth == 0 {
			return out
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		switch token := token.(type) {
		case xml.StartElement:
			depth++
			if !strings.Contains(" svg title rect path text g ", " "+token.Name.Local+" ") {
				t.Fatalf("element %s in\n%s", token.Name.Local, doc)
			}
		case xml.EndElement:
			depth--
		case xml.CharData:
			out = append(out, string(token))
		case xml.Comment, xml.Directive, xml.ProcInst:
			t.Fatalf("%T in\n%s", token, doc)
		}
	}
}

var (
	mermaidLine = regexp.MustCompile(`^(flowchart TB|  n\d+\["[^"\x60<>&\[\]{}|]*(<br/>[^"\x60<>&\[\]{}|]*)*"\]|  style n\d+ [a-z0-9:#,\- ]+|  n\d+ -->(\|\d+\|)? n\d+)$`)
	mermaidChar = regexp.MustCompile(`#(\d+);`)
	dotLabel    = regexp.MustCompile(`^  n0 \[label="((?:[^"\\]|\\.)*)", fillcolor="#[0-9a-f]{6}", color="#[0-9a-f]{6}"\];$`)
)

// Whatever a unit is named, each format is well-formed and shows that name, or
// as much of it as can be shown, and nothing else changes.
func FuzzEscaping(f *testing.F) {
	for _, s := range []string{
		"a", `"`, `\`, `a"]; x[label="b`, "<script>alert(1)</script>", "&amp;", "]]>", "a\nb", "\x00\x1b[31m", "#35;", "%%{init}%%",
		"n0 --> n1", "收据.txt", "\u202egnp.exe", "\xff\xfe", "`md`", "\\N\\G", "<br/>", "end", "\ufffe", "|1|", "\u2028", "a\u0301",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		d := build(t, plan.Config{}, name)
		plain := build(t, plan.Config{}, "plain")
		svg := texts(t, as(t, "svg", d))
		if n := len(texts(t, as(t, "svg", plain))); name != "" && len(svg) != n {
			t.Fatalf("%d texts, want %d: %q", len(svg), n, svg)
		}
		var shown string // the tooltip of the first box: the whole name
		for i, s := range svg {
			if s == "MAP" {
				shown = svg[i-3]
			}
		}
		if short := utf8.RuneCountInString(name) < 8 && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > 0xff || r >= 0x7f && r < 0xa0 }); short && strings.TrimSpace(name) != "" {
			if shown != name {
				t.Fatalf("%q is shown as %q", name, shown)
			}
			checkMermaidName(t, as(t, "mermaid", d), name)
			checkDOTName(t, as(t, "dot", d), name)
		}
		checkLines(t, d, plain)
		out, err := render.JSON(d)
		if err != nil || !json.Valid([]byte(out)) {
			t.Fatalf("%v in\n%s", err, out)
		}
	})
}

func checkMermaidName(t *testing.T, doc, name string) {
	line := strings.Split(doc, "\n")[1]
	shown := mermaidChar.ReplaceAllStringFunc(strings.Split(line, "<br/>")[1], func(s string) string {
		n, err := strconv.Atoi(s[1 : len(s)-1])
		if err != nil {
			t.Fatal(err)
		}
		return string(rune(n))
	})
	if shown != name {
		t.Fatalf("Mermaid shows %q as %q", name, shown)
	}
}

func checkDOTName(t *testing.T, doc, name string) {
	for line := range strings.Lines(doc) {
		if m := dotLabel.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			_, rest, _ := strings.Cut(m[1], `\n`)
			shown := rest[:strings.LastIndex(rest, `\n`)]
			shown = html.UnescapeString(strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(shown))
			if shown != name {
				t.Fatalf("DOT shows %q as %q", name, shown)
			}
			return
		}
	}
	t.Fatalf("no label of n0 in\n%s", doc)
}

func checkLines(t *testing.T, d, plain *plan.DAG) {
	doc := as(t, "mermaid", d)
	for line := range strings.Lines(doc) {
		if !mermaidLine.MatchString(strings.TrimSuffix(line, "\n")) {
			t.Fatalf("line %q of Mermaid", line)
		}
	}
	for format, pair := range map[string][2]string{
		"mermaid": {doc, as(t, "mermaid", plain)}, "dot": {as(t, "dot", d), as(t, "dot", plain)}, "text": {as(t, "text", d), as(t, "text", plain)},
	} {
		if strings.Count(pair[0], "\n") != strings.Count(pair[1], "\n") || strings.ContainsAny(pair[0], "\x00\x1b\r\u202e") || !utf8.ValidString(pair[0]) {
			t.Fatalf("%s is\n%q", format, pair[0])
		}
	}
}
