package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// Prometheus itself scrapes a server and a worker, and fires alerts of the rules, which wait a
// second here for what they wait minutes for: a job without workers, and a process that is
// gone. They end when their cause does.
func TestPrometheusFiresAlerts(t *testing.T) {
	prometheus := prometheusOrSkip(t)
	s := newStudio(t, fakellm.Config{Model: obedient, Key: modelKey})
	s.shops(2)
	serve := s.start(nil, "serve", "--listen", "127.0.0.1:0", "--workers", "0", "--admin", ":0")
	server, address := serve.said.await(t, saysAdmin), serve.said.await(t, `msg=serving address=(\S+)`)
	there := freeAddress(t)
	s.write("alerts.yaml", regexp.MustCompile(`for: \S+`).ReplaceAllString(readFile(t, observability+"/prometheus/alerts.yaml"), "for: 1s"))
	web := s.startPrometheus(prometheus, "rule_files: [alerts.yaml]", server)
	s.want(0, "run", "--detach", "--server", address, "--input", s.docs, "--schema", s.path("schema.yaml"), "--provider", "anthropic", "--model", "claude-haiku-4-5")
	awaitAlerts(t, web, "CoditectNoWorkers", true)
	worker := s.start([]string{"ANTHROPIC_API_KEY=" + modelKey}, "worker", "--server", address, "--providers", "anthropic", "--endpoint", "anthropic="+s.url, "--admin", there)
	awaitAlerts(t, web, "CoditectNoWorkers", false)
	worker.stop()
	serve.stop()
	awaitAlerts(t, web, "CoditectDown", true)
}

// prometheusOrSkip returns the program of Prometheus, or skips the test where nobody asks for
// it, or it is not installed.
func prometheusOrSkip(t *testing.T) string {
	t.Helper()
	if os.Getenv("CODITECT_OBSERVABILITY") == "" {
		t.Skip("CODITECT_OBSERVABILITY is not set; make observability sets it")
	}
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed")
	}
	return program
}

// startPrometheus starts Prometheus, which scrapes targets four times a second and keeps
// exemplars, with more of its configuration. It returns its address.
func (s *studio) startPrometheus(program, more string, targets ...string) string {
	s.t.Helper()
	list, err := json.Marshal(targets)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("prometheus.yaml", fmt.Sprintf(`
global: {scrape_interval: 250ms, evaluation_interval: 250ms, scrape_timeout: 250ms}
scrape_configs: [{job_name: coditect, static_configs: [{targets: %s}]}]
%s
`, list, more))
	web := freeAddress(s.t)
	cmd := exec.Command(program, "--config.file", s.path("prometheus.yaml"), "--storage.tsdb.path", s.path("tsdb"), "--web.listen-address", web,
		"--log.level", "warn", "--enable-feature", "exemplar-storage")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // it keeps nothing
	return web
}

// awaitAlerts waits until Prometheus has an alert firing, or no more.
func awaitAlerts(t *testing.T, web, name string, fires bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	start := time.Now()
	for ; ; <-tick.C {
		said, err := query(t, web, `ALERTS{alertstate="firing"}`)
		found := strings.Contains(said, `"`+name+`"`)
		if err == nil && found == fires {
			t.Logf("%s fires: %t, after %.1f s", name, fires, time.Since(start).Seconds())
			return
		}
		if time.Since(start) > patience {
			t.Fatalf("%s fires: %t, want %t: %s (%v)", name, found, fires, said, err)
		}
	}
}

// query returns what Prometheus answers, as it writes it.
func query(t *testing.T, web, expression string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+web+"/api/v1/query?query="+url.QueryEscape(expression), nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err // it has not begun to listen
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(res.Status)
	}
	return string(data), err
}
