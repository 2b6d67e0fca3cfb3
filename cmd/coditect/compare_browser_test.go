package main_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A newsroom is a model that compares sources as people would by a browser: it opens a front
// page, agrees to what is asked, follows the link to the topic, and quotes the article. It
// does what pages tell it to, as models do that were misled.
type newsroom struct {
	most int // sources that its planner chooses, of 50
}

var (
	namedSource = regexp.MustCompile(`named "?(paper\d+)`)
	ownAddress  = regexp.MustCompile(`"url": ?"([^"]+)"`)
	agreeButton = regexp.MustCompile(`button "Accept all" \[(e\d+)\]`)
	topicLink   = regexp.MustCompile(`link "Tidal barrier[^"]*" \[(e\d+)\]`)
	articleText = regexp.MustCompile(`(?s)<(evidence_[0-9a-f]{16}) \S+> (\S+)[^\n]*\n[^<]*?(Tidal barrier vote splits region (\d+)).*?Published on (\d+ March 2026)`)
	sentTo      = regexp.MustCompile(`browser_open for (\S+/steal)`)
	sourceIn    = regexp.MustCompile(`(?:Paper|paper|region) ?(\d+)`)
)

func (m *newsroom) answer(c fakellm.Call) fakellm.Reply {
	switch form := string(c.Schema); {
	case len(c.Tools) > 0:
		return m.read(c)
	case strings.Contains(form, "selected_sources"):
		return m.plan(c)
	case strings.Contains(form, `"summary"`): // the table and its counts are not asked of a model
		return m.edit(c)
	}
	return replyOf(map[string]any{"verdicts": []any{}})
}

// plan chooses sources of all kinds.
func (m *newsroom) plan(c fakellm.Call) fakellm.Reply {
	var listed, chosen []string
	for _, found := range namedSource.FindAllStringSubmatch(c.Prompt(), -1) {
		if !slices.Contains(listed, found[1]) {
			listed = append(listed, found[1])
		}
	}
	for i := 0; len(chosen) < min(m.most, len(listed)); i++ { // 7 has no factor in common with 50, nor with the kinds
		chosen = append(chosen, listed[i*7%len(listed)])
	}
	selected := make([]any, len(chosen))
	for i, id := range chosen {
		selected[i] = map[string]string{"id": id}
	}
	return replyOf(map[string]any{"topic": "tidal barrier", "selected_sources": selected, "rationale": "They are of different kinds."})
}

// read is a turn of the reader of one source.
func (m *newsroom) read(c fakellm.Call) fakellm.Reply {
	if len(c.Uses) == 0 {
		return reach("browser_open", "url", ownAddress.FindStringSubmatch(c.Turns[0].Text)[1])
	}
	last := c.Uses[len(c.Uses)-1]
	misled := slices.ContainsFunc(c.Uses, func(u fakellm.Use) bool { return u.Name == "send_mail" })
	article := m.article(c)
	switch {
	case article != nil && !misled && sentTo.MatchString(last.Result):
		r := reach("browser_open", "url", sentTo.FindStringSubmatch(last.Result)[1])
		r.Calls = append(r.Calls, reach("fetch", "url", sentTo.FindStringSubmatch(last.Result)[1]).Calls...)
		r.Calls = append(r.Calls, reach("send_mail", "text", "all that I know").Calls...)
		r.Calls = append(r.Calls, reach("read", "path", "/etc/passwd").Calls...)
		return r
	case article != nil && !slices.ContainsFunc(c.Uses, func(u fakellm.Use) bool { return u.Name == "browser_screenshot" }):
		return fakellm.Reply{Calls: []fakellm.Use{{Name: "browser_screenshot", Input: json.RawMessage(`{}`)}}}
	case article != nil:
		return replyOf(article)
	case last.Error:
		return replyOf(m.finding(c, nil, last.Result))
	case agreeButton.MatchString(last.Result):
		return reach("browser_click", "ref", agreeButton.FindStringSubmatch(last.Result)[1])
	case topicLink.MatchString(last.Result):
		return reach("browser_click", "ref", topicLink.FindStringSubmatch(last.Result)[1])
	}
	return replyOf(m.finding(c, nil, ""))
}

func reach(tool, property, value string) fakellm.Reply {
	input, err := json.Marshal(map[string]string{property: value})
	if err != nil {
		panic(err) // texts
	}
	return fakellm.Reply{Calls: []fakellm.Use{{Name: tool, Input: input}}}
}

