package browser_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/browser"
)

// doors is a page with ways out of it. While another page is waited for, it says that it has
// been quiet for longer than pages are waited for to be.
const doors = `<title>First</title><a href=/second>Link</a> <a href="#here">Place</a>
	<a href=/nothing>Nothing</a> <a href=/download>File</a> <a href="mailto:a@b.example">Mail</a> <a href="file:///etc/passwd">Local</a>
	<a href="javascript:void(0)">Script</a> <a href=/never>Never</a> <button onclick="setTimeout(() => { location = '/second' }, 0)">Soon</button>
	<button onclick="history.pushState({}, '', '/state')">State</button> <button onclick="location = 'unknown:x'">Unknown</button>
	<form action=/second><input aria-label="Words" name=q><button>Send</button></form>
	<form action="http://elsewhere.example/"><button>Away</button></form>
	<script>for (const e of ["click", "keydown"]) addEventListener(e, () => setTimeout(() => fetch("/quiet"), 600))</script>`

// pass returns what was sent to a channel, or false if the request ends before.
func pass(r *http.Request, from chan struct{}) bool {
	select {
	case <-from:
		return true
	case <-r.Context().Done():
		return false
	}
}

// leavable returns pages that can be left. The second answers when the first has been quiet
// for long, and goes on when its beginning has been quiet for as long.
func leavable() (pages map[string]http.HandlerFunc) {
	quiet, shown := make(chan struct{}), make(chan struct{})
	tell := func(to chan struct{}) http.HandlerFunc {
		return func(_ http.ResponseWriter, r *http.Request) {
			select {
			case to <- struct{}{}:
			case <-r.Context().Done():
			}
		}
	}
	return map[string]http.HandlerFunc{
		"/{$}":   says(doors),
		"/quiet": tell(quiet),
		"/shown": tell(shown),
		"/second": func(w http.ResponseWriter, r *http.Request) {
			if !pass(r, quiet) {
				return
			}
			says(`<title>Second</title><h1>The second page</h1><script>setTimeout(() => fetch("/shown"), 600)</script>`)(w, r)
			w.(http.Flusher).Flush()
			if pass(r, shown) {
				says("<button>The end of it</button>")(w, r)
			}
		},
		"/never":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"/nothing": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"/download": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Disposition", "attachment; filename=x.bin")
			_, _ = w.Write(make([]byte, 1000))
		},
	}
}

// What a click or Enter opens is what is read, however long it takes to answer and to load.
func TestLeaving(t *testing.T) {
	host := site(t, leavable())
	k, _ := sharedKit(t, host)
	for name, input := range map[string]map[string]any{
		`link "Link"`:     nil,
		`button "Soon"`:   nil,
		`button "Send"`:   nil,
		`textbox "Words"`: {"text": "tea", "submit": true},
	} {
		t.Run(name, func(t *testing.T) {
			outline, text := use(t, unit(t, k), "http://"+host+"/", name, input)
			for _, want := range []string{"Page: http://" + host + "/second", "Title: Second\n", `heading "The second page"`, `button "The end of it"`} {
				if !strings.Contains(outline, want) {
					t.Errorf("%q is not in\n%s", want, outline)
				}
			}
			if !strings.Contains(text, "The second page") {
				t.Errorf("the text is %q", text)
			}
		})
	}
}

// use opens a page and clicks an element of it, or types into it if there is a text to type.
func use(t *testing.T, s tool.Session, address, element string, typed map[string]any) (outline, text string) {
	t.Helper()
	outline, _ = must(t, s, "browser_open", map[string]any{"url": address})
	input, name := map[string]any{"ref": ref(t, outline, element)}, "browser_click"
	if typed != nil {
		maps.Copy(input, typed)
		name = "browser_type"
	}
	return must(t, s, name, input)
}

// What leads to no other page is not waited for. A call that waits for one takes longer than
// a call may.
func TestStaying(t *testing.T) {
	host := site(t, leavable())
	k := newKit(t, []string{host})
	browser.SetTimes(k, 10*enough, 10*enough)
	for _, name := range []string{
		`link "Place"`, `link "Nothing"`, `link "File"`, `link "Mail"`, `link "Local"`, `link "Script"`, `button "State"`, `button "Unknown"`,
	} {
		t.Run(name, func(t *testing.T) {
			outline, _ := use(t, unit(t, k), "http://"+host+"/", name, nil)
			if !strings.Contains(outline, "Title: First\n") || strings.Contains(outline, "asked for") || strings.Contains(outline, "still loading") {
				t.Errorf("it shows\n%s", outline)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		if outline, _ := use(t, unit(t, k), "http://"+host+"/", `button "Away"`, nil); !strings.Contains(outline, "a request to http://elsewhere.example/? is refused") {
			t.Errorf("it shows\n%s", outline)
		}
	})
}

// A page that does not answer is not waited for any more when its time is over, and the page
// before it can still be used.
func TestLeavingForNothing(t *testing.T) {
	host := site(t, leavable())
	k := newKit(t, []string{host})
	s := unit(t, k)
	outline, _ := must(t, s, "browser_open", map[string]any{"url": "http://" + host + "/"})
	browser.SetTimes(k, little, enough)
	outline, _ = must(t, s, "browser_click", map[string]any{"ref": ref(t, outline, `link "Never"`)})
	if !strings.Contains(outline, "Another page was asked for, and did not answer within 500ms") || !strings.Contains(outline, "Title: First\n") {
		t.Fatalf("it shows\n%s", outline)
	}
	browser.SetTimes(k, enough, enough)
	if outline, _ = must(t, s, "browser_click", map[string]any{"ref": ref(t, outline, `link "Link"`)}); !strings.Contains(outline, `button "The end of it"`) {
		t.Errorf("then it shows\n%s", outline)
	}
}
