package toolbox_test

import (
	"slices"
	"testing"

	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/internal/almanac"
	"github.com/coditect/mapreduce/worker/tool/toolbox"
)

// TestAddedTool calls a tool that the program does not have. The tool is a package and one
// more argument of New.
func TestAddedTool(t *testing.T) {
	b, err := toolbox.New(nil, &kit{name: "eyes", specs: []tool.Spec{spec("look")}}, almanac.Kit{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{almanac.Name, almanac.Tool, almanac.Name + "/" + almanac.Tool} {
		if !slices.Contains(b.Offers(), name) {
			t.Errorf("pipelines cannot name %s: the worker offers %v", name, b.Offers())
		}
	}
	s, err := b.Open(t.Context(), []string{almanac.Name})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Call(t.Context(), almanac.Tool, []byte(`{"date":"2026-11-27"}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Evidence) != 1 || r.Evidence[0].Text != "2026-11-27 is a Friday." || r.Evidence[0].URI != "almanac:2026-11-27" {
		t.Errorf("it brought %+v", r.Evidence)
	}
	for _, input := range []string{`{"date":"yesterday"}`, `{"day":"2026-11-27"}`, `{}`} {
		if r, err := s.Call(t.Context(), almanac.Tool, []byte(input)); err == nil {
			t.Errorf("%s brought %+v", input, r)
		}
	}
	s.Close()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