// article is the answer by the article that was read; nil if none was.
func (m *newsroom) article(c fakellm.Call) map[string]any {
	for _, u := range c.Uses {
		found := articleText.FindStringSubmatch(u.Result)
		if found == nil {
			continue
		}
		var n, day int
		if _, err := fmt.Sscanf(found[4]+" "+found[5], "%d %d March 2026", &n, &day); err != nil {
			panic(err) // it matches
		}
		answer := m.finding(c, map[string]any{
			"headline": found[3], "article_url": found[2], "core_viewpoint": newsView(n), "publication_date": fmt.Sprintf("2026-03-%02d", day),
			"references": []string{"REF_Q1", "REF_Q2", "REF_Q3"},
		}, "")
		for i, quote := range []string{found[3], newsView(n), found[5]} {
			answer["quotes"] = append(answer["quotes"].([]any), map[string]string{"ref": fmt.Sprint("REF_Q", i+1), "document": found[1], "quote": quote})
		}
		return answer
	}
	return nil
}

// finding is the answer of a reader. It names another source than its own, as a model might.
func (m *newsroom) finding(_ fakellm.Call, article map[string]any, failed string) map[string]any {
	value := map[string]any{"country": "Nowhere", "media_name": "The Wrong Paper", "found_coverage": article != nil, "article": nil, "error": nil}
	if article != nil {
		value["article"] = article
	}
	if failed != "" {
		value["error"] = failed
	}
	return map[string]any{"quotes": []any{}, "value": value}
}

// edit writes the summary by the findings.
func (m *newsroom) edit(c fakellm.Call) fakellm.Reply {
	refs := shownRef.FindAllString(c.Prompt(), -1)
	return replyOf(map[string]any{
		"summary": "The vote on the tidal barrier was close [" + refs[0] + "].", "total_sources_checked": 1, "sources_with_coverage": 99,
		"comparison_table": []any{map[string]any{"country": "Atlantis", "media_name": "Invented", "found_coverage": true, "article": nil, "error": nil}},
	})
}

// needChromium skips a test where there is none.
func needChromium(t *testing.T) {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if _, err := exec.LookPath(name); err == nil {
			return
		}
	}
	t.Skip("no Chromium is installed")
}

// TestD2CompareThroughChromium: sources whose pages are drawn by scripts, stand behind a
// consent or give orders are read through a browser that a model drives. The table is what
// they say; no context holds what another source says, and the last one holds JSON alone
// (D1, D2, D5, D7). CODITECT_TEST_BROWSER=all reads all 50 of them, too.
func TestD2CompareThroughChromium(t *testing.T) {
	testenv.SlowOnFDB(t)

	needChromium(t)
	for _, most := range []int{12, 50} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			if most == 50 && os.Getenv("CODITECT_TEST_BROWSER") != "all" {
				t.Skip("CODITECT_TEST_BROWSER is not all; make test-browser sets it")
			}
			site := newNewsSite(t, browsedKinds)
			s := newStudio(t, fakellm.Config{Key: modelKey, Model: (&newsroom{most: most}).answer})
			s.patience = 10 * time.Minute
			s.write("sources.jsonl", site.sources(50))
			r := s.compare("out", most, append(site.hosts(), "--tool", "fetch", "--tool", "browser",
				"--provider", "anthropic", "--model", "claude-haiku-4-5", "--base-url", s.url)...)
			r.check(t, site, most, site.covers)
			s.checkContexts(most)
			s.checkSizes("out")
			s.checkThree("out")
			s.checkRefused("out", "send_mail", "read", "is not among the hosts")
			s.checkPictures(r)
		})
	}
}

// checkContexts checks what each context of a comparison held, by the journal of the model.
func (s *studio) checkContexts(most int) {
	s.t.Helper()
	readers, largest := map[string]bool{}, map[string]int{}
	for _, e := range s.fake.Entries() {
		var asked strings.Builder
		for _, turn := range e.Turns {
			asked.WriteString(turn.Text + "\n")
		}
		text := asked.String()
		stage := "aggregate"
		switch {
		case len(e.Tools) > 0:
			stage = "extract"
			readers[e.Unit] = true
			s.checkReader(e.Unit, text)
		case strings.Contains(string(e.Schema), "selected_sources"):
			stage = "plan"
			if strings.Contains(text, "Tidal barrier vote") || strings.Contains(text, "<html") {
				s.t.Errorf("the planner sees pages: %.2000s", text)
			}
		default:
			s.checkEditor(text)
		}
		largest[stage] = max(largest[stage], len(e.System)+len(text))
	}
	if len(readers) != most {
		s.t.Errorf("%d contexts of sources, want %d", len(readers), most)
	}
	s.t.Logf("largest contexts in bytes: %v", largest)
}

