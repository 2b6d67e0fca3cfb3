package fetch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/charmap"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/ooxml"
	"github.com/coditect/mapreduce/internal/document/pdf"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/internal/document/zipfile"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/fetch"
	"github.com/coditect/mapreduce/worker/tool/policy"
)

// formats returns a registry with formats of each sort.
func formats(t testing.TB) *document.Registry {
	t.Helper()
	r, err := document.NewRegistry(plain.TextFormat(), plain.MarkdownFormat(), html.Format(), plain.JSONLinesFormat(), ooxml.XlsxFormat(), zipfile.ZipFormat(), pdf.New(pdf.Config{}).Format())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A site is a server on loopback that notes what it was asked, as METHOD-less paths with
// their hosts. All names of the test's resolver lead to it, from public addresses.
type site struct {
	*httptest.Server
	mux *http.ServeMux

	mu    sync.Mutex
	asked []string
}

func newSite(t testing.TB) *site {
	s := &site{mux: http.NewServeMux()}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.URL.RequestURI())
		s.mu.Unlock()
		s.mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// pages returns what was asked for, without robots.txt.
func (s *site) pages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.asked), func(uri string) bool { return uri == "/robots.txt" })
}

// page serves a page under a path of the site.
func (s *site) page(path, contentType, body string, headers ...string) {
	s.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		_, _ = w.Write([]byte(body)) // the client may have gone
	})
}

// network is a policy whose names all stand for public addresses, behind which the site is,
// but for those in inside.
func (s *site) network(t testing.TB, inside map[string]string, rules ...string) *policy.Policy {
	h, err := policy.ParseHosts(rules)
	if err != nil {
		t.Fatal(err)
	}
	return &policy.Policy{
		Hosts: h, Resolver: resolver(inside),
		Connect: func(ctx context.Context, network, address string, control policy.Control) (net.Conn, error) {
			if err := control(network, address, nil); err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
		},
	}
}

type resolver map[string]string

