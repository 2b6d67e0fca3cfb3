package show_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/show"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/staging"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

// A client reads jobs where they are stored.
type client struct {
	mapreduce.Client
	jobs *jobs.Jobs
}

func (c client) GetJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return c.jobs.View.Job(ctx, id)
}

func (c client) ListEvents(ctx context.Context, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	q.PageSize = 3 // so that seals and pages end apart
	return c.jobs.Audit.List(ctx, q)
}

// newJob returns the audit trail of a job that has three seals, and the head of its chain.
func newJob(t *testing.T) (client, mapreduce.JobID) {
	t.Helper()
	j := jobs.New(store.NewDB(driver.Open(t), store.Config{}), keys.New(), "node", time.Now)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := mapreduce.WithActor(t.Context(), mapreduce.Principal{Name: "dns:ann", Tenant: "a"})
	id, spec := mapreduce.JobID("mr_20260101_aaaaaa"), &mapreduce.JobSpec{Tenant: "a", Parallelism: 1}
	must(j.Submit.Begin(ctx, id, spec))
	_, err := j.Submit.Publish(ctx, id, &staging.Publication{Spec: spec, Shards: 1, Level: records.Level{Phase: mapreduce.Mapping}})
	must(err)
	for range 3 {
		must(j.Lifecycle.Pause(ctx, id, records.AnyEpoch, "a pause"))
		must(j.Lifecycle.Resume(ctx, id, mapreduce.Resume{}))
		_, err := j.Audit.Seal(ctx, id)
		must(err)
	}
	return client{jobs: j}, id
}

func export(t *testing.T, c client, q mapreduce.ListEventsQuery) string {
	t.Helper()
	var out bytes.Buffer
	if err := show.WriteAudit(t.Context(), &out, c, q, time.Now()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAFileHolds(t *testing.T) {
	c, id := newJob(t)
	file := export(t, c, mapreduce.ListEventsQuery{Job: id})
	job, err := c.GetJob(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	v, err := show.VerifyAudit("f", strings.NewReader(file), job.AuditHead)
	if err != nil || v.Seals != 3 || v.Checkpoints != 7 || v.Unsealed != 0 || !v.Bound || v.Job != id || v.Tenant != "a" || v.Head != job.AuditHead {
		t.Errorf("%+v, %v", v, err)
	}
	if n := strings.Count(file, `"principal":"dns:ann"`); n != 7 {
		t.Errorf("%d of 7 events name who caused them", n)
	}
	ctx := t.Context()
	if err := c.jobs.Lifecycle.Pause(ctx, id, records.AnyEpoch, "the last"); err != nil {
		t.Fatal(err)
	}
	v, err = show.VerifyAudit("f", strings.NewReader(export(t, c, mapreduce.ListEventsQuery{Job: id})), "")
	if err != nil || v.Unsealed != 1 {
		t.Errorf("with an event that no seal covers yet: %+v, %v", v, err)
	}
	if err := c.jobs.Lifecycle.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	v, err = show.VerifyAudit("f", strings.NewReader(export(t, c, mapreduce.ListEventsQuery{Tenant: "a"})), "")
	if err != nil || v.Seals != 1 || v.Checkpoints != 1 || v.Tenant != "a" || !v.Bound {
		t.Errorf("the log of the tenant: %+v, %v", v, err)
	}
}

// Whatever is changed of a file is found, and said with the line.
func TestAFileThatWasChanged(t *testing.T) {
	c, id := newJob(t)
	file := strings.Split(strings.TrimSuffix(export(t, c, mapreduce.ListEventsQuery{Job: id}), "\n"), "\n")
	// Lines: 1 the head, 2 to 4 checkpoints, 5 a seal, 6 and 7, 8 a seal, 9 and 10, 11 a seal, 12 the end.
	if len(file) != 12 {
		t.Fatalf("the file has %d lines", len(file))
	}
	replace := func(line int, from, to string) func([]string) []string {
		return func(l []string) []string {
			if !strings.Contains(l[line-1], from) {
				t.Fatalf("line %d has no %q: %s", line, from, l[line-1])
			}
			l[line-1] = strings.Replace(l[line-1], from, to, 1)
			return l
		}
	}
	drop := func(line int) func([]string) []string {
		return func(l []string) []string { return append(l[:line-1:line-1], l[line:]...) }
	}
	for name, tt := range map[string]struct {
		change func([]string) []string
		head   string
		want   string
	}{
		"nothing":          {func([]string) []string { return nil }, "", "f: line 1 is no line of an audit trail"},
		"another name":     {replace(3, "dns:ann", "dns:bob"), "", "f: line 3 shows a principal of checkpoint"},
		"another message":  {replace(6, "a pause", "a break"), "", "f: line 6 shows a message of checkpoint"},
		"another record":   {func(l []string) []string { l[6] = swapRecord(l[6], l[5]); return l }, "", "f: line 7 "},
		"one left out":     {drop(7), "", "f: line 7 has seal 2 over 2 checkpoints, but the number of checkpoints since the seal before is 1"},
		"a seal left out":  {drop(5), "", "f: line 7 has seal 2 where seal 1 is expected"},
		"a round left out": {func(l []string) []string { return append(l[:5:5], l[8:]...) }, "", "f: line 8 has seal 3 where seal 2 is expected"},
		"another hash":     {replace(8, `"hash":"`, `"hash":"00`), "", "f: line 8 has seal 2, whose hash does not match the seal before and the checkpoints of lines 6 to 7"},
		"two swapped":      {func(l []string) []string { l[5], l[6] = l[6], l[5]; return l }, "", "f: line 7 has checkpoint"},
		"its end":          {drop(12), "", "f: ends after line 11, and its last line is not the end of an audit trail"},
		"its last seal":    {func(l []string) []string { return append(l[:8:8], l[11]) }, "", "f: line 9 says that the file has 7 checkpoints and 3 seals, but it has 5 and 2"},
		"its head":         {drop(1), "", "f: line 1 is out of place: the first line must be the head"},
		"a field":          {replace(4, `"checkpoint_id"`, `"id"`), "", "f: line 4 is no line of an audit trail"},
		"a chain made up":  {func(l []string) []string { return l }, strings.Repeat("0", 64), "f: the chain ends in "},
	} {
		lines := tt.change(append([]string(nil), file...))
		v, err := show.VerifyAudit("f", strings.NewReader(strings.Join(lines, "\n")+"\n"), tt.head)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v; want %s", name, v, err, tt.want)
		}
	}
	if _, err := show.VerifyAudit("f", strings.NewReader(""), ""); err == nil || err.Error() != "f: is empty" {
		t.Errorf("an empty file: %v", err)
	}
}

// swapRecord returns a line with the record of another.
func swapRecord(line, other string) string {
	record := func(s string) string {
		_, s, _ = strings.Cut(s, `"record":"`)
		s, _, _ = strings.Cut(s, `"`)
		return s
	}
	return strings.Replace(line, record(line), record(other), 1)
}
