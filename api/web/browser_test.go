package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/api/web"
)

// fetches are what a page tries, as scripts: by REST, by Connect, and by gRPC-Web.
var fetches = map[string]string{
	"REST":              `fetch(url + "/v1/jobs", {headers: {"Authorization": "Bearer x"}})`,
	"REST, a plain GET": `fetch(url + "/v1/jobs")`,
	"Connect":           `fetch(url + "/coditect.mapreduce.v1.MapReduceService/ListJobs", {method: "POST", headers: {"Content-Type": "application/json", "Connect-Protocol-Version": "1"}, body: "{}"})`,
	"gRPC-Web":          `fetch(url + "/coditect.mapreduce.v1.MapReduceService/ListJobs", {method: "POST", headers: {"Content-Type": "application/grpc-web+proto", "X-Grpc-Web": "1"}, body: new Uint8Array(5)})`,
	"a submission":      `fetch(url + "/v1/jobs", {method: "POST", mode: "no-cors", headers: {"Content-Type": "text/plain"}, body: '{"spec":{"tenantId":"a"}}'})`,
}

// In a real browser, a page of another origin gets nothing and does nothing, and a page of
// an origin that is allowed gets what it asks for.
func TestBrowser(t *testing.T) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no Chromium is installed")
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>an app</title>")
	}))
	defer page.Close()
	// Chromedp makes the profile, and removes it again and again until that is done: processes
	// of Chromium outlive the first one for a moment and still write there, for which
	// t.TempDir fails a test.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root with it
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	defer stop()
	ctx, stop = chromedp.NewContext(ctx)
	defer stop()
	if _, err := chromedp.Run(ctx, chromedp.Navigate(page.URL)); err != nil {
		t.Fatal(err)
	}
	for _, allowed := range []bool{false, true} {
		config := web.Config{}
		if allowed {
			config.Origins = []string{page.URL}
		}
		l := serve(t, &servertest.Service{}, config)
		for name, fetch := range fetches {
			script := fmt.Sprintf(`(async () => {
				const url = %q;
				try { const a = await %s; return a.type + " " + a.status + " " + (await a.arrayBuffer()).byteLength; } catch (e) { return "refused: " + e; }
			})()`, l.url, fetch)
			got, err := chromedp.Run(ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
			if err != nil {
				t.Fatal(err)
			}
			want := "refused: "
			switch {
			case name == "a submission":
				want = "opaque 0 0" // the page does not learn what came of it
			case allowed:
				want = "cors 200 "
			}
			if !strings.HasPrefix(got, want) {
				t.Errorf("%s by a page that is allowed (%v): %s, want %s", name, allowed, got, want)
			}
		}
		if n := len(l.methods()); n > 0 && !allowed {
			t.Errorf("calls of a page that is not allowed have come to %v", l.methods())
		}
	}
}
