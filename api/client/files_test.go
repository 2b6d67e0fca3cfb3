package client_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/plain"
)

// jobOf returns a job over a folder of files by name.
func jobOf(t *testing.T, content map[string]string) client.FolderJob {
	t.Helper()
	dir := t.TempDir()
	for name, data := range content {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(data), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	formats, err := document.NewRegistry(plain.TextFormat(), html.Format(), plain.JSONLinesFormat())
	if err != nil {
		t.Fatal(err)
	}
	return client.FolderJob{Folder: dir, Formats: registry{formats}, Schema: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)}
}

func TestDocuments(t *testing.T) {
	j := jobOf(t, map[string]string{
		"a.txt": "\xef\xbb\xbfmarked", "sub/page.html": "<p>Gr\xf6\xdfe", "lines.jsonl": "{\"text\":\"1\"}\n", "large.txt": strings.Repeat("x", 101), ".hidden": "x", "out.txt": "x",
	})
	j.MaxBytes, j.Exclude = 100, []string{"out.txt"}
	s := new(servertest.Service)
	job, err := client.SubmitFolder(t.Context(), servertest.Client{Service: s}, j)
	if err != nil {
		t.Fatal(err)
	}
	want := []*mapreduce.Document{
		{ID: "a.txt", MediaType: "text/plain", Content: []byte("marked"), Size: 9},
		{ID: "large.txt", Skip: "too large: 101 bytes, more than 100 (--document-bytes)", Size: 101},
		{ID: "lines.jsonl", Skip: "a file of several documents: submit each of them", Size: 13},
		{ID: "sub/page.html", MediaType: "text/html", Content: []byte("<p>Gr\xf6\xdfe"), Size: 8},
	}
	if diff := cmp.Diff(want, s.Documents(job.ID), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
}

// Without formats, files are text, or skipped.
func TestPlainText(t *testing.T) {
	j := jobOf(t, map[string]string{"a.txt": "\xef\xbb\xbfmarked", "b.html": "<p>Größe", "latin.txt": "Gr\xf6\xdfe", "nul.txt": "a\x00b"})
	j.Formats = nil

	s := new(servertest.Service)
	job, err := client.SubmitFolder(t.Context(), servertest.Client{Service: s}, j)
	if err != nil {
		t.Fatal(err)
	}

	want := []*mapreduce.Document{
		{ID: "a.txt", MediaType: "text/plain", Content: []byte("marked"), Size: 9},
		{ID: "b.html", MediaType: "text/plain", Content: []byte("<p>Größe"), Size: 10},
		{ID: "latin.txt", Skip: "not plain text in UTF-8; Formats may read more", Size: 5},
		{ID: "nul.txt", Skip: "not plain text in UTF-8; Formats may read more", Size: 3},
	}
	if diff := cmp.Diff(want, s.Documents(job.ID), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
}

// What cannot become a job is refused with the field, and nothing is submitted.
func TestSubmitRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, field string
		change      func(*client.FolderJob)
	}{
		{"a schema that is none", "schema", func(j *client.FolderJob) { j.Schema = []byte("type: [") }},
		{"no such folder", "documents", func(j *client.FolderJob) { j.Folder += "/none" }},
		{"nothing to read", "documents", func(j *client.FolderJob) { j.Include = []string{"*.md"} }},
		{"all is skipped", "documents", func(j *client.FolderJob) { j.MaxBytes = 1 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := jobOf(t, map[string]string{"a.txt": "text"})
			tt.change(&j)
			c := servertest.Client{Service: new(servertest.Service)}
			_, err := client.SubmitFolder(t.Context(), c, j)
			if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != errs.Invalid || e.Field != tt.field {
				t.Errorf("got %v, want an invalid field %s", err, tt.field)
			}
			if page, err := c.ListJobs(t.Context(), mapreduce.ListJobsQuery{}); err != nil || len(page.Jobs) != 0 {
				t.Errorf("there are jobs %v, error %v", page, err)
			}
		})
	}
}

// Wait returns once the job has ended, and not before.
func TestWait(t *testing.T) {
	s := new(servertest.Service)
	c := servertest.Client{Service: s}
	job, err := client.SubmitFolder(t.Context(), c, jobOf(t, map[string]string{"a.txt": "text"}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Wait(ctx, c, job.ID); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for a job that runs gave %v", err)
	}
	if _, err := c.CancelJob(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	if job, err = client.Wait(t.Context(), c, job.ID); err != nil || job.State != mapreduce.JobCancelled {
		t.Errorf("got job %v, error %v, want one that is cancelled", job, err)
	}
}