func (r resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if text, ok := r[host]; ok {
		return []netip.Addr{netip.MustParseAddr(text)}, nil
	}
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// open returns a session of a kit.
func open(t testing.TB, c fetch.Config) tool.Session {
	t.Helper()
	if c.Formats == nil {
		c.Formats = formats(t)
	}
	if c.Pause == 0 {
		c.Pause = -1
	}
	kit, err := fetch.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kit.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := kit.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// call fetches an address.
func call(t testing.TB, s tool.Session, url string, more ...any) (*tool.Result, error) {
	t.Helper()
	in := map[string]any{"url": url}
	for i := 0; i < len(more); i += 2 {
		in[more[i].(string)] = more[i+1]
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return s.Call(t.Context(), fetch.Name, data)
}

// text fetches an address that has to have a text.
func text(t testing.TB, s tool.Session, url string, more ...any) tool.Evidence {
	t.Helper()
	r, err := call(t, s, url, more...)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	if len(r.Evidence) != 1 {
		t.Fatalf("%s: %d pieces of evidence", url, len(r.Evidence))
	}
	return r.Evidence[0]
}

var story = strings.Repeat("<p>It had rained for nine days, on and off, and by the weekend the meadows along both banks stood under water, as they last did in the year of the great flood.</p>", 8)

var article = `<!doctype html><html lang="en"><head><title>Rain &amp; floods</title>
<meta property="article:published_time" content="2026-03-04T05:06:07Z"><meta name="author" content="Ann Bee"><meta property="og:site_name" content="The Gazette">
</head><body><nav><a href="/">Home</a> <a href="/sport">Sport</a></nav>
<article>` + story + `<h1>Rain &amp; floods</h1><p>The river rose by two metres on Tuesday, said the water board, and three villages were left without power for the night.</p>
<p>It is the third flood of the year. <a href="more?x=1#top">More about it</a> and <a href="https://other.example/a">elsewhere</a>; <a href="javascript:alert(1)">not this</a>.</p></article>
<footer>Imprint</footer></body></html>`

func TestPage(t *testing.T) {
	w := newSite(t)
	w.page("/news/flood", "text/html; charset=utf-8", article, "Last-Modified", "Wed, 04 Mar 2026 05:06:07 GMT")
	s := open(t, fetch.Config{Network: w.network(t, nil, "gazette.example"), Now: func() time.Time { return time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC) }})
	r, err := call(t, s, "http://Gazette.example/news/flood#part", "links", true)
	if err != nil {
		t.Fatal(err)
	}
	e := r.Evidence[0]
	if !strings.Contains(e.Text, "The river rose by two metres") || strings.Contains(e.Text, "Sport") {
		t.Errorf("text is %q", e.Text)
	}
	got := e
	got.Text = ""
	want := tool.Evidence{
		URI: "http://gazette.example/news/flood", Title: "Rain & floods", Media: "text/html", Retrieved: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC),
		Shown:    []tool.Range{{Start: 0, End: len(e.Text)}},
		Metadata: map[string]string{"published": "2026-03-04T05:06:07Z", "author": "Ann Bee", "site": "The Gazette", "language": "en", "modified": "2026-03-04T05:06:07Z"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	for _, line := range []string{"More about it: http://gazette.example/news/more?x=1", "elsewhere: https://other.example/a", "all shown"} {
		if !strings.Contains(r.Text, line) {
			t.Errorf("the text for the model lacks %q:\n%s", line, r.Text)
		}
	}
	if strings.Contains(r.Text, "javascript") || strings.Contains(r.Text, "two metres") {
		t.Errorf("the text for the model is\n%s", r.Text)
	}
}

// TestFormats: documents of all sorts are read by the registry's parsers, whatever the
// server calls them.
func TestFormats(t *testing.T) {
	cyrillic, err := charmap.Windows1251.NewEncoder().String("<p>Привет, мир: это страница в старой кодировке.</p>")
	if err != nil {
		t.Fatal(err)
	}
	book := excelize.NewFile()
	if err := book.SetCellValue("Sheet1", "A1", "quarterly figures"); err != nil {
		t.Fatal(err)
	}
	var sheet bytes.Buffer
	if err := book.Write(&sheet); err != nil {
		t.Fatal(err)
	}
	w := newSite(t)
	w.page("/plain", "text/plain", "just text")
	w.page("/json", "application/json", `{"a": "value"}`)
	w.page("/lines.jsonl", "application/jsonl", `{"a":1}`+"\n"+`{"a":2}`+"\n")
	w.page("/header", "text/html; charset=windows-1251", cyrillic)
	w.page("/meta", "text/html", `<meta charset=windows-1251>`+cyrillic)
	w.page("/untyped", "", "<!doctype html><p>no type")
	w.page("/wrong-type", "a/b/c; =", "no type")
	w.page("/report.pdf", "application/octet-stream", onePagePDF("Annual report of the water board"))
	w.page("/download", "application/octet-stream", sheet.String(), "Content-Disposition", `attachment; filename="f.xlsx"`)
	s := open(t, fetch.Config{Network: w.network(t, nil, "*")})
	for path, want := range map[string][2]string{
		"/plain":       {"just text", "text/plain"},
		"/json":        {`"value"`, "text/plain"},
		"/lines.jsonl": {`{"a":2}`, "application/jsonl"},
		"/header":      {"Привет, мир", "text/html"},
		"/meta":        {"Привет, мир", "text/html"},
		"/untyped":     {"no type", "text/html"},
		"/wrong-type":  {"no type", "text/plain"},
		"/report.pdf":  {"Annual report", "application/pdf"},
		"/download":    {"quarterly figures", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	} {
		e := text(t, s, "http://docs.example"+path)
		if !strings.Contains(e.Text, want[0]) || e.Media != want[1] {
			t.Errorf("%s: got %q of %s, want %q of %s", path, e.Text, e.Media, want[0], want[1])
		}
	}
	w.page("/picture", "image/png", "\x89PNG\r\n\x1a\n")
	w.page("/archive.zip", "application/zip", "PK\x03\x04")
	w.page("/nothing", "text/html", "")
	w.page("/script", "text/html", "<script>draw()</script>")
	for path, want := range map[string]string{"/picture": "not text", "/archive.zip": "archive", "/nothing": "empty", "/script": "no text", "/missing": "404 Not Found"} {
		if _, err := call(t, s, "http://docs.example"+path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want an error with %q", path, err, want)
		}
	}
}

// TestTitles: pages that are no HTML are called as their documents call themselves.
func TestTitles(t *testing.T) {
	w := newSite(t)
	w.page("/hooks.md", "text/markdown", "[![Build](b.svg)](b)\n\n# Hooks\n\nA hook is called before a tool.\n")
	w.page("/how.rst", "text/plain", ".. _how:\n\nHow It Works\n============\n\nIt works by lines.\n")
	w.page("/plain.txt", "text/plain", "How It Works\n============\n\nIt works by lines.\n")
	s := open(t, fetch.Config{Network: w.network(t, nil, "*")})
	for path, want := range map[string]string{"/hooks.md": "Hooks", "/how.rst": "How It Works", "/plain.txt": ""} {
		if got := text(t, s, "http://docs.example"+path).Title; got != want {
			t.Errorf("%s has the title %q, want %q", path, got, want)
		}
	}
}

// onePagePDF returns a PDF with one line of text.
func onePagePDF(line string) string {
	stream := "BT /F1 24 Tf 72 700 Td (" + line + ") Tj ET"
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(stream), stream), "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	}
	var out strings.Builder
	out.WriteString("%PDF-1.4\n")
	var at []int
	for i, o := range objects {
		at = append(at, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, a := range at {
		fmt.Fprintf(&out, "%010d 00000 n \n", a)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return out.String()
}

// TestParts: a long page is read part by part, and all parts are of the same evidence.
func TestParts(t *testing.T) {
	var long strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&long, "Line %d of the größte text.\n", i)
	}
	w := newSite(t)
	w.page("/long", "text/plain; charset=utf-8", long.String(), "Cache-Control", "max-age=60")
	s := open(t, fetch.Config{Network: w.network(t, nil, "a.example")})
	var read strings.Builder
	for start, parts := 0, 0; ; parts++ {
		e := text(t, s, "http://a.example/long", "start", start)
		shown := e.Text[e.Shown[0].Start:e.Shown[0].End]
		if e.Text != long.String() || len(shown) > tool.DefaultOutput || shown == "" {
			t.Fatalf("a part of %d bytes, from %d on", len(shown), start)
		}
		read.WriteString(shown)
		start += len([]rune(shown))
		if e.Shown[0].End == len(e.Text) {
			break
		}
		if parts > 100 {
			t.Fatal("it does not end")
		}
	}
	if read.String() != long.String() || len(w.pages()) != 1 {
		t.Errorf("read %d of %d bytes, with %d requests", read.Len(), long.Len(), len(w.pages()))
	}
	if _, err := call(t, s, "http://a.example/long", "start", 10_000_000); err == nil || !strings.Contains(err.Error(), "start") {
		t.Errorf("behind the end: %v", err)
	}
}

func TestRedirect(t *testing.T) {
	w := newSite(t)
	w.mux.HandleFunc("/old", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "http://new.example/page", http.StatusMovedPermanently)
	})
	w.mux.HandleFunc("/page", func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Referer") != "" || r.Host != "new.example" {
			t.Errorf("asked with host %s and referer %q", r.Host, r.Header.Get("Referer"))
		}
		fmt.Fprint(rw, "here now")
	})
	s := open(t, fetch.Config{Network: w.network(t, nil, "old.example", "new.example")})
	r, err := call(t, s, "http://old.example/old")
	if err != nil {
		t.Fatal(err)
	}
	if e := r.Evidence[0]; e.URI != "http://new.example/page" || e.Metadata["requested"] != "http://old.example/old" || !strings.Contains(r.Text, "by redirects") {
		t.Errorf("got %s, %v, %q", e.URI, e.Metadata, r.Text)
	}
}

