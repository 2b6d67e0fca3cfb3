package main_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestReleasedProgramHasNoDoubles: what stands for agents, models, stores and workers in tests is
// not in the program that people get, so nobody can ask for it there.
func TestReleasedProgramHasNoDoubles(t *testing.T) {
	const module = "github.com/coditect/mapreduce/"
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}

	packages := strings.Fields(string(out))
	if len(packages) < 100 {
		t.Fatalf("the program has %d packages; want hundreds", len(packages))
	}
	for _, p := range packages {
		own, ok := strings.CutPrefix(p, module)
		if !ok {
			continue
		}
		if strings.HasSuffix(own, "test") {
			t.Errorf("the program has %s", own)
		}
		for _, double := range []string{"cmd/coditect/internal/script", "internal/dev", "worker/agent/scripted", "worker/llm/fakellm", "store/storetest"} {
			if own == double || strings.HasPrefix(own, double+"/") {
				t.Errorf("the program has %s", own)
			}
		}
	}
}
