package dashboard_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/mapreduce"
	fitted "github.com/coditect/mapreduce/cmd/coditect/internal/dashboard"
)

// A stub knows one job.
type stub struct{ mapreduce.Client }

func (stub) GetJob(_ context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return &mapreduce.Job{ID: id, State: mapreduce.JobComplete}, nil
}

func (stub) Caller(context.Context) (*mapreduce.Principal, error) {
	return new(mapreduce.Principal), nil
}

func (stub) ListUnits(context.Context, mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	return &mapreduce.UnitPage{}, nil
}

// Only who has the key sees a job, and the key leaves the address at once.
func TestKey(t *testing.T) {
	l, err := fitted.Listen(stub{}, &dashboard.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	address := l.Address("mr_20260131_1a2b3c")
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar}
	get := func(address string) (int, string, string) {
		answer, err := client.Get(address) //nolint:noctx // the test has a limit of its own
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body), answer.Request.URL.RawQuery
	}

	bare, key, _ := strings.Cut(address, "?")
	for _, wrong := range []string{bare, bare + "?key=", bare + "?" + key[:len(key)-1]} {
		if status, body, _ := get(wrong); status != http.StatusForbidden || strings.Contains(body, "mr_2026") {
			t.Errorf("%s: status %d", wrong, status)
		}
	}
	if status, body, query := get(address); status != http.StatusOK || !strings.Contains(body, "mr_20260131_1a2b3c") || query != "" {
		t.Errorf("with the key: status %d, the address keeps %q", status, query)
	}
	if status, _, _ := get(bare); status != http.StatusOK {
		t.Errorf("with the cookie: status %d", status)
	}
}
