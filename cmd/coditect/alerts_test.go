package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const observability = "../../deploy/observability"

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Each alert has its page, which it names, and a test that provokes it; Prometheus, where it
// is installed, runs these tests.
func TestAlerts(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(readFile(t, observability+"/prometheus/alerts.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	pages, tests := readFile(t, "../../docs/runbook.md"), readFile(t, observability+"/prometheus/alerts_test.yaml")
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			if !strings.HasSuffix(r.Annotations["runbook_url"], "docs/runbook.md#"+strings.ToLower(r.Alert)) {
				t.Errorf("%s names the page %s", r.Alert, r.Annotations["runbook_url"])
			}
			_, page, ok := strings.Cut(pages, "\n## "+r.Alert+"\n")
			page, _, _ = strings.Cut(page, "\n## ")
			for _, part := range []string{"What it means.", "How to see it.", "What to do."} {
				if !ok || !strings.Contains(page, part) {
					t.Errorf("the page of %s does not say %q", r.Alert, part)
				}
			}
			if !strings.Contains(tests, "alertname: "+r.Alert+"\n        exp_alerts:\n          - exp_labels") {
				t.Errorf("%s is not provoked by a test", r.Alert)
			}
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed, so the rules were not run")
	}
	cmd := exec.CommandContext(t.Context(), promtool, "test", "rules", "alerts_test.yaml")
	cmd.Dir = filepath.Join(observability, "prometheus")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

var metricName = regexp.MustCompile(`\bcoditect_[a-z_]+`)

// shownMetrics returns the names of metrics that alerts and boards use.
func shownMetrics(t *testing.T) map[string]bool {
	t.Helper()
	board := readFile(t, observability+"/grafana/boards/coditect.json")
	if !json.Valid([]byte(board)) {
		t.Error("the board is no JSON")
	}
	used := make(map[string]bool)
	for _, name := range metricName.FindAllString(board+readFile(t, observability+"/prometheus/alerts.yaml"), -1) {
		used[name] = true
	}
	return used
}
