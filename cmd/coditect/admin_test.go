package main_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// get asks an admin listener for a page.
func get(t *testing.T, address, path string, header ...string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// becomes asks until a page has a status.
func becomes(t *testing.T, address, path string, status int) string {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		got, body := get(t, address, path)
		if got == status {
			return body
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("GET %s gives %d and %q, want %d", path, got, body, status)
		}
	}
}

// shows asks until /metrics has a line of a form, and returns the page.
func shows(t *testing.T, address, form string) string {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		_, page := get(t, address, "/metrics")
		if regexp.MustCompile(form).MatchString(page) {
			return page
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("/metrics never shows %s\n%s", form, page)
		}
	}
}

const saysAdmin = `msg="operators are served" admin=(\S+)`

// A server and a worker tell their operators whether they live and are ready, and why they
// are not. All of a server's metrics bear its name, and none holds a key or a document.
func TestOperatorsAreServed(t *testing.T) {
	testenv.Raced(t)

	s := newStudio(t, fakellm.Config{Model: obedient, Key: modelKey})
	s.shops(3)
	serve := s.start(nil, "serve", "--listen", "127.0.0.1:0", "--workers", "0", "--admin", ":0")
	server := serve.said.await(t, saysAdmin)
	address := serve.said.await(t, `msg=serving address=(\S+)`)
	if !strings.HasPrefix(server, "127.0.0.1:") {
		t.Errorf("--admin :0 listens on %s, want this machine alone", server)
	}
	if status, body := get(t, server, "/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("/healthz gives %d %q", status, body)
	}
	if status, body := get(t, server, "/readyz"); status != 503 || !strings.Contains(body, "[+] store ok") || !strings.Contains(body, "[-] workers: no worker is connected") {
		t.Errorf("/readyz without a worker gives %d\n%s", status, body)
	}
	if status, body := get(t, server, "/readyz?exclude=workers"); status != 200 {
		t.Errorf("/readyz?exclude=workers gives %d\n%s", status, body)
	}
	if status, _ := get(t, server, "/metrics", "Host", "attacker.example"); status != 403 {
		t.Errorf("a page of somebody else's reads metrics: status %d", status)
	}
	s.want(0, "run", "--detach", "--server", address, "--input", s.docs, "--schema", s.path("schema.yaml"), "--provider", "anthropic", "--model", "claude-haiku-4-5")
	// The calls of the fleet, 50, bound nothing here: three documents wait for a worker.
	waiting := shows(t, server, `coditect_runnable_units\{model="anthropic/claude-haiku-4-5",tenant="\w*"\} 3\n`)
	worker := s.start([]string{"ANTHROPIC_API_KEY=" + modelKey}, "worker", "--server", address,
		"--providers", "anthropic", "--endpoint", "anthropic="+s.url, "--admin", "127.0.0.1:0")
	there := worker.said.await(t, saysAdmin)
	becomes(t, there, "/readyz", 200)
	becomes(t, server, "/readyz", 200)
	if o := s.try(nil, "run", "--server", address, "--input", s.docs, "--schema", s.path("schema.yaml"), "--output", s.path("out"),
		"--provider", "anthropic", "--model", "claude-haiku-4-5"); o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	for _, at := range []string{server, there} {
		_, page := get(t, at, "/metrics", "Accept", "application/openmetrics-text; version=1.0.0")
		for line := range strings.Lines(page) {
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "coditect_") {
				t.Errorf("a metric of another name: %s", line)
			}
		}
		if id := regexp.MustCompile(`mr_\d{8}_\w{6}`).FindString(page); id != "" {
			t.Errorf("/metrics has a label for the job %s", id)
		}
		for _, secret := range []string{modelKey, shopText(1), "docs/1.txt", "1.txt"} {
			if strings.Contains(page, secret) {
				t.Errorf("/metrics shows %q", secret)
			}
		}
	}
	_, page := get(t, server, "/metrics")
	for _, want := range []string{
		`coditect_jobs_ended_total\{state="complete"\} [12]`, `coditect_units_claimed_total [4-8]`, `coditect_workers\{state="connected"\} 1`,
		`coditect_tokens_total\{model="anthropic/claude-haiku-4-5",tier="standard",type="input"\} [1-9]`, `coditect_cost_usd_total\{model="anthropic/claude-haiku-4-5",tier="standard"\} 0\.0`,
		`coditect_tenant_cost_usd_total\{tenant=""\} 0\.0`,
		`coditect_store_up 1`, `coditect_breaker_open\{model="anthropic/claude-haiku-4-5"\} 0`,
	} {
		// A breaker is shown while a job may call its model.
		if !regexp.MustCompile(want).MatchString(waiting + page) {
			t.Errorf("/metrics of the server lacks %s", want)
		}
	}
	_, model := get(t, there, "/metrics")
	for name := range shownMetrics(t) {
		if !regexp.MustCompile(`(?m)^` + name + `[{ ]`).MatchString(waiting + page + model) {
			t.Errorf("an alert or a board shows %s, which neither the server nor the worker has", name)
		}
	}
	serve.stop()
	if body := becomes(t, there, "/readyz", 503); !strings.Contains(body, "has no stream to a server") {
		t.Errorf("a worker without a server says\n%s", body)
	}
	if status, _ := get(t, there, "/healthz"); status != 200 {
		t.Errorf("a worker without a server does not live: %d", status)
	}
	worker.stop()
}

// Workers that die again and again show in metrics: streams that broke, workers that were
// lost. No unit is set aside for that, and the job goes on.
func TestLossesAreCounted(t *testing.T) {
	testenv.Raced(t)

	hold := make(chan struct{})
	asked := make(chan struct{}, 8)
	s := newStudio(t, fakellm.Config{Key: modelKey, Model: func(c fakellm.Call) fakellm.Reply {
		asked <- struct{}{}
		<-hold
		return obedient(c)
	}})
	defer close(hold)
	s.shops(1)
	serve := s.start(nil, "serve", "--listen", "127.0.0.1:0", "--workers", "0", "--admin", ":0")
	server := serve.said.await(t, saysAdmin)
	address := serve.said.await(t, `msg=serving address=(\S+)`)
	s.want(0, "run", "--detach", "--server", address, "--input", s.docs, "--schema", s.path("schema.yaml"), "--provider", "anthropic", "--model", "claude-haiku-4-5")
	for range 2 {
		w := s.start([]string{"ANTHROPIC_API_KEY=" + modelKey}, "worker", "--server", address, "--endpoint", "anthropic="+s.url)
		select {
		case <-asked:
		case <-time.After(patience):
			t.Fatalf("the model was not asked\n%s", w.said)
		}
		if err := w.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	wants := []string{
		`coditect_units_set_aside_total 0`, `coditect_workers_lost_total 2`, `coditect_stream_resets_total{reason="broken"} 2`,
		`coditect_units_failed_total 0`,
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		_, page := get(t, server, "/metrics")
		missing := ""
		for _, w := range wants {
			if !strings.Contains(page, w+"\n") {
				missing = w
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("/metrics never shows %s\n%s", missing, page)
		}
	}
}
