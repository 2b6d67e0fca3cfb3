package main_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/auth"
	main "github.com/coditect/mapreduce/cmd/coditect"
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

// The chart has the alerts and the boards that are tested here, to the byte: Helm packs only
// what is in the chart's folder.
func TestChartHasAlertsAndBoards(t *testing.T) {
	const files = "../../deploy/helm/coditect/files"
	for from, to := range map[string]string{"prometheus/alerts.yaml": "alerts/alerts.yaml", "grafana/boards/coditect.json": "boards/coditect.json"} {
		if readFile(t, observability+"/"+from) != readFile(t, files+"/"+to) {
			t.Errorf("deploy/helm/coditect/files/%s differs from deploy/observability/%s: cp the latter", to, from)
		}
	}
	for _, pattern := range []string{"/prometheus/*.yaml", "/grafana/boards/*"} {
		all, err := filepath.Glob(observability + pattern)
		if err != nil || len(all) > 3 {
			t.Errorf("%s has %v (%v): a new one belongs into the chart and into this test", pattern, all, err)
		}
	}
}

// Each flag in docker-compose.yml is one, with a value that it can have, and the policy there
// is one.
func TestComposeHasFlagsThatExist(t *testing.T) {
	var file struct {
		Services map[string]struct{ Command yaml.Node }
	}
	text := regexp.MustCompile(`\$\{\w+:-([^}]*)\}`).ReplaceAllString(readFile(t, "../../docker-compose.yml"), "$1")
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for name, service := range file.Services {
		var args []string
		if err := service.Command.Decode(&args); err != nil || len(args) < 2 {
			continue // of another program, or none
		}
		if args[0] != "serve" && args[0] != "worker" && args[0] != "certs" {
			continue
		}
		checked++
		var out bytes.Buffer
		if code := main.Run(t.Context(), append(args, "--help"), &out); code != 0 {
			t.Errorf("%s: %s", name, &out)
		}
	}
	if checked != 4 {
		t.Errorf("the flags of %d services were checked, want those of two servers, a worker, and certs", checked)
	}
	if _, err := auth.New(auth.Config{Policy: "../../deploy/docker/policy.yaml", Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Errorf("the policy of docker-compose.yml: %v", err)
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
