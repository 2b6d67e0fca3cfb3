package scripted

import (
	"context"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
)

// A Quoter runs map units as a model would whose answer is in the script, and all
// others as another agent does. The variable script.quote.FIELD.UNIT is what it
// claims to have found, and quotes, for a field in a unit; it knows no places.
type Quoter struct {
	Agent agent.Agent
}

var _ agent.Agent = (*Quoter)(nil)

// Run implements agent.Agent.
func (q *Quoter) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if task.Kind != mapreduce.KindMap {
		return q.Agent.Run(ctx, task, calls)
	}

	s, err := schema.Shared(task.Spec.Schema)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}

	aligner := unit.Aligner(task.Text, 0, len(task.Text.Content))
	m := unit.NewMapper(task, s)

	var values []unit.Value
	var quotes []string
	for _, f := range s.Fields() {
		quote, ok := task.Spec.Vars["script.quote."+f.Path+"."+string(task.Unit)]
		// The script claims to have found nothing for this field.
		if !ok {
			continue
		}
		value, err := f.Property.Normalize(strings.TrimSpace(quote))
		if err != nil {
			return nil, agent.PermanentJob(err)
		}
		quotes, values = append(quotes, quote), append(values, unit.Value{Field: f.Path, Value: value})
	}

	places, _, err := unit.Find(ctx, task, aligner, quotes)
	if err != nil {
		return nil, err
	}

	for i, at := range places {
		if at.Verified() {
			values[i].Places = []unit.Place{at}
		}
	}

	m.Add(0, m.Accumulate(0, values, nil))
	return m.Result("")
}
