package unit

import (
	"crypto/sha256"
	"errors"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/worker/agent"
)

// A Direct collects what a direct unit finds in all the documents of its job. Its
// records are numbered through, as if they were those of one document.
type Direct struct {
	task       *agent.Task
	schema     *schema.Schema
	docs       []payload.Document
	outs       []*output.Output
	next       int64 // number of the next record
	confidence float64
	values     int
	reason     string
}

// NewDirect returns a Direct that has found nothing.
func NewDirect(task *agent.Task, s *schema.Schema) (*Direct, error) {
	if len(task.Inputs) != 1 {
		return nil, agent.Permanent(errors.New("a direct unit has its documents as its one input"))
	}
	docs, err := payload.DecodeDocuments(task.Inputs[0].Data)
	if err != nil {
		return nil, agent.Permanent(err)
	}
	return &Direct{task: task, schema: s, docs: docs}, nil
}

// Documents are those that the unit works on, in order of the input.
func (d *Direct) Documents() []payload.Document { return d.docs }

// Task is the unit as one that works on its i-th document alone.
func (d *Direct) Task(i int) *agent.Task {
	doc := d.docs[i]
	sum := sha256.Sum256(doc.Text)
	one := *d.task
	one.Inputs = nil
	one.Text = &protocol.Text{
		Document: mapreduce.DocumentID(doc.Document), SHA256: sum[:], Metadata: doc.Metadata, Content: doc.Text,
		CoreEnd: len(doc.Text), Chunks: 1, Length: int64(len(doc.Text)),
	}
	return &one
}

// Mapper returns what collects the records of a document, whose task is given.
func (d *Direct) Mapper(task *agent.Task) *Mapper {
	m := NewMapper(task, d.schema)
	m.base = d.next
	return m
}

// Take takes what a Mapper has collected. The reason says why there is nothing.
func (d *Direct) Take(m *Mapper, reason string) {
	d.outs = append(d.outs, m.out)
	d.next += int64(len(m.out.Entries))
	d.confidence += m.confidence
	d.values += m.values
	if d.reason == "" {
		d.reason = reason
	}
}

// Result is what was found, merged as far as the schema decides.
func (d *Direct) Result() (*agent.Result, error) {
	m := &Mapper{out: output.Whole(d.schema, d.outs), confidence: d.confidence, values: d.values}
	for _, out := range d.outs {
		m.out.Dates.Add(out.Dates)
		m.out.Numbers.Add(out.Numbers)
	}
	if len(m.out.Entries) > 0 {
		d.reason = ""
	}
	return m.Result(d.reason)
}
