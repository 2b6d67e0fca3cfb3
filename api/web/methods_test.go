package web_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/api/web"
)

// TestMethods asks each path of the OpenAPI document by methods that it does not take, and
// where it takes GET, by HEAD.
func TestMethods(t *testing.T) {
	service := &servertest.Service{}
	l := serve(t, service, web.Config{})
	a := l.want("POST /v1/jobs", `{"spec":{"tenantId":"a"},"documents":[{"documentId":"a.txt","content":"`+encoded("TOTAL: 1.50")+`"}]}`)
	var submitted struct {
		Job struct{ JobID mapreduce.JobID }
	}
	if err := json.Unmarshal([]byte(a.body), &submitted); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(l.ask("GET /openapi.json", "").body), &doc); err != nil || len(doc.Paths) < 10 {
		t.Fatalf("%d paths, %v", len(doc.Paths), err)
	}
	doc.Paths["/openapi.json"] = map[string]json.RawMessage{"get": nil}

	for path, methods := range doc.Paths {
		path = strings.ReplaceAll(path, "{jobId}", string(submitted.Job.JobID))
		_, read := methods["get"]
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, "BREW"} {
			if _, taken := methods[strings.ToLower(method)]; taken {
				continue
			}
			a := l.ask(method+" "+path, "")
			allowed := strings.Split(a.header.Get("Allow"), ", ")
			if a.status != http.StatusMethodNotAllowed || !strings.Contains(a.body, `"code":12`) || slices.Contains(allowed, http.MethodHead) != read ||
				slices.Contains(allowed, http.MethodGet) != read || slices.Contains(allowed, method) {
				t.Errorf("%s %s: %d, Allow %q:\n%s", method, path, a.status, allowed, a.body)
			}
		}
		head := l.ask("HEAD "+path, "")
		if !read {
			if head.status != http.StatusMethodNotAllowed {
				t.Errorf("HEAD %s: %d", path, head.status)
			}
			continue
		}
		if strings.HasSuffix(path, ":watch") { // by GET it would last
			if head.status != http.StatusOK {
				t.Errorf("HEAD %s: %d", path, head.status)
			}
			continue
		}
		get := l.ask("GET "+path, "")
		if head.status != get.status || head.body != "" || head.header.Get("Content-Type") != get.header.Get("Content-Type") {
			t.Errorf("HEAD %s: %d %s, a body of %d bytes; by GET %d %s", path, head.status, head.header.Get("Content-Type"), len(head.body), get.status, get.header.Get("Content-Type"))
		}
	}
}
