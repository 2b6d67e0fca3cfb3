package main_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// exemplar finds the family and the labels of a line of OpenMetrics that has an exemplar, and
// traceLabel and spanLabel what is in these labels, which are in no order.
var (
	exemplar   = regexp.MustCompile(`(?m)^(coditect_\w+?)(?:_bucket|_total)?\{.* # \{(.*)\} `)
	traceLabel = regexp.MustCompile(`trace_id="(\w+)"`)
	spanLabel  = regexp.MustCompile(`span_id="(\w+)"`)
)

// traced are the histograms that a job gives exemplars to, by process.
var traced = map[string][]string{
	"server": {
		"coditect_service_call_duration_seconds", "coditect_turn_duration_seconds", "coditect_db_client_operation_duration_seconds",
		"coditect_gen_ai_invoke_workflow_duration_seconds", "coditect_rpc_server_call_duration_seconds",
	},
	"worker": {"coditect_gen_ai_client_operation_duration_seconds", "coditect_gen_ai_client_token_usage"},
}

// A fleet is a server and a worker, traced and measured, that have run a job.
type tracedFleet struct {
	*studio
	collector *collector
	admin     map[string]string // of the server and the worker
	processes []*daemon
	job       string
}

func newTracedFleet(t *testing.T) *tracedFleet {
	t.Helper()
	s := newStudio(t, fakellm.Config{Model: obedient, Key: modelKey})
	s.shops(3)
	f := &tracedFleet{studio: s, collector: newCollector(t), admin: make(map[string]string)}
	env := f.collector.env("ANTHROPIC_API_KEY=" + modelKey)
	serve := s.start(env, "serve", "--listen", "127.0.0.1:0", "--workers", "0", "--admin", ":0")
	f.admin["server"] = serve.said.await(t, saysAdmin)
	address := serve.said.await(t, `msg=serving address=(\S+)`)
	worker := s.start(env, "worker", "--server", address, "--endpoint", "anthropic="+s.url, "--admin", ":0")
	f.admin["worker"] = worker.said.await(t, saysAdmin)
	f.processes = []*daemon{worker, serve}
	if run := s.try(f.collector.env(), "run", "--server", address, "--input", s.docs, "--schema", s.path("schema.yaml"), "--output", s.path("out"),
		"--provider", "anthropic", "--model", "claude-haiku-4-5"); run.code != 0 {
		t.Fatalf("exit code %d\n%s%s", run.code, run.stdout, run.stderr)
	}
	f.job = s.only()
	return f
}

// spanNames returns the names of all spans, by trace and span, once the processes have ended.
func (f *tracedFleet) spanNames() map[string]string {
	for _, p := range f.processes {
		p.stop()
	}
	all := make(map[string]string)
	for _, r := range f.collector.all() {
		all[hex.EncodeToString(r.GetTraceId())+"/"+hex.EncodeToString(r.GetSpanId())] = r.GetName()
	}
	return all
}

// Each histogram of what is traced has exemplars, for those who ask for OpenMetrics, and each
// exemplar names a span that the collector has. Calls of models and the end of the job lead
// to the trace of the job.
func TestExemplarsLeadToTraces(t *testing.T) {
	f := newTracedFleet(t)
	found := make(map[string][]string) // TRACE/SPAN by family
	for process, families := range traced {
		if _, plain := get(t, f.admin[process], "/metrics"); strings.Contains(plain, "trace_id") {
			t.Errorf("the %s shows exemplars in a format that has none", process)
		}
		_, page := get(t, f.admin[process], "/metrics", "Accept", "application/openmetrics-text; version=1.0.0")
		for _, m := range exemplar.FindAllStringSubmatch(page, -1) {
			found[m[1]] = append(found[m[1]], valueIn(traceLabel, m[2])+"/"+valueIn(spanLabel, m[2]))
		}
		for _, family := range families {
			if len(found[family]) == 0 {
				t.Errorf("%s of the %s has no exemplar; these have: %v", family, process, slices.Sorted(maps.Keys(found)))
			}
		}
	}
	spans := f.spanNames()
	job := hex.EncodeToString(f.collector.ofJob(t, f.job)[0].GetTraceId())
	for family, all := range found {
		for _, at := range all {
			if spans[at] == "" {
				t.Errorf("%s leads to %s, a span that nobody has received", family, at)
			}
			if strings.Contains(family, "gen_ai") && !strings.HasPrefix(at, job+"/") {
				t.Errorf("%s leads to %s (%s), which is not in the trace %s of the job", family, at, spans[at], job)
			}
		}
	}
}

// valueIn returns what the group of a pattern is in a text; "" if it is not there.
func valueIn(pattern *regexp.Regexp, text string) string {
	if m := pattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// Prometheus itself stores the exemplars that it scrapes, and gives them out for a query of
// the board.
func TestPrometheusKeepsExemplars(t *testing.T) {
	program := prometheusOrSkip(t)
	f := newTracedFleet(t)
	web := f.startPrometheus(program, "rule_files: []", slices.Sorted(maps.Values(f.admin))...)
	families := slices.Concat(traced["server"], traced["worker"])
	kept := make(map[string][]string)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for len(kept) < len(families) {
		for _, family := range families {
			if all := exemplarsOf(t, web, family+"_bucket"); len(all) > 0 {
				kept[family] = all
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("Prometheus has exemplars of %v alone, want %v", slices.Sorted(maps.Keys(kept)), families)
		}
	}
	spans, n := f.spanNames(), 0
	for family, all := range kept {
		for _, at := range all {
			n++
			if spans[at] == "" {
				t.Errorf("an exemplar of %s leads to %s, a span that nobody has received", family, at)
			}
		}
	}
	t.Logf("Prometheus keeps %d exemplars of %d histograms, each of a span that the collector has", n, len(kept))
}

// exemplarsOf returns TRACE/SPAN of the exemplars of a series that Prometheus keeps.
func exemplarsOf(t *testing.T, web, series string) (all []string) {
	t.Helper()
	now := time.Now()
	q := url.Values{"query": {series}, "start": {fmt.Sprint(now.Add(-time.Hour).Unix())}, "end": {fmt.Sprint(now.Add(time.Hour).Unix())}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+web+"/api/v1/query_exemplars?"+q.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil // it has not begun to listen
	}
	defer res.Body.Close()
	var said struct {
		Data []struct {
			Exemplars []struct {
				Labels struct {
					Trace string `json:"trace_id"`
					Span  string `json:"span_id"`
				}
			}
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&said); err != nil {
		return nil // it is not ready yet
	}
	for _, s := range said.Data {
		for _, e := range s.Exemplars {
			all = append(all, e.Labels.Trace+"/"+e.Labels.Span)
		}
	}
	return all
}