// TestCaching: what a server lets be kept is not asked for again; what may have changed is
// asked for by its tag or its date; what must not be kept is not. Units share nothing.
func TestCaching(t *testing.T) {
	w := newSite(t)
	w.page("/fresh", "text/plain", "fresh", "Cache-Control", "public, max-age=3600")
	w.page("/expires", "text/plain", "expires", "Expires", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	w.page("/stale", "text/plain", "stale")
	w.page("/no-store", "text/plain", "no store", "Cache-Control", "no-store, max-age=3600", "ETag", `"1"`)
	var unchanged, full int
	for path, headers := range map[string][2]string{"/etag": {"Etag", "If-None-Match"}, "/dated": {"Last-Modified", "If-Modified-Since"}} {
		value := map[string]string{"Etag": `"v1"`, "Last-Modified": "Wed, 04 Mar 2026 05:06:07 GMT"}[headers[0]]
		w.mux.HandleFunc(path, func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set(headers[0], value)
			if r.Header.Get(headers[1]) == value {
				unchanged++
				rw.WriteHeader(http.StatusNotModified)
				return
			}
			full++
			fmt.Fprint(rw, "tagged "+path)
		})
	}
	kit, err := fetch.New(fetch.Config{Network: w.network(t, nil, "a.example"), Formats: formats(t), Pause: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer kit.Close()
	for range 2 { // units
		s, err := kit.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for _, path := range []string{"/fresh", "/expires", "/stale", "/no-store", "/etag", "/dated"} {
				if e := text(t, s, "http://a.example"+path); e.Text == "" {
					t.Errorf("%s: no text", path)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	count := make(map[string]int)
	for _, uri := range w.pages() {
		count[uri]++
	}
	want := map[string]int{"/fresh": 2, "/expires": 2, "/stale": 6, "/no-store": 6, "/etag": 6, "/dated": 6}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if unchanged != 8 || full != 4 {
		t.Errorf("%d answers said that nothing changed, and %d had the page; want 8 and 4", unchanged, full)
	}
}

// TestRobots: pages that a host closes to robots are not asked for, also behind redirects.
func TestRobots(t *testing.T) {
	w := newSite(t)
	w.mux.HandleFunc("/robots.txt", func(rw http.ResponseWriter, r *http.Request) {
		switch r.Host {
		case "closed.example":
			fmt.Fprint(rw, "User-agent: *\nDisallow: /private\nAllow: /private/open\n\nUser-agent: coditect\nDisallow: /not-you$\nDisallow: /*.cgi")
		case "broken.example":
			rw.WriteHeader(http.StatusBadGateway)
		case "inside.example":
			http.Redirect(rw, r, "http://127.0.0.1/", http.StatusFound)
		default:
			http.NotFound(rw, r)
		}
	})
	w.mux.HandleFunc("/to-closed", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "http://closed.example/not-you", http.StatusFound)
	})
	w.mux.HandleFunc("/", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "a page") })
	s := open(t, fetch.Config{Network: w.network(t, nil, "*")})
	for _, url := range []string{"http://closed.example/private", "http://closed.example/not-you/2", "http://open.example/not-you"} {
		text(t, s, url)
	}
	for _, url := range []string{"http://closed.example/not-you", "http://closed.example/a/b.cgi?x", "http://closed.example/%6eot-you", "http://open.example/to-closed"} {
		_, err := call(t, s, url)
		if got := refused(t, err); !strings.Contains(got, "robots.txt") || !strings.Contains(got, "closed.example") {
			t.Errorf("%s: %q", url, got)
		}
	}
	if _, err := call(t, s, "http://broken.example/"); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("without an answer for robots.txt: %v", err)
	}
	_, err := call(t, s, "http://inside.example/")
	if got := refused(t, err); !strings.Contains(got, "127.0.0.1") {
		t.Error(got)
	}
	if n := strings.Count(strings.Join(w.asked, "\n"), "/robots.txt"); n != 4 {
		t.Errorf("robots.txt was read %d times, want once for each of 4 hosts", n)
	}
}

