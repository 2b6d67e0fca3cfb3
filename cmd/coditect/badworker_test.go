package main_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A worker that is set up wrongly says what is wrong in the first line that is no plain
// note, and where it stays alive, in its readiness: an operator sees it without a trace.
func TestWorkersSayWhatIsWrong(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	t.Parallel()
	s := newStudio(t, fakellm.Config{Key: modelKey})
	for dir, names := range map[string][]string{"certs": {"worker", "stranger"}, "other": {"worker"}} {
		args := []string{"certs", "--output", s.path(dir), "--host", "localhost,127.0.0.1"}
		for _, name := range names {
			args = append(args, "--client", name)
		}
		if out, err := s.command(nil, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	s.write("policy.yaml", "principals:\n- {match: 'dns:worker', roles: [worker]}\n")
	serve := s.start(nil, "serve", "--listen", "127.0.0.1:0", "--workers", "0", "--policy", s.path("policy.yaml"),
		"--tls-cert", s.path("certs/server.pem"), "--tls-key", s.path("certs/server.key"), "--client-ca", s.path("certs/ca.pem"))
	secured := serve.said.await(t, `msg=serving address=(\S+)`)
	open := s.start(nil, "serve", "--listen", "127.0.0.1:0", "--workers", "0", "--store", "pebble:"+s.path("second")).
		said.await(t, `msg=serving address=(\S+)`)
	certificate := func(authority, dir, name string) []string {
		args := []string{"--tls-ca", s.path(authority + "/ca.pem")}
		if dir != "" {
			args = append(args, "--tls-cert", s.path(dir+"/"+name+".pem"), "--tls-key", s.path(dir+"/"+name+".key"))
		}
		return args
	}
	for name, tt := range map[string]struct {
		server string
		args   []string
		said   string // in the first line of a level above INFO, or the last words
		ready  string // in /readyz; "" if the worker ends
	}{
		"nobody listens at its address":   {"127.0.0.1:1", nil, "127.0.0.1:1: connection refused", "[-] stream: .*127.0.0.1:1: .*connection refused"},
		"no address":                      {"orchestrator", nil, "neither HOST:PORT nor unix:PATH", ""},
		"a server of another authority":   {secured, certificate("other", "certs", "worker"), "is of no authority that is trusted", "[-] stream: .*" + secured + ".*no authority"},
		"a certificate of another":        {secured, certificate("certs", "other", "worker"), "it is of no authority that is trusted there", "[-] stream: .*no authority that is trusted there"},
		"no certificate":                  {secured, certificate("certs", "", ""), "give --tls-cert and --tls-key", "[-] stream: .*give --tls-cert"},
		"no TLS":                          {secured, nil, "needs TLS", "[-] stream: .*TLS"},
		"TLS where there is none":         {open, certificate("certs", "certs", "worker"), "does not speak TLS", "[-] stream: .*does not speak TLS"},
		"a certificate that is not there": {secured, certificate("certs", "certs", "nobody"), "nobody.pem: no such file", ""},
		"a principal of no policy":        {secured, certificate("certs", "certs", "stranger"), "not let in: .*dns:stranger", ""},
		"a pool that is none":             {open, []string{"--providers", "antropic"}, `no provider is named .{0,1}"antropic`, ""},
		"a pool without its secret":       {open, []string{"--providers", "anthropic"}, "set ANTHROPIC_API_KEY", "[-] keys: .*set ANTHROPIC_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"worker", "--server", tt.server, "--admin", "127.0.0.1:0"}, tt.args...)
			if tt.ready == "" {
				out, err := s.command([]string{"ANTHROPIC_API_KEY="}, args...).CombinedOutput()
				if err == nil || !regexp.MustCompile(tt.said).MatchString(firstTrouble(string(out))) {
					t.Errorf("ended with %v; want that it says %q at once:\n%s", err, tt.said, out)
				}
				return
			}
			w := s.start([]string{"ANTHROPIC_API_KEY="}, args...)
			there := w.said.await(t, saysAdmin)
			w.said.await(t, `(level=WARN.*)\n`)
			if line := firstTrouble(w.said.String()); !regexp.MustCompile(tt.said).MatchString(line) {
				t.Errorf("the first line of trouble is %q, want that it says %q", line, tt.said)
			}
			if body := becomes(t, there, "/readyz", 503); !regexp.MustCompile(strings.Replace(tt.ready, "[-]", `\[-\]`, 1)).MatchString(body) {
				t.Errorf("/readyz says\n%s\nwant %q", body, tt.ready)
			}
			w.stop()
		})
	}
}

// A key that is wrong, rather than missing, shows as soon as its vendor is asked: the first
// line that is no plain note says whose it is and where it was read, and so does readiness
// from then on. Neither shows the key.
func TestWorkersSayThatAKeyIsRefused(t *testing.T) {
	const wrong = "sk-ant-0123456789-of-last-year"
	s := newStudio(t, fakellm.Config{Model: obedient, Key: modelKey})
	s.shops(2)
	address := s.start(nil, "serve", "--listen", "127.0.0.1:0", "--workers", "0").said.await(t, `msg=serving address=(\S+)`)
	w := s.start([]string{"ANTHROPIC_API_KEY=" + wrong}, "worker", "--server", address, "--providers", "anthropic", "--endpoint", "anthropic="+s.url, "--admin", "127.0.0.1:0")
	there := w.said.await(t, saysAdmin)
	if body := becomes(t, there, "/readyz", 200); !strings.Contains(body, "[+] keys ok") {
		t.Errorf("a key that nobody has refused: /readyz says\n%s", body)
	}
	if run := s.try(nil, "run", "--server", address, "--input", s.docs, "--schema", s.path("schema.yaml"), "--output", s.path("out"),
		"--provider", "anthropic", "--model", "claude-haiku-4-5"); run.code == 0 {
		t.Errorf("a job whose model refuses the key ends with 0:\n%s", run.stdout)
	}
	const says = "anthropic refuses the key in ANTHROPIC_API_KEY: authentication (status 401)"
	w.said.await(t, `(level=WARN.*)\n`)
	if line := firstTrouble(w.said.String()); !strings.Contains(line, says) {
		t.Errorf("the first line of trouble is %q, want that it says %q", line, says)
	}
	body := becomes(t, there, "/readyz", 503)
	if !strings.Contains(body, "[+] stream ok") || !strings.Contains(body, "[-] keys: "+says) {
		t.Errorf("/readyz says\n%s\nwant %q", body, says)
	}
	if strings.Contains(body, wrong) || strings.Contains(w.said.String(), wrong) {
		t.Error("the key is shown")
	}
	w.stop()
}

// firstTrouble returns the first line of a log that is no plain note.
func firstTrouble(log string) string {
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "level=INFO") {
			return line
		}
	}
	return ""
}
