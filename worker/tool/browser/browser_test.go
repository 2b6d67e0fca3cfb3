package browser_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/browser"
	"github.com/coditect/mapreduce/worker/tool/policy"
)

// TestMain runs the tests, or is a worker with a browser that waits to be killed.
func TestMain(m *testing.M) {
	if os.Getenv("CODITECT_TEST_PARENT") == "" {
		code := m.Run()
		if shared.kit != nil {
			_ = shared.kit.Close()
		}
		os.Exit(code)
	}
	k, err := browser.New(context.Background(), config(&policy.Policy{}))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started", k.Name())
	select {}
}

func config(network *policy.Policy) browser.Config {
	formats, err := document.NewRegistry(plain.TextFormat(), html.Format())
	if err != nil {
		panic(err)
	}
	return browser.Config{Network: network, Formats: formats}
}

// newKit starts a browser that reaches hosts, or skips the test where there is none.
func newKit(t *testing.T, hosts []string, change ...func(*browser.Config)) *browser.Kit {
	t.Helper()
	allowed, err := policy.ParseHosts(hosts)
	if err != nil {
		t.Fatal(err)
	}
	c := config(&policy.Policy{Hosts: allowed})
	for _, f := range change {
		f(&c)
	}
	k, err := browser.New(t.Context(), c)
	if errors.Is(err, browser.ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// shared is a browser that several tests use, one after the other.
var shared struct {
	kit     *browser.Kit
	network *policy.Policy
}

// sharedKit returns the shared browser, with a policy that allows hosts.
func sharedKit(t *testing.T, hosts ...string) (*browser.Kit, *policy.Policy) {
	t.Helper()
	allowed, err := policy.ParseHosts(hosts)
	if err != nil {
		t.Fatal(err)
	}
	if shared.kit == nil {
		shared.network = new(policy.Policy)
		if shared.kit, err = browser.New(t.Context(), config(shared.network)); errors.Is(err, browser.ErrNone) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	shared.network.Hosts = allowed
	return shared.kit, shared.network
}

// unit opens a session.
func unit(t *testing.T, k *browser.Kit) tool.Session {
	t.Helper()
	s, err := k.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// call makes a call.
func call(t *testing.T, s tool.Session, name string, input map[string]any) (*tool.Result, error) {
	t.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return s.Call(t.Context(), name, data)
}

// must makes a call that must succeed.
func must(t *testing.T, s tool.Session, name string, input map[string]any) (text, evidence string) {
	t.Helper()
	r, err := call(t, s, name, input)
	if err != nil {
		t.Fatalf("%s%v: %v", name, input, err)
	}
	for _, e := range r.Evidence {
		evidence += e.Text
	}
	return r.Text, evidence
}

// ref returns the ref of an element in an outline.
func ref(t *testing.T, outline, element string) string {
	t.Helper()
	m := regexp.MustCompile(regexp.QuoteMeta(element) + `[^\n]* \[(e\d+)\]`).FindStringSubmatch(outline)
	if m == nil {
		t.Fatalf("there is no %s in\n%s", element, outline)
	}
	return m[1]
}

// site serves pages by their path on loopback, and returns HOST:PORT.
func site(t *testing.T, pages map[string]http.HandlerFunc) (host string) {
	t.Helper()
	mux := http.NewServeMux()
	for path, page := range pages {
		mux.HandleFunc(path, page)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// says answers with a page.
func says(page string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, page)
	}
}

// A page that scripts draw, behind a consent, is opened, clicked, typed into and read.
func TestPages(t *testing.T) {
	host := site(t, map[string]http.HandlerFunc{
		"/{$}": says(`<title>News</title><body><div id=consent>We use cookies. <button onclick="draw()">Accept all</button></div><script>
			function draw() {
				document.getElementById("consent").remove();
				setTimeout(() => {
					const a = document.createElement("article");
					a.innerHTML = "<h1>Grüße from the town</h1><p>The bridge of the town was opened on Monday, said the mayor, and everybody came.</p><p>It is forty metres long.</p>" +
						"<form action=/find><input name=q aria-label='Search the news'><button>Go</button></form><a href=/next>Next page</a>";
					document.body.append(a);
				}, 50);
			}</script>`),
		"/find": func(w http.ResponseWriter, r *http.Request) {
			says("<title>Found</title><p>You looked for "+r.FormValue("q"))(w, r)
		},
		"/next": says(`<p>The next page`),
		"/none": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(404)
			says("<p>There is nothing here")(w, r)
		},
		"/moved": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/next", http.StatusFound) },
	})
	k, _ := sharedKit(t, host)
	s := unit(t, k)
	if _, err := call(t, s, "browser_read", nil); err == nil || !strings.Contains(err.Error(), "no page is open") {
		t.Errorf("reading without a page: %v", err)
	}
	outline, _ := must(t, s, "browser_open", map[string]any{"url": "http://" + host})
	outline, article := must(t, s, "browser_click", map[string]any{"ref": ref(t, outline, `button "Accept all"`)})
	for _, want := range []string{"Page: http://" + host + "/\n", "Title: News\n", `heading "Grüße from the town"`, `link "Next page"`} {
		if !strings.Contains(outline, want) {
			t.Errorf("%q is not in\n%s", want, outline)
		}
	}
	if !strings.Contains(article, "The bridge of the town was opened on Monday") || strings.Contains(article, "cookies") {
		t.Errorf("the text of the page is %q", article)
	}
	if r, err := call(t, s, "browser_read", nil); err != nil || len(r.Links) != 1 || r.Links[0] != (tool.Link{Text: "Next page", Address: "http://" + host + "/next"}) {
		t.Errorf("the page has the links %+v, error %v", r.Links, err)
	}
	field := ref(t, outline, `textbox "Search the news"`)
	outline, _ = must(t, s, "browser_type", map[string]any{"ref": field, "text": "old words"})
	if !strings.Contains(outline, `value="old words"`) {
		t.Errorf("the field has no value in\n%s", outline)
	}
	_, found := must(t, s, "browser_type", map[string]any{"ref": ref(t, outline, `textbox "Search the news"`), "text": "tea & milk", "submit": true})
	if !strings.Contains(found, "You looked for tea & milk") {
		t.Errorf("what was asked for says %q", found)
	}
	if _, err := call(t, s, "browser_click", map[string]any{"ref": "e99"}); err == nil || !strings.Contains(err.Error(), `no element has the ref "e99"`) {
		t.Errorf("an element that is not there: %v", err)
	}
	r, err := call(t, s, "browser_open", map[string]any{"url": "http://" + host + "/moved"})
	if err != nil || len(r.Evidence) != 1 || r.Evidence[0].URI != "http://"+host+"/next" || r.Evidence[0].Media != "text/html" || r.Evidence[0].Retrieved.IsZero() {
		t.Errorf("a redirect: %+v, error %v", r, err)
	}
	must(t, s, "browser_open", map[string]any{"url": "http://" + host + "/next"})
	if outline, _ := must(t, s, "browser_open", map[string]any{"url": "http://" + host + "/next#below"}); strings.Contains(outline, "still loading") {
		t.Errorf("a place in the same page is waited for:\n%s", outline)
	}
	if outline, _ := must(t, s, "browser_open", map[string]any{"url": "http://" + host + "/none"}); !strings.Contains(outline, "status 404") {
		t.Errorf("a page that is not there:\n%s", outline)
	}
	r, err = call(t, s, "browser_screenshot", nil)
	if err != nil || len(r.Evidence) != 0 || len(r.Pictures) != 1 || !strings.Contains(r.Text, "A picture of http://"+host+"/none was taken") {
		t.Fatalf("a picture: %+v, error %v", r, err)
	}
	p := r.Pictures[0]
	if config, as, err := image.DecodeConfig(bytes.NewReader(p.Data)); err != nil || as != "png" || p.Media != "image/png" || p.URI != "http://"+host+"/none" || config.Width != 1280 {
		t.Errorf("a picture of %s: %s, %+v, %v", p.URI, p.Media, config, err)
	}
}

// A page of many elements is read, and used, by what can be used of it.
func TestLargePages(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	host := site(t, map[string]http.HandlerFunc{
		"/": says(`<title>Large</title><h1>The first</h1><a href=/next>To the next</a><label>Name <input aria-label="Your name" oninput="said.textContent = 'Hello ' + value"></label><p id=said></p>` +
			strings.Repeat("<p>Weather and <b>stars</b>.", 20_000)),
		"/next": says(`<p>The next page`),
	})
	k, _ := sharedKit(t, host)
	s := unit(t, k)
	outline, _ := must(t, s, "browser_open", map[string]any{"url": "http://" + host + "/"})
	if !strings.Contains(outline, "The page has 400") || !strings.Contains(outline, `heading "The first"`) || strings.Contains(outline, "Weather") {
		t.Errorf("the outline is %.2000s", outline)
	}
	outline, text := must(t, s, "browser_type", map[string]any{"ref": ref(t, outline, `textbox "Your name"`), "text": "Ada"})
	if !strings.Contains(text, "Hello Ada") {
		t.Errorf("after typing the page says %.200s", text)
	}
	_, text = must(t, s, "browser_click", map[string]any{"ref": ref(t, outline, `link "To the next"`)})
	if !strings.Contains(text, "The next page") {
		t.Errorf("after the click the page says %.200q", text)
	}
}

// A picture that is too large as PNG is taken in less quality.
func TestPictures(t *testing.T) {
	host := site(t, map[string]http.HandlerFunc{"/": says(`<title>Noise</title><body style="margin:0"><canvas id=c width=1280 height=1024></canvas><script>
		const g = c.getContext("2d"), d = g.createImageData(1280, 1024);
		for (let i = 0, x = 1; i < d.data.length; i++) { x = (Math.imul(x, 1103515245) + 12345) & 0x7fffffff; d.data[i] = i % 4 == 3 ? 255 : (x >> 16) & 255; }
		g.putImageData(d, 0, 0)</script>`)})
	k, _ := sharedKit(t, host)
	s := unit(t, k)
	must(t, s, "browser_open", map[string]any{"url": "http://" + host + "/"})
	r, err := call(t, s, "browser_screenshot", nil)
	if err != nil || len(r.Pictures) != 1 {
		t.Fatalf("a picture: %+v, error %v", r, err)
	}
	p := r.Pictures[0]
	if _, as, err := image.DecodeConfig(bytes.NewReader(p.Data)); err != nil || as != "jpeg" || p.Media != "image/jpeg" || len(p.Data) > tool.MaxPicture || p.Title != "Noise" {
		t.Errorf("a picture of %d bytes: %s, %s, %v", len(p.Data), p.Media, as, err)
	}
}
