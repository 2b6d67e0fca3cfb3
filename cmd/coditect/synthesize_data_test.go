package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReferencesThatGoWrong: over passages of real documents, three levels deep, with a fifth
// of the references left out, made up, exchanged and rewritten at each level: each that is
// shown is a passage, none that was made up stays, and each that is gone is listed.
func TestReferencesThatGoWrong(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("CODITECT_TESTDATA")
	if dir == "" {
		t.Skip("CODITECT_TESTDATA names no folder with data")
	}
	files, err := filepath.Glob(filepath.Join(dir, "re3d", "*", "documents.json"))
	if err != nil || len(files) == 0 {
		t.Skip("there are no documents of re3d: ", err)
	}
	var lines strings.Builder
	n := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var d struct {
				ID   string `json:"_id"`
				Text string
			}
			if json.Unmarshal([]byte(line), &d) != nil {
				continue
			}
			for i, paragraph := range strings.SplitN(d.Text, ". ", 3) {
				one, err := json.Marshal(map[string]any{"document_id": d.ID + "/" + string(rune('a'+i)), "passage": strings.TrimSpace(paragraph)})
				if err != nil {
					t.Fatal(err)
				}
				lines.Write(append(one, '\n'))
				n++
			}
		}
	}
	s := synthesise(t, lines.String(), "--provider", "scripted", "--var", "script.drop_refs_rate=0.2",
		"--var", "script.invent_refs_rate=0.2", "--var", "script.mix_refs_rate=0.2", "--var", "script.rewrite_refs_rate=0.2")
	s.checkReferences(t, passagesOf(lines.String()))
	stages := s.units(t)
	if stages["groups"] < 6 || stages["report"] != 1 {
		t.Errorf("the job had %v", stages)
	}
	if len(s.Citations) != n || len(s.Removed) < 10 || len(s.Dropped) < 10 || len(s.Report.References) < 10 {
		t.Errorf("%d citations of %d, %d removed, %d dropped, %d used", len(s.Citations), n, len(s.Removed), len(s.Dropped), len(s.Report.References))
	}
	for _, r := range s.Removed {
		if _, ok := s.Citations[r.Name]; ok {
			t.Errorf("%s was removed, and is a citation", r.Name)
		}
	}
	t.Logf("%d citations, %d used, %d dropped, %d removed, units %v", n, len(s.Report.References), len(s.Dropped), len(s.Removed), stages)
}
