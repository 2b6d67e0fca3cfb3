package main_test

import (
	"bytes"
	"fmt"
	"image"
	_ "image/png"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// invoicePDF is a PDF file of a page of 600 by 800 points.
func invoicePDF() string {
	content := "BT /F1 20 Tf 100 700 Td (TOTAL 12.50) Tj ET"
	return "%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Count 1 /Kids [3 0 R] >>\nendobj\n" +
		"3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>\nendobj\n" +
		fmt.Sprintf("4 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\nendobj\n", len(content), content) +
		"5 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\ntrailer\n<< /Root 1 0 R /Size 6 >>\n"
}

// A server without workers shows the page of a PDF file on which a value stands: a process of its own
// draws it.
func TestPagesOfPDFFiles(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	t.Parallel()
	s := newStudio(t, fakellm.Config{Model: obedient, Key: modelKey})
	s.write("docs/a.pdf", invoicePDF())
	s.write("schema.yaml", "type: object\nproperties:\n  total: {type: number, x-coditect: {labels: [TOTAL]}}\n")
	serve := s.start(nil, "serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--workers", "0")
	address, pages := serve.said.await(t, `msg=serving address=(\S+)`), serve.said.await(t, `msg="HTTP is served" http=(\S+)`)
	s.start(nil, "worker", "--server", address)
	if o := s.try(nil, "run", "--server", address, "--input", s.docs, "--schema", s.path("schema.yaml"), "--output", s.path("out")); o.code != 0 {
		t.Fatalf("exit code %d\n%s%s\n%s", o.code, o.stdout, o.stderr, serve.said)
	}

	var result struct {
		Job string `json:"job_id"`
	}
	data, err := os.ReadFile(s.path("out/result.json"))
	if err != nil {
		t.Fatal(err)
	}
	s.decode(string(data), &result)
	type page struct {
		status int
		header http.Header
		body   []byte
	}
	get := func(path string, query url.Values) page {
		t.Helper()
		answer, err := http.Get(fmt.Sprintf("http://%s/jobs/%s/%s?%s", pages, result.Job, path, query.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return page{answer.StatusCode, answer.Header, body}
	}

	if queue := get("review/queue", nil); queue.status != http.StatusOK || !bytes.Contains(queue.body, []byte(`"page":1,"boxes":[1`)) {
		t.Fatalf("the value stands on no page: %d\n%s", queue.status, queue.body)
	}
	picture := get("picture", url.Values{"document": {"a.pdf"}, "page": {"1"}})
	m, _, err := image.Decode(bytes.NewReader(picture.body))
	if err != nil || picture.header.Get("Page-Width") != "600" || picture.header.Get("Page-Height") != "800" {
		t.Fatalf("page 1: %v, %d %v\n%.300s", err, picture.status, picture.header, picture.body)
	}

	dark := false
	for x := range m.Bounds().Dx() { // across the text, a little above its base line
		r, _, _, _ := m.At(x, m.Bounds().Dy()*95/800).RGBA()
		dark = dark || r < 0x4000
	}
	if m.Bounds().Dy() < 1900 || !dark {
		t.Errorf("page 1 is a picture of %v pixels, with text: %v", m.Bounds(), dark)
	}
	if second := get("picture", url.Values{"document": {"a.pdf"}, "page": {"2"}}); second.status != http.StatusNotFound || !strings.Contains(string(second.body), "no page 2") {
		t.Errorf("page 2: %d %s", second.status, second.body)
	}
}
