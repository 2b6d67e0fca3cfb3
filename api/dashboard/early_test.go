package dashboard_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// liveOf returns the address of the stream of a page.
func liveOf(t *testing.T, html string) string {
	t.Helper()
	_, live, found := strings.Cut(html, `data-live="`)
	live, _, _ = strings.Cut(live, `"`)
	if !found {
		t.Fatal("the page has no stream")
	}
	return strings.ReplaceAll(live, "&amp;", "&")
}

// awaitPart reads a stream until a line has a text.
func awaitPart(t *testing.T, of *bufio.Scanner, text string) {
	t.Helper()
	for of.Scan() {
		if strings.Contains(of.Text(), text) {
			return
		}
	}
	t.Fatalf("the stream has ended without %s", text)
}

// TestLargeJobs: of a large job the page is there before anything of it is read, its stream brings the rest, and whoever
// has no scripts can have it whole.
func TestLargeJobs(t *testing.T) {
	for page, want := range map[string]string{"records?sort=total": "12.5", "history": "history", "errors": "u1plain"} {
		t.Run(page, func(t *testing.T) {
			s := newStub("plain")
			s.job.TotalUnits, s.job.State = 1_000_000, mapreduce.JobComplete
			server := open(t, s, nil)
			address := server.URL + "/jobs/" + string(jobID) + "/" + page

			name, _, _ := strings.Cut(page, "?")
			status, html, _ := get(t, address)
			if status != http.StatusOK || !strings.Contains(html, "units: they are being read") || strings.Contains(s.noted(), "read ") {
				t.Errorf("status %d, after %q: %s", status, s.noted(), html)
			}
			answer := ask(t, server.URL+liveOf(t, html))
			defer answer.Body.Close()
			awaitPart(t, bufio.NewScanner(answer.Body), `{"name":"`+name+`"`)
			if !strings.Contains(s.noted(), "read ") {
				t.Error("the stream has read nothing")
			}

			whole := address + "?whole=1"
			if strings.Contains(page, "?") {
				whole = address + "&whole=1"
			}
			if status, html, _ := get(t, whole); status != http.StatusOK || strings.Contains(html, "being read") || !strings.Contains(html, want) {
				t.Errorf("whole: status %d: %s", status, html)
			}
		})
	}
}

// TestLargeJobsFail: what keeps the rest from being read is said, as is a choice that there is not.
func TestLargeJobsFail(t *testing.T) {
	s := newStub("plain")
	s.job.TotalUnits, s.job.State = 1_000_000, mapreduce.JobComplete
	server := open(t, s, nil)
	address := server.URL + "/jobs/" + string(jobID) + "/records"
	if status, _, _ := get(t, address+"?show=x"); status != http.StatusBadRequest {
		t.Errorf("status %d for a choice that there is not", status)
	}

	_, html, _ := get(t, address+"?sort=total")
	s.failResult(errs.New(errs.DataLoss, "chunk 3 is not there"))
	answer := ask(t, server.URL+liveOf(t, html))
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	awaitPart(t, lines, "chunk 3 is not there")
	s.failResult(nil)
	awaitPart(t, lines, `{"name":"records"`)
}
