package checked_test

import (
	"context"
	"errors"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/checked"
	"github.com/coditect/mapreduce/worker/step/rules"
)

const schema = `{"title":"order","type":"object","properties":{"total":{"type":"number","x-coditect":{"labels":["TOTAL"]}}}}`

// a forger changes what another agent made.
type forger struct {
	agent.Agent
	forge func(*output.Output)
}

func (f forger) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	res, err := f.Agent.Run(ctx, task, calls)
	if err != nil {
		return nil, err
	}
	out, err := output.Decode(res.Output)
	if err != nil {
		return nil, err
	}
	f.forge(out)
	res.Output, err = out.Encode()
	return res, err
}

func task() *agent.Task {
	text := "für\nTOTAL: 12.50\n"
	return &agent.Task{
		Spec: &mapreduce.JobSpec{Schema: []byte(schema)},
		Assignment: protocol.Assignment{Unit: "d_chunk_1", Kind: mapreduce.KindMap, Index: 1, Text: &protocol.Text{
			Document: "d", SHA256: make([]byte, 32), Content: []byte(text), CoreEnd: len(text), ByteOffset: 1000, CharOffset: 900, ChunkIndex: 1, Chunks: 2,
		}},
	}
}

func TestMapUnits(t *testing.T) {
	if _, err := checked.New(rules.New()).Run(t.Context(), task(), nil); err != nil {
		t.Errorf("what the rules found was refused: %v", err)
	}
	for name, forge := range map[string]func(*output.Citation){
		"quote":      func(c *output.Citation) { c.Quote = "13.50" },
		"place":      func(c *output.Citation) { c.ByteStart, c.ByteEnd = c.ByteStart-1, c.ByteEnd-1 },
		"characters": func(c *output.Citation) { c.Start, c.End = c.Start+1, c.End+1 },
		"unit":       func(c *output.Citation) { c.Unit = "d_chunk_0" },
	} {
		t.Run(name, func(t *testing.T) {
			a := forger{rules.New(), func(o *output.Output) {
				for id, c := range o.Citations {
					forge(&c)
					o.Citations[id] = c
				}
			}}
			res, err := checked.New(a).Run(t.Context(), task(), nil)
			if class, _ := agent.Classify(err); res != nil || !errors.Is(err, check.ErrBreach) || class != protocol.PermanentUnit {
				t.Errorf("Run = %v, %v of class %v; want a breach that is permanent for the unit", res, err, class)
			}
		})
	}
}

// liar makes an output of its own.
type liar struct{ output.Output }

func (l liar) Run(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
	data, err := l.Encode()
	return &agent.Result{Output: data}, err
}

// TestValues: a value is what its stage makes, and cites what the unit was given.
func TestValues(t *testing.T) {
	const quote = "INDAH"
	id := refs.New(refs.DocumentHash{1}, 0, len(quote), quote)
	cited := output.Output{Value: []byte(`{"a":"` + id.Full() + `"}`)}
	cited.Cite(output.Citation{ID: id, Document: "d", Unit: "d", End: 5, ByteEnd: 5, Quote: quote, Grade: "exact"})
	given, err := cited.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		made   output.Output
		inputs []protocol.Input
		want   error
	}{
		{"cited by an input", cited, []protocol.Input{{Unit: "in", Data: given}}, nil},
		{"cited by what is referred to", cited, []protocol.Input{{Unit: "in", Data: given, Referred: true}}, nil},
		{"cited by nobody", cited, nil, check.ErrBreach},
		{"cited by what has failed", cited, []protocol.Input{{Unit: "in", Data: given, Failed: true}}, check.ErrBreach},
		{"another form", output.Output{Value: []byte(`[]`)}, nil, jsonvalue.ErrForm},
		{"records", output.Output{}, nil, jsonvalue.ErrForm},
	} {
		t.Run(tt.name, func(t *testing.T) {
			write := &agent.Task{
				Spec:       &mapreduce.JobSpec{},
				StageSpec:  &agent.StageSpec{Name: "s", Output: agent.Items, Schema: []byte(`{"type":"object"}`)},
				Assignment: protocol.Assignment{Unit: "s_0", Kind: mapreduce.KindMap, Stage: "s", Inputs: tt.inputs},
			}
			if _, err := checked.New(liar{tt.made}).Run(t.Context(), write, nil); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

// broken makes what is no output.
type broken struct{}

func (broken) Run(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
	return &agent.Result{Output: []byte("\xff\xff")}, nil
}

func TestOutputsThatAreNone(t *testing.T) {
	if _, err := checked.New(broken{}).Run(t.Context(), task(), nil); err == nil {
		t.Error("it was taken")
	}
	parse := task()
	parse.Kind = mapreduce.KindParse
	if _, err := checked.New(broken{}).Run(t.Context(), parse, nil); err != nil {
		t.Errorf("a text is no output, and was refused: %v", err)
	}
}
