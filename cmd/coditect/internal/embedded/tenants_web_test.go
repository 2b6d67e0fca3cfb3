package embedded_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/web"
)

// A restRule says how a method is called by REST.
type restRule struct {
	Selector, Get, Post, Delete string
	Bindings                    []restRule `yaml:"additional_bindings"`
}

// paths returns the verb and the path of each way to call a method by REST.
func (r restRule) paths() (all [][2]string) {
	for _, one := range append([]restRule{r}, r.Bindings...) {
		for _, p := range [][2]string{{http.MethodGet, one.Get}, {http.MethodPost, one.Post}, {http.MethodDelete, one.Delete}} {
			if p[1] != "" {
				all = append(all, p)
			}
		}
	}
	return all
}

func restRules(t *testing.T) map[string]restRule {
	t.Helper()
	data, err := os.ReadFile("../../../../proto/rest/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ HTTP struct{ Rules []restRule } }
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]restRule)
	for _, r := range file.HTTP.Rules {
		all[r.Selector] = r
	}
	return all
}

// serveHTTP serves HTTP until the test ends.
func (w *town) serveHTTP() {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.node.ServeHTTP(l, web.Config{}); err != nil {
		w.t.Fatal(err)
	}
	w.http = "http://" + l.Addr().String()
	w.browser = &http.Client{Transport: &http.Transport{DisableCompression: true}}
	w.t.Cleanup(w.browser.CloseIdleConnections)
}

// A webReader reads by HTTP all that a caller can.
type webReader struct {
	*town
	secret string
	read   *cage
	rules  map[string]restRule
}

// ask makes a request and notes all of the answer.
func (r *webReader) ask(what, verb, path, kind string, body []byte) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), verb, r.http+path, bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+r.secret)
	if kind != "" {
		q.Header.Set("Content-Type", kind)
	}
	a, err := r.browser.Do(q)
	if err != nil {
		r.read.add(what, err)
		return
	}
	defer a.Body.Close()
	data, err := io.ReadAll(a.Body)
	r.read.add(what, string(data), a.Header, a.Trailer, a.Status, fmt.Sprint(err))
}

// request returns the JSON of a request about a job, or a tenant, with whatever else the
// method knows that makes it tell more.
func request(d protoreflect.MessageDescriptor, job mapreduce.JobID, tenant mapreduce.TenantID) map[string]any {
	values := map[string]any{
		"jobId": job, "tenantId": tenant, "unitId": canaryUnit, "documentId": canaryUnit, "handle": "h",
		"recordId": "0.0", "field": "name", "verdict": "REVIEW_VERDICT_ACCEPT",
		"partial": true, "verify": true, "proofs": true, "outputs": true, "inputs": true, "pageSize": 3,
		"spec":      map[string]any{"tenantId": tenant, "schema": personSchema, "requestId": "request-1"}, // which both have used
		"documents": []any{map[string]any{"documentId": "p", "content": base64.StdEncoding.EncodeToString([]byte("Name: Pat\n"))}},
	}
	all := make(map[string]any)
	for name, v := range values {
		if d.Fields().ByJSONName(name) != nil && v != mapreduce.JobID("") && v != mapreduce.TenantID("") {
			all[name] = v
		}
	}
	return all
}

// changing are the methods that change a job: they are tried on others' alone.
var changing = []protoreflect.Name{"PauseJob", "ResumeJob", "MarkCause", "CancelJob", "DeleteJob", "WakeUnit", "DecideValue"}

// readWeb calls each method that HTTP offers, by REST, Connect and gRPC-Web, about jobs of
// the caller's own and of others, and for each tenant.
func (w *town) readWeb(name string, own, others []mapreduce.JobID, c *cage) {
	w.t.Helper()
	r := &webReader{w, w.secrets[name], c, restRules(w.t)}
	for _, path := range []string{"/metrics", "/debug/pprof/", "/healthz", "/readyz", "/", "/v1", "/v1/jobs/../metrics"} {
		r.ask("pages", http.MethodGet, path, "", nil)
	}
	for _, s := range web.Services() {
		for i := range s.Methods().Len() {
			m := s.Methods().Get(i)
			if m.Input().Fields().ByJSONName("jobId") != nil {
				for _, id := range own {
					if !slices.Contains(changing, m.Name()) {
						r.call(m, id, "")
					}
				}
				for _, id := range others {
					r.call(m, id, "")
				}
			}
			if m.Input().Fields().ByJSONName("tenantId") != nil || m.Input().Fields().ByJSONName("spec") != nil {
				for _, t := range []mapreduce.TenantID{"", "a", "b"} {
					r.call(m, "", t)
				}
			}
		}
	}
	r.ask("CheckStore", http.MethodPost, "/v1/store:check", "application/json", nil)
}

// call calls a method in every way.
func (r *webReader) call(m protoreflect.MethodDescriptor, job mapreduce.JobID, tenant mapreduce.TenantID) {
	r.t.Helper()
	fields := request(m.Input(), job, tenant)
	body, err := json.Marshal(fields)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range r.rules[string(m.FullName())].paths() {
		verb, path := p[0], p[1]
		if job == "" && strings.Contains(path, "{job_id}") {
			continue
		}
		path = strings.ReplaceAll(path, "{job_id}", string(job))
		sent := body
		if verb != http.MethodPost {
			query := make(url.Values)
			for name, v := range fields {
				if name != "jobId" || !strings.Contains(p[1], "{") {
					query.Set(name, fmt.Sprint(v))
				}
			}
			path, sent = path+"?"+query.Encode(), nil
		}
		r.ask("REST "+string(m.Name()), verb, path, "application/json", sent)
	}
	path := fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
	enveloped := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	if m.IsStreamingClient() || m.IsStreamingServer() {
		r.ask("Connect "+string(m.Name()), http.MethodPost, path, "application/connect+json", enveloped)
	} else {
		r.ask("Connect "+string(m.Name()), http.MethodPost, path, "application/json", body)
	}
	r.ask("gRPC-Web "+string(m.Name()), http.MethodPost, path, "application/grpc-web+json", enveloped)
}

// A logbook is what a server logs for its operators.
type logbook struct {
	mu   sync.Mutex // guards the variable below
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// operatorsSee fails if the log or the metrics of a server have a word that is in documents,
// in their names, in variables and in what workers report.
func (w *town) operatorsSee(word string) {
	w.t.Helper()
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	for line := range strings.Lines(w.log.text.String()) {
		if strings.Contains(strings.ToLower(line), strings.ToLower(word)) {
			w.t.Errorf("the log has %s", line)
		}
	}
	var all metricdata.ResourceMetrics
	if err := w.metrics.Collect(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	page := fmt.Sprintf("%+v", all)
	if len(all.ScopeMetrics) == 0 || !strings.Contains(page, "coditect") {
		w.t.Error("nothing was measured")
	}
	if at := strings.Index(strings.ToLower(page), strings.ToLower(word)); at >= 0 {
		w.t.Errorf("metrics have …%s…", page[max(0, at-200):min(len(page), at+200)])
	}
}