// refused returns the message of a refusal.
func refused(t testing.TB, err error) string {
	t.Helper()
	r, ok := errors.AsType[*tool.Refused](err)
	if !ok {
		t.Fatalf("got %v, want a refusal", err)
	}
	return r.Error()
}

// TestPoliteness: no host has more requests at a time than it should, whoever asks.
func TestPoliteness(t *testing.T) {
	var mu sync.Mutex
	var now, most int
	inside, release := make(chan struct{}, 12), make(chan struct{})
	w := newSite(t)
	w.mux.HandleFunc("/page/", func(rw http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		inside <- struct{}{}
		<-release
		mu.Lock()
		now--
		mu.Unlock()
		fmt.Fprint(rw, "page")
	})
	var began []time.Time
	w.mux.HandleFunc("/paced/", func(rw http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		began = append(began, time.Now())
		mu.Unlock()
		fmt.Fprint(rw, "page")
	})
	w.mux.HandleFunc("/busy", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "3600")
		rw.WriteHeader(http.StatusTooManyRequests)
	})
	s := open(t, fetch.Config{Network: w.network(t, nil, "*")})
	fetchAll := func(s tool.Session, path string, n int) {
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				if _, err := call(t, s, fmt.Sprintf("http://a.example%s%d", path, i)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	w.mux.HandleFunc("/meanwhile/", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "page") })
	var all sync.WaitGroup
	all.Go(func() { fetchAll(s, "/page/", 12) })
	for range 2 {
		<-inside
	}
	for i := range 50 { // a request too many would come long before these are done
		text(t, s, fmt.Sprintf("http://c.example/meanwhile/%d", i))
	}
	close(release)
	all.Wait()
	if most != 2 {
		t.Errorf("%d requests at a time, want 2", most)
	}
	const pause = 30 * time.Millisecond
	start := time.Now() // not when the first came, which may be on its way for longer than the last
	fetchAll(open(t, fetch.Config{Network: w.network(t, nil, "*"), Pause: pause}), "/paced/", 5)
	if took := began[len(began)-1].Sub(start); took < 4*pause {
		t.Errorf("5 requests within %v, with pauses of %v", took, pause)
	}
	if _, err := call(t, s, "http://b.example/busy"); err == nil || !strings.Contains(err.Error(), "come back in 1h0m0s") {
		t.Errorf("got %v", err)
	}
	before := len(w.pages())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Call(ctx, fetch.Name, json.RawMessage(`{"url":"http://b.example/page/1"}`)); err == nil || !strings.Contains(err.Error(), "pause") || len(w.pages()) != before {
		t.Errorf("a host that asked for an hour was asked again: %v", err)
	}
}

// TestBoundsOfAUnit: a unit has a number of requests and of bytes; another one has its own.
func TestBoundsOfAUnit(t *testing.T) {
	w := newSite(t)
	w.mux.HandleFunc("/loop", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "/loop?"+r.URL.RawQuery+"x", http.StatusFound)
	})
	w.mux.HandleFunc("/page", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, strings.Repeat("page ", 200)) })
	s := open(t, fetch.Config{Network: w.network(t, nil, "*"), MaxRequests: 13})
	if _, err := call(t, s, "http://a.example/loop"); err == nil || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("a loop: %v", err)
	}
	for range 3 {
		text(t, s, "http://a.example/page")
	}
	_, err := call(t, s, "http://a.example/page")
	if got := refused(t, err); !strings.Contains(got, "at most 13 requests") {
		t.Error(got)
	}
	s = open(t, fetch.Config{Network: w.network(t, nil, "*"), MaxBytes: 1500})
	text(t, s, "http://a.example/page?1")
	text(t, s, "http://a.example/page?2")
	_, err = call(t, s, "http://a.example/page?3")
	if got := refused(t, err); !strings.Contains(got, "at most 1500 bytes") {
		t.Error(got)
	}
}
