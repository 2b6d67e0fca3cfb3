package jobstest

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// PageOf is a text as evidence of a place that is named by the beginning of the text.
func PageOf(text string) mapreduce.Evidence {
	e := mapreduce.Evidence{
		URI: "https://example.org/" + text[:min(len(text), 20)], Title: "Page", Tool: "fetch", Media: "text/html",
		Retrieved: time.Unix(1_700_000_000, 0).UTC(), Metadata: map[string]string{"a": "1", "b": "2", "c": "3"},
	}
	e.DescribeText([]byte(text))
	return e
}

// Found is a put of evidence by the session that holds a unit.
func Found(id mapreduce.JobID, u *records.Unit, number int, text string) *content.EvidencePut {
	return &content.EvidencePut{
		Held:    protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)},
		Session: u.Session, Number: number, Item: PageOf(text),
	}
}

// Find adds texts to the evidence of a unit.
func (w *World) Find(j *jobs.Jobs, id mapreduce.JobID, u *records.Unit, first int, texts ...string) {
	w.Helper()
	for i, text := range texts {
		w.Must(j.Content.PutEvidence(w.Ctx, Found(id, u, first+i, text), []byte(text)))
	}
}
