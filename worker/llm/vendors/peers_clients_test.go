package vendors_test

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A heard is what a client made of one call: see internal/dev/peers/clients.mjs.
type heard struct {
	Vendor, Kind, Text, Stop, Error string
	Input, Output                   int64
	Status                          int
}

// refusals are the statuses that clients are to see, by vendor where they
// differ. Ollama's knows no errors but its text.
var refusals = map[string]map[string]int{
	"rate_limit":    {"": 429},
	"overloaded":    {"anthropic": 529, "": 503},
	"server_error":  {"": 500},
	"unauthorized":  {"": 401},
	"unknown_model": {"": 404},
	"mid_stream":    {"": 0},
	"reset":         {"": 0},
}

// The scripted model is not only what our own providers take it for: the
// vendors' clients understand it as well.
func TestPeersUnderstandTheScriptedModel(t *testing.T) {
	fake := fakellm.New(fakellm.Config{
		Key:   testKey,
		Model: says(`{"company":"Gardenia Bakeries — 金"}`),
		Fault: func(c fakellm.Call) fakellm.Fault {
			if c.Model == "prose" || c.Model == "tool" {
				return fakellm.None
			}
			return fakellm.Fault(c.Model)
		},
	})
	server := httptest.NewServer(fake)
	defer server.Close()
	dir := peers(t)
	script, err := filepath.Abs("../../../internal/dev/peers/clients.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-", server.URL)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(readFile(t, script))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("clients: %v\n%s", err, stderr(err))
	}
	journal := make(map[string]fakellm.Entry)
	for _, e := range fake.Entries() {
		journal[string(e.Wire)+"/"+e.Model] = e
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != 31 {
		t.Errorf("clients made %d calls, want 31", len(lines))
	}
	for _, line := range lines {
		var h heard
		if err := json.Unmarshal(line, &h); err != nil {
			t.Fatal(err)
		}
		checkHeard(t, h, journal[h.Vendor+"/"+h.Kind])
	}
}

func checkHeard(t *testing.T, h heard, e fakellm.Entry) {
	t.Helper()
	if h.Kind == "count" {
		if h.Input <= 0 {
			t.Errorf("anthropic counted %d tokens", h.Input)
		}
		return
	}
	if want, ok := refusals[h.Kind]; ok {
		status, special := want[h.Vendor]
		if !special {
			status = want[""]
		}
		if h.Error == "" || h.Status != status {
			t.Errorf("%s, %s: error %q with status %d, want one with %d", h.Vendor, h.Kind, h.Error, h.Status, status)
		}
		return
	}
	if h.Error != "" || h.Text == "" || h.Input != e.In() || h.Output != e.Output || h.Stop != e.Stop {
		t.Errorf("%s, %s: heard %+v; the journal has %d in, %d out, ended by %q", h.Vendor, h.Kind, h, e.In(), e.Output, e.Stop)
	}
	if h.Kind != "truncated" && !json.Valid([]byte(h.Text)) {
		t.Errorf("%s, %s: heard %q, which is not what was said", h.Vendor, h.Kind, h.Text)
	}
}

func stderr(err error) []byte {
	if e, ok := err.(*exec.ExitError); ok {
		return e.Stderr
	}
	return nil
}
