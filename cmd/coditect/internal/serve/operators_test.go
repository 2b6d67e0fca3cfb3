package serve_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/cmd/coditect/internal/serve"
)

func get(t *testing.T, s *serve.AdminServer, path string) (int, string) {
	t.Helper()
	res, err := http.Get("http://" + s.Addr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// A listener runs its checks, all or one, says what each found, and calls one that hangs
// failed. Other methods and paths are refused.
func TestChecks(t *testing.T) {
	fine := serve.AdminCheck{Name: "fine", Run: func(context.Context) error { return nil }}
	bad := serve.AdminCheck{Name: "bad", Run: func(context.Context) error { return errors.New("it rains") }}
	hangs := serve.AdminCheck{Name: "hangs", Run: func(ctx context.Context) error {
		<-ctx.Done()
		select {} // for ever
	}}
	s, err := serve.ListenAdmin(serve.AdminConfig{Address: ":0", Checks: []serve.AdminCheck{fine, bad, hangs}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, tt := range []struct {
		path   string
		status int
		says   []string
	}{
		{"/healthz", 200, []string{"ok"}},
		{"/readyz", 503, []string{"[+] fine ok", "[-] bad: it rains", "[-] hangs: no answer", "not ready"}},
		{"/readyz?exclude=bad&exclude=hangs", 200, []string{"[+] bad excluded", "ready"}},
		{"/readyz/fine", 200, []string{"[+] fine ok"}},
		{"/readyz/bad", 503, []string{"[-] bad: it rains"}},
		{"/readyz/none", 404, nil},
		{"/metrics", 404, nil}, // there are none
		{"/debug/pprof/goroutine?debug=1", 200, []string{"goroutine profile"}},
		{"/debug/vars", 404, nil},
	} {
		status, body := get(t, s, tt.path)
		if status != tt.status {
			t.Errorf("GET %s gives %d, want %d\n%s", tt.path, status, tt.status, body)
		}
		for _, want := range tt.says {
			if !strings.Contains(body, want) {
				t.Errorf("GET %s does not say %q:\n%s", tt.path, want, body)
			}
		}
	}
	res, err := http.Post("http://"+s.Addr().String()+"/readyz", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /readyz gives %d", res.StatusCode)
	}
}

func TestBadAddresses(t *testing.T) {
	for _, address := range []string{"9090", "127.0.0.1", "127.0.0.1:x", ""} {
		if s, err := serve.ListenAdmin(serve.AdminConfig{Address: address}); err == nil {
			t.Errorf("%q is listened on as %s", address, s.Addr())
			_ = s.Close() // the test has failed
		}
	}
}
