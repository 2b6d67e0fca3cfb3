package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A newsSite is a web server with sources of news, some of which cover a topic.
type newsSite struct {
	*httptest.Server
	down string // an address where nobody listens
}

// The kinds of sources, by their number.
const (
	covers   = iota // an article behind a link of the front page
	silent          // other articles alone
	isDown          // nobody listens
	isSlow          // the front page takes its time
	moved           // the front page is elsewhere
	huge            // the front page has megabytes of other things behind the link
	newsKind        // how many kinds there are
)

func newNewsSite(t *testing.T) *newsSite {
	s := &newsSite{}
	gone := httptest.NewServer(http.NotFoundHandler())
	s.down = gone.URL
	gone.Close()
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *newsSite) serve(w http.ResponseWriter, r *http.Request) {
	var n int
	var page string
	if _, err := fmt.Sscanf(strings.ReplaceAll(r.URL.Path, "/", " "), " %d %s", &n, &page); err != nil {
		http.NotFound(w, r)
		return
	}
	switch kind := n % newsKind; {
	case page == "front.html" && kind == moved:
		http.Redirect(w, r, "home.html", http.StatusMovedPermanently)
		return
	case page == "front.html" && kind == isSlow:
		select {
		case <-time.After(100 * time.Millisecond):
		case <-r.Context().Done():
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	switch page {
	case "front.html", "home.html":
		fmt.Fprintf(w, "<html><head><title>Paper %d</title></head><body><h1>Paper %d</h1><ul><li><a href=\"sport.html\">The cup final is tonight</a></li>", n, n)
		if n%newsKind != silent {
			fmt.Fprintf(w, "<li><a href=\"tide.html\">%s</a></li>", newsHeadline(n))
		}
		fmt.Fprint(w, "</ul>")
		if n%newsKind == huge {
			fmt.Fprint(w, strings.Repeat("<p>Weather, stars and recipes for the whole of the week.</p>", 40_000))
		}
		fmt.Fprint(w, "</body></html>")
	case "tide.html":
		fmt.Fprintf(w, "<html><head><title>%[1]s</title></head><body><article><h1>%[1]s</h1><p>Published on %[2]d March 2026.</p><p>%[3]s</p></article></body></html>", newsHeadline(n), 1+n%28, newsView(n))
	default:
		fmt.Fprint(w, "<html><body><h1>The cup final</h1><p>The final is played tonight at eight, and all tickets of it were sold long ago.</p></body></html>")
	}
}

func newsHeadline(n int) string { return fmt.Sprintf("Tidal barrier vote splits region %d", n) }

func newsView(n int) string {
	return fmt.Sprintf("The vote on the tidal barrier was close in region %d, where fishers fear for %d boats and engineers promise power.", n, 10+n)
}

// sources are the lines that say where the sources are.
func (s *newsSite) sources(count int) string {
	var b strings.Builder
	for n := range count {
		at := s.URL
		if n%newsKind == isDown {
			at = s.down
		}
		fmt.Fprintf(&b, `{"id":"paper%d","country":"Country %d","media_name":"Paper %d","url":"%s/%d/front.html"}`+"\n", n, n%20, n, at, n)
	}
	return b.String()
}

// comparison is what the test looks at of a result.
type comparison struct {
	Data struct {
		Checked int `json:"total_sources_checked"`
		Covered int `json:"sources_with_coverage"`
		Rows    []struct {
			Country string  `json:"country"`
			Media   string  `json:"media_name"`
			Found   bool    `json:"found_coverage"`
			Error   *string `json:"error"`
			Article *struct {
				Headline   string   `json:"headline"`
				URL        string   `json:"article_url"`
				View       string   `json:"core_viewpoint"`
				Date       string   `json:"publication_date"`
				References []string `json:"references"`
			} `json:"article"`
		} `json:"comparison_table"`
	} `json:"aggregated_data"`
	Citations map[string]struct {
		Quote string `json:"quote"`
		URI   string `json:"uri"`
	} `json:"citations"`
}

// D1, D4, D5: of 50 sources the plan chooses as many as it may, each is read by a unit of its
// own, and the table is what the sources say: that one is silent is no error, and that one
// cannot be read is.
func TestD4CompareGivesWhatSourcesSay(t *testing.T) {
	site := newNewsSite(t)
	s := newStudio(t, fakellm.Config{})
	s.write("sources.jsonl", site.sources(50))
	for _, most := range []int{12, 50} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			output := fmt.Sprint("out", most)
			o := s.try(nil, "run", "--input", s.path("sources.jsonl"), "--pipeline", "compare", "--question", "vote on the tidal barrier", "--output", s.path(output),
				"--var", fmt.Sprint("max_sources=", most), "--tool", "fetch",
				"--allow-host", strings.TrimPrefix(site.URL, "http://"), "--allow-host", strings.TrimPrefix(site.down, "http://"))
			if o.code != 0 {
				t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
			}
			var r comparison
			data, err := os.ReadFile(s.path(output + "/result.json"))
			if err != nil {
				t.Fatal(err)
			}
			s.decode(string(data), &r)
			checkComparison(t, site, r, most)
		})
	}
}

func checkComparison(t *testing.T, site *newsSite, r comparison, most int) {
	covered := 0
	for _, row := range r.Data.Rows {
		var n int
		if _, err := fmt.Sscanf(row.Media, "Paper %d", &n); err != nil || row.Country != fmt.Sprint("Country ", n%20) {
			t.Fatalf("row %+v", row)
		}
		kind := n % newsKind
		if want := kind != silent && kind != isDown; row.Found != want || (row.Article != nil) != want || (row.Error != nil) != (kind == isDown) {
			t.Errorf("source %d of kind %d: found %t, article %v, error %v", n, kind, row.Found, row.Article, row.Error)
			continue
		}
		if row.Article == nil {
			continue
		}
		covered++
		a := row.Article
		if a.Headline != newsHeadline(n) || a.View != newsView(n) || a.Date != fmt.Sprintf("2026-03-%02d", 1+n%28) || a.URL != fmt.Sprintf("%s/%d/tide.html", site.URL, n) {
			t.Errorf("source %d: %+v", n, *a)
		}
		for _, ref := range a.References {
			if c, ok := r.Citations[ref]; !ok || c.URI != a.URL || c.Quote == "" {
				t.Errorf("source %d: the reference %s is of %+v", n, ref, c)
			}
		}
	}
	if r.Data.Checked != most || len(r.Data.Rows) != most || r.Data.Covered != covered || covered == 0 {
		t.Errorf("%d sources were checked, want %d; %d are said to cover the topic, and %d do", r.Data.Checked, most, r.Data.Covered, covered)
	}
}