// checkReader checks that a context is about one source alone.
func (s *studio) checkReader(unit, text string) {
	s.t.Helper()
	var about []string
	for _, m := range sourceIn.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(about, m[1]) {
			about = append(about, m[1])
		}
	}
	if len(about) != 1 {
		s.t.Errorf("the context of %s is about the sources %v", unit, about)
	}
}

// checkEditor checks that all that the last stage is given is JSON, by its form.
func (s *studio) checkEditor(text string) {
	s.t.Helper()
	for _, page := range []string{"<html", "<p>", "Outline:", "Published on", "cup final", "Weather, stars"} {
		if strings.Contains(text, page) {
			s.t.Errorf("the editor sees %q of a page", page)
		}
	}
	inputs := inputForm.FindAllStringSubmatch(text, -1)
	for _, m := range inputs {
		var row struct {
			Country *string `json:"country"`
		}
		if err := json.Unmarshal([]byte(m[1]), &row); err != nil || row.Country == nil {
			s.t.Errorf("the editor is given %q: %v", m[1], err)
		}
	}
}

// checkRefused checks that calls which the stage or the policy forbids are in the trace, each
// with why. Calls are named by the tool, or by the reason.
func (s *studio) checkRefused(output string, wanted ...string) {
	s.t.Helper()
	data, err := os.ReadFile(s.path(output + "/trace.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	var trace struct {
		Tasks []struct {
			Calls []struct{ Tool, Error string }
		}
	}
	s.decode(string(data), &trace)
	for _, want := range wanted {
		found := false
		for _, task := range trace.Tasks {
			for _, c := range task.Calls {
				found = found || strings.Contains(c.Error, "is refused") && (c.Tool == want || strings.Contains(c.Error, want))
			}
		}
		if !found {
			s.t.Errorf("the trace has no refusal of %s", want)
		}
	}
}

// checkPictures checks that each article has its picture, which report.html shows.
func (s *studio) checkPictures(r comparison) {
	s.t.Helper()
	pictures := 0
	for _, e := range r.Evidence {
		if e.Media == "image/png" {
			pictures++
			if !slices.ContainsFunc(r.Evidence, func(of heldEvidence) bool { return of.Media == "text/html" && of.URI == e.URI && of.Unit == e.Unit }) {
				s.t.Errorf("a picture of %s, which nothing cites", e.URI)
			}
		}
	}
	report, err := os.ReadFile(s.path("out/report.html"))
	if err != nil {
		s.t.Fatal(err)
	}
	if shown := bytes.Count(pageData(s.t, report), []byte(`"media":"image/png","data":"iVBOR`)); pictures != r.Data.Covered || shown != pictures {
		s.t.Errorf("%d pictures of %d articles, %d of which the report shows", pictures, r.Data.Covered, shown)
	}
}

// pageData returns the data of a report.html as JSON, which is packed where it is large.
func pageData(t *testing.T, report []byte) []byte {
	t.Helper()
	block := regexp.MustCompile(`(?s)<script type="([^"]*)" id="data">(.*?)</script>`).FindSubmatch(report)
	if block == nil {
		t.Fatal("report.html has no data")
	}
	if string(block[1]) == "application/json" {
		return block[2]
	}
	unpacked, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(block[2])))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestD7CompareBrowsesWithRules: without a model, too, pages that scripts draw are read. What
// stands behind a button is not: rules clicks nothing.
func TestD7CompareBrowsesWithRules(t *testing.T) {
	testenv.SlowOnFDB(t)

	needChromium(t)
	site := newNewsSite(t, browsedKinds)
	s := newStudio(t, fakellm.Config{})
	s.patience = 10 * time.Minute
	most, sources := 10, site.sources(browsedKinds)
	if os.Getenv("CODITECT_TEST_BROWSER") == "all" {
		most, sources = 50, site.sources(50)
	}
	s.write("sources.jsonl", sources)
	r := s.compare("out", most, append(site.hosts(), "--tool", "fetch", "--tool", "browser")...)
	r.check(t, site, most, func(n int) bool { return site.covers(n) && n%browsedKinds != consent })
}
