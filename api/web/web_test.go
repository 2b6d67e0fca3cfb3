package web_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/grpclog"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/api/web"
)

func TestMain(m *testing.M) {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	goleak.VerifyTestMain(m)
}

// A listener serves HTTP for a test.
type listener struct {
	t      testing.TB
	url    string
	http   *http.Client
	server *server.Server

	mu     sync.Mutex // guards the variable below
	called map[string]int
}

// serve serves a service by HTTP in the clear until the test ends.
func serve(t testing.TB, service mapreduce.Service, config web.Config) *listener {
	t.Helper()
	l := &listener{t: t, called: make(map[string]int)}
	note := func(method string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.called[method]++
	}
	quiet := slog.New(slog.DiscardHandler)
	s, err := server.New(service, &servertest.Fleet{}, server.Config{Logger: quiet, Options: []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, q any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			note(info.FullMethod)
			return handle(ctx, q)
		}),
		grpc.ChainStreamInterceptor(func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			note(info.FullMethod)
			return handle(service, stream)
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	config.Server, config.Logger, l.server = s, quiet, s
	edge, err := web.New(config)
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- edge.Serve(tcp) }()
	transport := &http.Transport{}
	l.url, l.http = "http://"+tcp.Addr().String(), &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
		defer stop()
		var both sync.WaitGroup
		both.Go(func() { s.Shutdown(ctx) })
		both.Go(func() { edge.Shutdown(ctx) })
		both.Wait()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l
}

// An answer is that of a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask makes a request: METHOD PATH, a body, and headers as NAME, VALUE.
func (l *listener) ask(request, body string, header ...string) answer {
	l.t.Helper()
	method, path, _ := strings.Cut(request, " ")
	q, err := http.NewRequestWithContext(l.t.Context(), method, l.url+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			q.Host = header[i+1]
		}
		q.Header.Set(header[i], header[i+1])
	}
	a, err := l.http.Do(q)
	if err != nil {
		l.t.Fatal(err)
	}
	defer a.Body.Close()
	data, err := io.ReadAll(a.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return answer{a.StatusCode, a.Header, string(data)}
}

