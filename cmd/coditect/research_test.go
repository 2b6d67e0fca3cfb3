package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A library has a source of each kind about one question, each with a fact of its own.
type library struct {
	*studio
	web     *httptest.Server
	offline atomic.Bool // the engine of the web does not answer
}

func newLibrary(t *testing.T) *library {
	l := &library{studio: newStudio(t, fakellm.Config{})}
	l.write("kept/dikes.txt", "The sea dike of Norden was raised by two metres after the flood of 1962.\n")
	l.write("kept/bread.txt", "Bread is baked from flour, water and salt in a hot oven.\n")
	l.write("folder/minutes.txt", "The council of Norden voted to pay for the sea dike out of a loan of nine million.\n")
	l.web = httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(l.web.Close)
	return l
}

// serve is a search engine, and the one page that it knows.
func (l *library) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case l.offline.Load():
		http.Error(w, "out of order", http.StatusInternalServerError)
	case r.URL.Path == "/search":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"results": []map[string]string{{
			"url": "http://" + r.Host + "/dike.html", "title": "The sea dike of Norden", "content": "How the sea dike of Norden is kept.",
		}}})
	case r.URL.Path == "/dike.html":
		fmt.Fprint(w, "<html><head><title>The sea dike of Norden</title></head><body><article><h1>The sea dike of Norden</h1><p>Sheep graze on the sea dike of Norden, and keep its grass short and dense all through the summer.</p></article></body></html>")
	default:
		http.NotFound(w, r)
	}
}

// research asks the question of all kinds of sources but those that are left out.
func (l *library) research(output string, without ...string) (outcome, researched) {
	l.t.Helper()
	args := []string{"run", "--pipeline", "research", "--question", "sea dike of Norden", "--output", l.path(output)}
	for kind, flags := range map[string][]string{
		"knowledge": {"--store", "kept=" + l.path("kept")},
		"files":     {"--tool-root", l.path("folder")},
		"web":       {"--tool", "search_web", "--search", "searxng=" + l.web.URL, "--tool", "fetch", "--allow-host", strings.TrimPrefix(l.web.URL, "http://")},
	} {
		if !slices.Contains(without, kind) {
			args = append(args, flags...)
		}
	}
	o := l.try(nil, args...)
	var r researched
	if data, err := os.ReadFile(l.path(output + "/result.json")); err == nil {
		l.decode(string(data), &r)
	}
	return o, r
}

// researched is what the tests look at of a result.
type researched struct {
	Citations map[string]struct {
		Document string `json:"document_id"`
		Quote    string `json:"quote"`
	} `json:"citations"`
	Failed []struct {
		Unit   string   `json:"unit_id"`
		Errors []string `json:"errors"`
	} `json:"failed_units"`
}

// kinds returns the kinds of sources that are cited.
func (r *researched) kinds() []string {
	var found []string
	for kind, fact := range map[string]string{"knowledge": "two metres", "files": "nine million", "web": "Sheep graze"} {
		for _, c := range r.Citations {
			if strings.Contains(c.Quote, fact) && strings.HasPrefix(c.Document, "evidence_") {
				found = append(found, kind)
				break
			}
		}
	}
	slices.Sort(found)
	return found
}

// E2, E3: agents for each kind of source find passages, every one of which is evidence that
// the job holds. Where a kind is missing or fails, the others go on.
func TestE2ResearchGoesOnWithoutASource(t *testing.T) {
	l := newLibrary(t)
	all := []string{"files", "knowledge", "web"}
	o, r := l.research("all")
	if got := r.kinds(); o.code != 0 || !slices.Equal(got, all) {
		t.Fatalf("exit code %d, the report cites %v, want %v\n%s%s", o.code, got, all, o.stdout, o.stderr)
	}
	for _, kind := range all {
		o, r := l.research("without-"+kind, kind)
		want := slices.DeleteFunc(slices.Clone(all), func(k string) bool { return k == kind })
		if got := r.kinds(); o.code != 0 || !slices.Equal(got, want) {
			t.Errorf("without %s: exit code %d, the report cites %v\n%s", kind, o.code, got, o.stderr)
		}
	}
	l.offline.Store(true)
	o, r = l.research("offline")
	if got := r.kinds(); o.code != 3 || !slices.Equal(got, []string{"files", "knowledge"}) || len(r.Failed) != 1 || !strings.Contains(fmt.Sprint(r.Failed[0].Errors), "500") {
		t.Errorf("with the web out of order: exit code %d, the report cites %v, failed is %+v\n%s", o.code, got, r.Failed, o.stderr)
	}
}
