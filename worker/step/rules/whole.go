package rules

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/rules"
	"github.com/coditect/mapreduce/internal/text/rules/find"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
)

// A chunk is how much text a model can be given at once, and means nothing to
// rules: cut from its surroundings a record has no beginning, a label no value, and
// the best of several values is the best of fewer. So each chunk's unit has the
// whole document read, once for all of them on a worker, and keeps what begins in
// its core. What is found is then the same however a document was cut.

// maxReadings bounds the documents of which is kept what was found in them.
const maxReadings = 4

// A reading is what is found in a document.
type reading struct {
	turn  chan struct{} // holds one element while the document is read
	read  bool          // in its turn: found is there
	found rules.Output  // in its turn; holds no part of the text
}

// readingCache are those of the documents read last.
type readingCache struct {
	mu   sync.Mutex // guards list
	list []keyed    // the latest first
}

// A keyed is a reading, of a schema and a text by their hashes.
type keyed struct {
	program *program
	text    [sha256.Size]byte
	*reading
}

// readingOf returns the reading of a document, which may yet have to be read.
func (r *readingCache) readingOf(p *program, text []byte) *reading {
	key := keyed{p, [sha256.Size]byte(text), nil}

	r.mu.Lock()
	defer r.mu.Unlock()

	i := slices.IndexFunc(r.list, func(k keyed) bool { return k.program == key.program && k.text == key.text })
	if i >= 0 {
		key = r.list[i]
		r.list = slices.Delete(r.list, i, i+1)
	} else {
		key.reading = &reading{turn: make(chan struct{}, 1)}
	}

	// Readings that are left out are still held by the units that wait for them.
	r.list = slices.Insert(r.list, 0, key)
	r.list = r.list[:min(len(r.list), maxReadings)]

	return key.reading
}

// readText returns what is found in a text. Of several units that ask for it one
// reads; if its time is over before it has read, the next one does.
func (r *reading) readText(ctx context.Context, p *program, text string) (rules.Output, error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return rules.Output{}, context.Cause(ctx)
	}
	defer func() { <-r.turn }()

	if r.read {
		return r.found, nil
	}

	found, err := p.extract(ctx, rules.Document(text))
	if err != nil {
		return found, err
	}

	// What is kept must not hold the text, which may be large: quotes are cut again where
	// they are needed.
	for i := range found.Records {
		for j := range found.Records[i].Found {
			f := &found.Records[i].Found[j]
			f.Value, f.Quote = cloneValue(f.Value), ""
		}
	}

	r.found, r.read = found, true
	return found, nil
}

// cloneValue returns a value that holds no part of the text it was read from.
func cloneValue(value any) any {
	switch v := value.(type) {
	case string:
		return strings.Clone(v)
	case json.Number:
		return json.Number(strings.Clone(string(v)))
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = cloneValue(item)
		}
		return list
	case map[string]any:
		fields := make(map[string]any, len(v))
		for name, item := range v {
			fields[name] = cloneValue(item)
		}
		return fields
	default:
		return value
	}
}

// extractWhole finds what begins in the core of a chunk by reading its document.
// It returns nil if that is too long.
func (x *extractor) extractWhole(ctx context.Context, p *program, task *agent.Task) (*agent.Result, error) {
	var res *agent.Result
	var failed error
	err := task.Whole(ctx, func(document *ground.Text) {
		var found rules.Output
		if found, failed = x.readings.readingOf(p, task.Text.SHA256).readText(ctx, p, document.String()); failed == nil {
			res, failed = p.ownResult(task, found, document)
		}
	})

	if errors.Is(err, agent.ErrTooLong) {
		return nil, nil
	}

	return res, errors.Join(err, failed)
}

// ownResult makes the output of a unit of what was found in its document: of many
// records those that begin in its core, of one record the values that do.
func (p *program) ownResult(task *agent.Task, found rules.Output, document *ground.Text) (*agent.Result, error) {
	t := task.Text
	mine := func(at int) bool {
		return int64(at) >= t.ByteOffset+int64(t.CoreStart) && int64(at) < t.ByteOffset+int64(t.CoreEnd)
	}

	m := unit.NewMapper(task, p.schema)
	aligner := ground.Unit{Chunk: document}
	n, reason := int64(0), found.Reason

	for _, r := range found.Records {
		// Each record is the unit's in whose core it begins, so it is found once.
		if p.schema.Kind == schema.KindRecords && !mine(r.Start) {
			continue
		}
		values := p.recordValues(t, aligner, r.Found, func(f find.Found) bool { return p.schema.Kind == schema.KindRecords || mine(f.Start) })
		m.Add(n, m.Accumulate(n, values, toMissing(r.Missing)))
		n++
	}

	if n == 0 && len(found.Records) > 0 {
		reason = "no record begins in this part of the document"
	}

	var left []rules.LeftOut
	for _, row := range found.LeftOut {
		if mine(row.Start) {
			left = append(left, row)
		}
	}

	return withErrors(rules.Summary(document.String(), left))(m.Result(reason))
}

// recordValues returns the values of a record that are the unit's own.
func (p *program) recordValues(t *protocol.Text, aligner ground.Unit, found []find.Found, own func(find.Found) bool) []unit.Value {
	var values []unit.Value
	for _, f := range found {
		if !own(f) {
			continue
		}

		f.Quote = aligner.Chunk.String()[f.Start:f.End]
		v := locateValues(aligner, []find.Found{f})[0]
		v.Whole = true

		for i := range v.Places {
			v.Places[i].Outside = unit.Outside(t, v.Places[i].Span)
		}
		values = append(values, v)
	}

	return values
}