// want makes a request that has to be answered in a way: 200, unless the answer is to begin
// with another status, and all of the texts somewhere in the body.
func (l *listener) want(request, body string, texts ...string) answer {
	l.t.Helper()
	a := l.ask(request, body)
	status := http.StatusOK
	if len(texts) > 0 {
		if n := 0; len(texts[0]) == 3 {
			if _, err := fmt.Sscan(texts[0], &n); err == nil {
				status, texts = n, texts[1:]
			}
		}
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			l.t.Errorf("%s: the answer lacks %s:\n%s", request, text, a.body)
		}
	}
	if a.status != status {
		l.t.Errorf("%s: status %d, want %d:\n%s", request, a.status, status, a.body)
	}
	return a
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// A job's whole life by REST, over a real listener: each method that HTTP offers is called.
func TestREST(t *testing.T) {
	service := &servertest.Service{}
	l := serve(t, service, web.Config{})
	large := strings.Repeat("The total is 12.50 today.\n", 60_000) // above what one message should hold
	documents := fmt.Sprintf(`[{"documentId":"a/1.txt","content":%q,"metadata":{"k":"v"}},{"documentId":"b.txt","content":%q}]`, encoded("TOTAL: 1.50"), encoded(large))
	a := l.want("POST /v1/jobs", `{"spec":{"tenantId":"a","provider":"rules"},"documents":`+documents+`}`, `"state":"JOB_STATE_`, `"tenantId":"a"`)
	var submitted struct {
		Job struct {
			JobID string `json:"jobId"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &submitted); err != nil || submitted.Job.JobID == "" {
		t.Fatalf("%v: %s", err, a.body)
	}
	id := mapreduce.JobID(submitted.Job.JobID)
	job := "/v1/jobs/" + string(id)
	kept := service.Documents(id)
	if len(kept) != 2 || string(kept[0].Content) != "TOTAL: 1.50" || kept[0].Metadata["k"] != "v" || string(kept[1].Content) != large {
		t.Errorf("%d documents have come, or others than were sent", len(kept))
	}

	// Several messages, one after another, and a document in pieces.
	l.want("POST /v1/jobs", fmt.Sprintf(`{"spec":{"tenantId":"a"}}
		{"documents":[{"documentId":"x","content":%q,"more":true}]} {"documents":[{"documentId":"x","content":%q}]}`, encoded("one "), encoded("two")), `"jobId"`)
	page := l.want("GET /v1/jobs?page_size=1&tenantId=a&states=JOB_STATE_MAPPING&states=JOB_STATE_DECOMPOSITION", "", `"nextPageToken":"1"`)
	if strings.Count(page.body, `"jobId"`) != 1 {
		t.Errorf("a page of one: %s", page.body)
	}
	l.want("GET /v1/jobs?page_size=1&page_token=1", "", string(id))
	l.want("GET "+job, "", `"jobId":"`+string(id)+`"`)
	l.want("POST /v1/jobs:plan", `{"spec":{"tenantId":"a"},"documents":`+documents+`}`, `{"result":{"plan":{`, "a/1.txt")
	l.want("GET "+job+"/units?page_size=1", "", `"unitId":"a/1.txt"`, `"nextPageToken"`)
	if err := service.Park(id, "a/1.txt", mapreduce.Parking{Handle: "order 7"}); err != nil {
		t.Fatal(err)
	}
	l.want("POST "+job+"/units:wake", `{"unitId":"a/1.txt","handle":"order 7","answer":"eWVz"}`, `"unitId":"a/1.txt"`)
	l.want("POST "+job+":pause", "", "JOB_STATE_PAUSED")
	l.want("POST "+job+":resume", `{"budgetTokens":"7"}`, `"state":"JOB_STATE_`)
	l.want("GET "+job+"/result", "", "400", `"code":9`, "not complete", `"reason":"PRECONDITION"`)
	l.want("GET "+job+"/result.json", "", "400", "not complete")
	l.want("GET "+job+"/text?unit_id=a/1.txt&document_id=b.txt", "", "404", `"code":5`)
	if text := l.want("GET "+job+"/text?unit_id=a/1.txt&document_id=a/1.txt", ""); text.body != "TOTAL: 1.50" || text.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("the text is %q of %s", text.body, text.header.Get("Content-Type"))
	}

	// A watch ends with the job.
	watched := make(chan answer, 1)
	go func() { watched <- l.ask("GET "+job+":watch", "") }()
	if _, err := service.Finish(id); err != nil {
		t.Fatal(err)
	}
	if w := <-watched; w.header.Get("Content-Type") != "application/x-ndjson" || !strings.Contains(w.body, "JOB_STATE_COMPLETE") {
		t.Errorf("the watch brought %s %s", w.header.Get("Content-Type"), w.body)
	}
	parts := l.want("GET "+job+"/result", "", "citation", "summary")
	for line := range strings.Lines(parts.body) {
		if !json.Valid([]byte(line)) || !strings.HasPrefix(line, `{"result":`) {
			t.Errorf("a line of a stream is no result: %s", line)
		}
	}
	file := l.want("GET "+job+"/result.json?partial=false", "")
	if want := l.resultFile(id); file.body != want || file.header.Get("Content-Type") != "application/json" {
		t.Errorf("result.json is %s\n%s\nwant\n%s", file.header.Get("Content-Type"), file.body, want)
	}
	l.want("POST "+job+"/decisions", `{"recordId":"0.0","field":"total","verdict":"REVIEW_VERDICT_ACCEPT","note":"as printed"}`, `"decision":{`, `"recordId":"0.0"`, `"note":"as printed"`)
	l.want("GET "+job+"/decisions?record_id=0.0", "", `{"decisions":[{`, `"verdict":"REVIEW_VERDICT_ACCEPT"`)
	l.want("POST "+job+"/claims", `{"recordIds":["0.0"],"time":"300s"}`, `"claims":[{`, `"recordId":"0.0"`, `"own":true`)
	l.want("GET "+job+"/waiting", "", "{}")
	l.want("GET "+job+"/events?verify=true", "", `"checkpoints"`, `"seals"`)
	l.want("POST "+job+"/causes:mark", `{"cause":"host … is away","state":"CAUSE_STATE_IGNORED"}`, `"causes":[{"cause":"host … is away","state":"CAUSE_STATE_IGNORED"`)
	l.want("POST "+job+":cancel", "", "400", "cannot become cancelled")
	l.want("GET /v1/costs?tenant_id=a", "", `"costMicros":"45"`)
	l.want("GET /v1/certificates?tenant_id=a", "", `"certificates":[{"certificateId":"cccc`, `"leastConfidence":0.5`, `"auditAlikeCount":"19"`)
	l.want("DELETE /v1/certificates/"+strings.Repeat("c", 32)+"?tenant_id=a", "", "{}")
	l.want("GET /v1/certificates?tenant_id=a", "", "{}")
	l.want("DELETE /v1/certificates/"+strings.Repeat("c", 32)+"?tenant_id=a", "", "404", `"code":5`)
	l.want("GET /v1/answers?tenant_id=abc", "", `"answerCount":"3"`)
	l.want("POST /v1/answers:clear", `{"tenantId":"abc"}`, `"cleared":{"answerCount":"3"`)
	l.want("POST /v1/store:check", "", `{"result":{"finding":`)
	l.want("DELETE "+job, "", "{}")
	l.want("GET /v1/events?tenant_id=a", "", "404", `"code":5`) // the service of this test keeps no log
	l.want("GET /v1/fleet", "", `"nodeId":"n1"`, `"breakerOpen":true`, `"write":"0.002s"`)
	l.want("GET /v1/caller", "", `"roles":[`)
	l.want("GET /v1/use?tenant_id=a", "", `{"tenantId":"a","quotas":[{"name":"jobs","used":"`, `"limit":"10"}],"keep":"3600s"}`)
	l.want("GET "+job, "", "404", `"code":5`, `"@type":"type.googleapis.com/google.rpc.ErrorInfo"`, `"domain":"coditect.mapreduce"`)

	for _, s := range web.Services() {
		for i := range s.Methods().Len() {
			if name := fmt.Sprintf("/%s/%s", s.FullName(), s.Methods().Get(i).Name()); l.called[name] == 0 {
				t.Errorf("no call has come to %s", name)
			}
		}
	}
}

// resultFile returns result.json of a job, as gRPC has it.
func (l *listener) resultFile(id mapreduce.JobID) string {
	l.t.Helper()
	c, err := client.NewInProcess(l.server, client.Config{})
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close()
	var b bytes.Buffer
	if err := c.GetResultFile(l.t.Context(), id, false, &b); err != nil {
		l.t.Fatal(err)
	}
	return b.String()
}

// What is wrong with a request is said with a status, as google.rpc.Status, and with the
// details that programs need.
func TestErrors(t *testing.T) {
	service := &refusing{}
	l := serve(t, service, web.Config{})
	for _, c := range []struct {
		request, body string
		status        int
		texts         []string
	}{
		{"GET /v1/jobs/nonsense", "", 400, []string{`"code":3`, "google.rpc.BadRequest", `"field":"job_id"`}},
		{"GET /v1/jobs?page_size=x", "", 400, []string{`"code":3`, `"field":"page_size"`, `\"x\" is not a value of this parameter`}},
		{"GET /v1/jobs?states=JOB_STATE_DONE", "", 400, []string{`"field":"states"`, "JOB_STATE_DONE"}},
		{"GET /v1/jobs?page_size=1&pageSize=2", "", 400, []string{`"field":"page`, "is given twice"}},
		{"GET /v1/jobs?page_size=1&page_size=2", "", 400, []string{`"field":"page_size"`, "too many values"}},
		{"GET /v1/jobs?tenant=b", "", 400, []string{"tenant: there is no such parameter", `"field":"tenant"`}},
		{"GET /v1/jobs/mr_20260101_aaaaaa/units?outputs=perhaps", "", 400, []string{`"field":"outputs"`}},
		{"GET /v1/jobs/mr_20260101_aaaaaa/result.json?parts=b", "", 400, []string{"there is no such parameter", `"field":"parts"`}},
		{"POST /v1/jobs", "{", 400, []string{"ends within a JSON value", `"field":"body"`}},
		{"POST /v1/jobs", "{]", 400, []string{"is no JSON", `"field":"body"`}},
		{"POST /v1/jobs", "[]", 400, []string{`"field":"body"`}},
		{"POST /v1/jobs", `{"spec":{"tenent":"a"}}`, 400, []string{`unknown field`, `"field":"spec.tenent"`}},
		{"POST /v1/jobs", `{"spec":{"parallelism":"many"}}`, 400, []string{`"field":"spec.parallelism"`}},
		{"POST /v1/jobs", `{"spec":{"unitTimeout":"soon"}}`, 400, []string{`"field":"spec.unit_timeout"`}},
		{"POST /v1/jobs", `{"documents":[{"documentId":"a"},{"documentId":"b","content":"?"}]}`, 400, []string{`"field":"documents[1].content"`}},
		{"POST /v1/jobs:plan", `{"documents":[{"documentId":7}]}`, 400, []string{`"field":"documents[0].document_id"`}},
		{"POST /v1/jobs:plan", `{"spec":{"tenantId":"a"},"documents":[{"documentId":"a"}]} {"documents":[{"documentId":"b","text":""}]}`, 400, []string{`"field":"documents[0].text"`}},
		{"POST /v1/jobs/mr_20260101_aaaaaa:resume", `{"budgetTokens":{}}`, 400, []string{`"field":"budget_tokens"`}},
		// It is larger by a few bytes: of much more, net/http would read nothing, answer, and
		// break the connection after half a second, which a slow client sees instead.
		{"POST /v1/jobs", `{"spec":{"vars":{"a":"` + strings.Repeat("x", 16<<20) + `"}}}`, 400, []string{"larger than 16777216 bytes", `"field":"body"`}},
		{"POST /v1/jobs", "", 400, []string{`"code":3`}},
		{"POST /v1/jobs/mr_20260101_aaaaaa", "", 405, []string{`"code":12`, "takes DELETE and GET and HEAD, and not POST"}},
		{"GET /v2/jobs", "", 404, []string{"/openapi.json"}},
		{"GET /v1/nothing", "", 404, []string{`"code":5`}},
		{"POST /coditect.mapreduce.v1.WorkerService/Work", "", 404, []string{`"code":5`}},
		{"POST /v1/jobs/mr_20260101_aaaaaa:pause", "", 429, []string{`"code":8`, `"retryDelay":"1.500s"`, "google.rpc.RetryInfo"}},
		{"POST /v1/jobs/mr_20260101_aaaaaa:resume", "", 503, []string{`"code":14`}},
		{"POST /v1/jobs/mr_20260101_aaaaaa:cancel", "", 500, []string{`"code":13`, "internal error"}},
		{"GET /v1/jobs/mr_20260101_aaaaaa:watch", "", 409, []string{`"code":10`}},
	} {
		a := l.ask(c.request, c.body, "Content-Type", "application/json")
		if a.status != c.status || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s, want %d:\n%s", c.request, a.status, a.header.Get("Content-Type"), c.status, a.body)
		}
		if c.status == http.StatusBadRequest && !strings.Contains(a.body, "google.rpc.BadRequest") {
			t.Errorf("%s: no field is named in %s", c.request, a.body)
		}
		for _, text := range append(c.texts, "google.rpc.ErrorInfo", `"reason"`) {
			if !strings.Contains(a.body, text) {
				t.Errorf("%s: %s is not in\n%s", c.request, text, a.body)
			}
		}
		if after := a.header.Get("Retry-After"); (after == "2") != (c.status == 429) {
			t.Errorf("%s: Retry-After is %q", c.request, after)
		}
	}
	if a := l.ask("GET /v1/jobs/mr_20260101_aaaaaa", "", "Grpc-Timeout", "1m"); a.status != 504 {
		t.Errorf("a call with a deadline of a millisecond: %d %s", a.status, a.body)
	}

	// A stream that fails later says so in its last line; a file is cut off.
	if a := l.ask("GET /v1/jobs/mr_20260101_aaaaaa/result", ""); a.status != 200 || !strings.Contains(a.body, `{"error":{"code":15,`) {
		t.Errorf("a stream that fails later: %d %s", a.status, a.body)
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.url+"/v1/jobs/mr_20260101_aaaaaa/text?unit_id=a&document_id=a", nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.http.Do(q)
	if err != nil {
		return // cut off before anything has come
	}
	defer a.Body.Close()
	if data, err := io.ReadAll(a.Body); err == nil {
		t.Errorf("a text that could not be sent whole ends as if it had been: %q", data)
	}
}

// refusing is a service whose methods fail, each in a way of its own.
type refusing struct{ servertest.Service }

func (*refusing) PauseJob(context.Context, mapreduce.Principal, mapreduce.JobID) (*mapreduce.Job, error) {
	return nil, &errs.Error{Kind: errs.Exhausted, Message: "too many", RetryAfter: 1500 * time.Millisecond}
}

func (*refusing) ResumeJob(context.Context, mapreduce.Principal, mapreduce.JobID, mapreduce.Resume) (*mapreduce.Job, error) {
	return nil, errs.New(errs.Unavailable, "not now")
}

func (*refusing) CancelJob(context.Context, mapreduce.Principal, mapreduce.JobID) (*mapreduce.Job, error) {
	return nil, errors.New("a secret of the house")
}

func (*refusing) WatchJob(context.Context, mapreduce.Principal, mapreduce.JobID, func(*mapreduce.Job) error) error {
	return errs.New(errs.Aborted, "again")
}

func (*refusing) GetJob(ctx context.Context, _ mapreduce.Principal, _ mapreduce.JobID) (*mapreduce.Job, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (*refusing) GetResult(_ context.Context, _ mapreduce.Principal, _ mapreduce.JobID, _ bool, sink func(*mapreduce.ResultPart) error) error {
	for range 1000 { // more than one message
		if err := sink(&mapreduce.ResultPart{Record: []byte(`{"text":"` + strings.Repeat("x", 1000) + `"}`)}); err != nil {
			return err
		}
	}
	return errs.New(errs.DataLoss, "the rest is lost")
}

func (*refusing) ReadText(_ context.Context, _ mapreduce.Principal, _ mapreduce.JobID, _ mapreduce.UnitID, _ mapreduce.DocumentID, sink func([]byte) error) error {
	if err := sink([]byte("the beginning")); err != nil {
		return err
	}
	return errs.New(errs.DataLoss, "the rest is lost")
}

// A server never takes a stream that breaks off at wrong JSON for a whole one.
func TestABrokenStreamIsNeverWhole(t *testing.T) {
	service := &planning{}
	l := serve(t, service, web.Config{})
	for range 300 {
		a := l.ask("POST /v1/jobs:plan", `{"spec":{"tenantId":"a"},"documents":[{"documentId":"a"}]} {"documents":[{"documentId":"b","text":""}]}`)
		if a.status != 400 || !strings.Contains(a.body, `"field":"documents[0].text"`) {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if n := service.whole.Load(); n > 0 {
		t.Errorf("%d of 300 streams were taken for whole", n)
	}
}

// A planning service counts the streams of documents that it has got whole.
type planning struct {
	servertest.Service
	whole atomic.Int32
}

func (p *planning) PlanJob(ctx context.Context, by mapreduce.Principal, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Plan, error) {
	plan, err := p.Service.PlanJob(context.WithoutCancel(ctx), by, q, docs)
	if err == nil {
		p.whole.Add(1)
	}
	return plan, err
}

// The OpenAPI document describes each method, and is served to whoever can connect.
func TestOpenAPI(t *testing.T) {
	l := serve(t, &servertest.Service{}, web.Config{})
	a := l.ask("GET /openapi.json", "")
	var document struct {
		Swagger string
		Paths   map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal([]byte(a.body), &document); err != nil || a.status != 200 || document.Swagger != "2.0" {
		t.Fatalf("%d %v", a.status, err)
	}
	var all []string
	for _, operations := range document.Paths {
		for _, o := range operations {
			all = append(all, o.OperationID)
		}
	}
	for _, s := range web.Services() {
		for i := range s.Methods().Len() {
			if name := fmt.Sprintf("%s_%s", s.Name(), s.Methods().Get(i).Name()); !slices.Contains(all, name) {
				t.Errorf("the document does not have %s: add it to proto/rest/rules.yaml", name)
			}
		}
	}
}

// Pages of other origins may not call, whatever they call by, unless they are named.
func TestOrigins(t *testing.T) {
	const app = "https://app.example.org"
	l := serve(t, &servertest.Service{}, web.Config{Origins: []string{app}, LocalOnly: true})
	for _, c := range []struct {
		name, request string
		header        []string
		status        int
		allowed       string // Access-Control-Allow-Origin
	}{
		{"a program", "GET /v1/jobs", nil, 200, ""},
		{"a page of its own", "GET /v1/jobs", []string{"Origin", l.url, "Sec-Fetch-Site", "same-origin"}, 200, ""},
		{"a page that is named", "GET /v1/jobs", []string{"Origin", app, "Sec-Fetch-Site", "cross-site"}, 200, app},
		{"its question", "OPTIONS /v1/jobs", []string{"Origin", app, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type"}, 204, app},
		{"another page", "GET /v1/jobs", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 403, ""},
		{"its question", "OPTIONS /v1/jobs", []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "POST"}, 403, ""},
		{"its form", "POST /v1/jobs", []string{"Origin", "https://evil.example", "Content-Type", "text/plain"}, 403, ""},
		{"its picture", "GET /v1/jobs", []string{"Sec-Fetch-Site", "cross-site"}, 403, ""},
		{"another port of this host", "GET /v1/jobs", []string{"Origin", "http://127.0.0.1:1"}, 403, ""},
		{"a page without an origin", "GET /v1/jobs", []string{"Origin", "null"}, 403, ""},
		{"the scheme of the origin differs", "GET /v1/jobs", []string{"Origin", "http://app.example.org"}, 403, ""},
		{"a name that leads here", "GET /v1/jobs", []string{"Host", "evil.example"}, 403, ""},
		{"localhost", "GET /v1/jobs", []string{"Host", "localhost:1"}, 200, ""},
	} {
		a := l.ask(c.request, "", c.header...)
		if a.status != c.status || a.header.Get("Access-Control-Allow-Origin") != c.allowed {
			t.Errorf("%s: %d and %q, want %d and %q: %s", c.name, a.status, a.header.Get("Access-Control-Allow-Origin"), c.status, c.allowed, a.body)
		}
		if a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: browsers may guess what the answer is", c.name)
		}
	}
	for _, wrong := range []string{"*", "app.example.org", "https://app.example.org/", "https://*.example.org", "ftp://a", ""} {
		if err := web.CheckOrigins([]string{wrong}); err == nil {
			t.Errorf("%q is taken for an origin", wrong)
		}
	}
}
