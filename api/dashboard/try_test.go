package dashboard_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/dashboard/bench"
	"github.com/coditect/mapreduce/api/errs"
)

// asked sends JSON to the workbench.
func asked(t testing.TB, address string, q any) (int, string) {
	t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	if raw, isRaw := q.(string); isRaw {
		body = []byte(raw)
	}
	answer, err := http.Post(address, "application/json", bytes.NewReader(body)) //nolint:noctx // the test has a limit of its own
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// partsOf returns the parts of an answer, in their order on the page.
func partsOf(t testing.TB, answer string) string {
	t.Helper()
	var a struct{ Parts map[string]string }
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	return a.Parts["problems"] + a.Parts["rows"] + a.Parts["shown"] + a.Parts["results"]
}

func sampleWith(text string) *bench.Sample {
	quoted, _ := json.Marshal(text)
	label, _ := json.Marshal("x " + text)
	return &bench.Sample{
		Schema: fmt.Sprintf(`{"title": %s, "type": "object", "required": ["zz"], "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "string", "description": %s, "x-coditect": {"labels": ["total", %s]}}}}}`, quoted, quoted, label),
		Truth:  text, Documents: []bench.Document{{Name: text, Text: text + " 12.50"}},
	}
}

// What somebody tries is shown as text, whatever stands in schema and documents.
func TestWhatIsTriedStaysText(t *testing.T) {
	server := open(t, newStub("plain"), nil)
	_, answer := asked(t, server.URL+"/try/run", sampleWith("plain"))
	want := shape(t, partsOf(t, answer))
	for _, text := range hostile {
		status, answer := asked(t, server.URL+"/try/run", sampleWith(text))
		if status != http.StatusOK {
			t.Errorf("%q: status %d: %s", text, status, answer)
			continue
		}
		if got := shape(t, partsOf(t, answer)); !slices.Equal(want, got) {
			t.Errorf("%q gives another page:\n%v\n%v", text, got, want)
		}
	}
}

// What is found is shown with its passage, and a schema that is broken with its line.
func TestTrying(t *testing.T) {
	server := open(t, newStub("plain"), nil)
	_, answer := asked(t, server.URL+"/try/run", &bench.Sample{Schema: triedSchema, Documents: []bench.Document{{Name: "a.txt", Text: "12.50 & more"}}})
	parts := partsOf(t, answer)
	for _, want := range []string{`data-start="0" title="total">12.50</mark>`, " &amp; more", "1 / 1", "by its hints", "1 other values", "refused: it"} {
		if !strings.Contains(parts, want) {
			t.Errorf("%q is not shown in %s", want, parts)
		}
	}

	_, answer = asked(t, server.URL+"/try/run", &bench.Sample{Schema: strings.Replace(triedSchema, "number", "nummer", 1)})
	if parts := partsOf(t, answer); !strings.Contains(parts, "Line 4:") || !strings.Contains(answer, `"broken":true`) {
		t.Errorf("the fault is not shown in %s", answer)
	}

	_, answer = asked(t, server.URL+"/try/edit", map[string]any{"schema": triedSchema, "edit": bench.Edit{At: "/properties/total", What: "type", Value: "integer"}})
	if !strings.Contains(answer, "{type: integer, x-coditect: {labels: [Total]}}") {
		t.Errorf("the form changed it to %s", answer)
	}
	_, answer = asked(t, server.URL+"/try/infer", &bench.Sample{Documents: []bench.Document{{Name: "a.txt", Text: "x"}}})
	if !strings.Contains(answer, "# a.txt") {
		t.Errorf("proposed is %s", answer)
	}
}

// What is wrong with a request is said, and nothing is tried for those who may not submit jobs.
func TestTryingIsRefused(t *testing.T) {
	s := newStub("plain")
	server := open(t, s, nil)
	for name, tt := range map[string]struct {
		path   string
		body   any
		status int
		want   string
	}{
		"an upload that broke off": {"/try/run", `{"schema": "type: obj`, http.StatusBadRequest, "broke off"},
		"too much":                 {"/try/run", &bench.Sample{Schema: strings.Repeat("#", 9<<20)}, http.StatusBadRequest, "8 MiB"},
		"a schema without end":     {"/try/run", &bench.Sample{Schema: strings.Repeat("#", 2<<20)}, http.StatusBadRequest, "KiB at most"},
		"nothing to propose for":   {"/try/infer", &bench.Sample{}, http.StatusBadRequest, "are missing"},
		"a job without documents":  {"/try/job", map[string]any{"schema": triedSchema}, http.StatusBadRequest, "must be 1 to"},
	} {
		if status, answer := asked(t, server.URL+tt.path, tt.body); status != tt.status || !strings.Contains(answer, tt.want) {
			t.Errorf("%s: status %d: %s", name, status, answer)
		}
	}

	s.planErr = errs.New(errs.Denied, "you do not submit jobs")
	for _, path := range []string{"/try/run", "/try/infer", "/try/edit", "/try/job", "/try/read?name=a"} {
		if status, answer := asked(t, server.URL+path, &bench.Sample{Schema: triedSchema}); status != http.StatusForbidden {
			t.Errorf("%s: status %d: %s", path, status, answer)
		}
	}
}

// An upload that breaks off is no document.
func TestUploadsThatBreakOff(t *testing.T) {
	server := open(t, newStub("plain"), nil)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "POST /try/read?name=a.txt HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\nTotal", server.Listener.Addr())
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 ") || strings.Contains(string(answer), "Total") {
		t.Errorf("got %v and %q", err, answer)
	}
}

// A model reads a sample by a job, of which there is one however often it is asked for.
func TestTryingWithAModel(t *testing.T) {
	s := newStub("plain")
	server := open(t, s, nil)
	q := map[string]any{"schema": triedSchema, "documents": []bench.Document{{Name: "d", Text: "Total 12.50 EUR"}}, "provider": "fake", "model": "m"}
	q["plan"] = true
	if _, answer := asked(t, server.URL+"/try/job", q); !strings.Contains(answer, `"cost":"$0.50"`) || strings.Contains(s.noted(), "submit") {
		t.Errorf("the cost is %s, and done was %s", answer, s.noted())
	}

	q["plan"] = false
	var first []string
	for range 2 {
		_, answer := asked(t, server.URL+"/try/job", q)
		if !strings.Contains(answer, string(jobID)) {
			t.Errorf("got %s", answer)
		}
		lines := strings.Split(s.noted(), "\n")
		first = append(first, lines[len(lines)-1])
	}
	if first[0] != first[1] || !strings.Contains(first[0], "submit d 15 try ") {
		t.Errorf("the same sample is submitted as %q", first)
	}

	q["job"] = string(jobID)
	if _, answer := asked(t, server.URL+"/try/job", q); !strings.Contains(answer, `"running":"1 / 3"`) {
		t.Errorf("of a job that runs it says %s", answer)
	}
}
