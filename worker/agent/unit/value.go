package unit

import (
	"errors"
	"fmt"

	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent"
)

// Inputs returns the outputs that a unit reads, in order, without those of units
// that failed. Those that are referred to come apart.
func Inputs(task *agent.Task) (inputs, referred []*output.Output, err error) {
	for _, in := range task.Inputs {
		if in.Failed {
			continue
		}

		out, err := output.Decode(in.Data)
		if err != nil {
			return nil, nil, agent.Permanent(fmt.Errorf("output of %s: %w", in.Unit, err))
		}

		if in.Referred {
			referred = append(referred, out)
		} else {
			inputs = append(inputs, out)
		}
	}
	return inputs, referred, nil
}

// Read returns what a unit is given of the outputs that it reads, each as
// output.Output.Read has it. Of records that a tree of reduces passed on, the last
// output has the names alone: the records themselves come as referred inputs.
func Read(task *agent.Task, inputs, referred []*output.Output) ([][]byte, error) {
	var schemas []*schema.Schema
	for _, source := range task.StageSpec.Reads {
		s, err := schema.Shared(source)
		if err != nil {
			return nil, agent.PermanentJob(err)
		}
		schemas = append(schemas, s)
	}

	all := make([][]byte, len(inputs))
	for i, in := range inputs {
		// Names alone are completed by the records that they refer to.
		if len(in.Value) == 0 && len(referred) > 0 {
			in = in.Complete(referred)
		}

		var err error
		if all[i], err = in.Read(schemas...); err != nil {
			return nil, agent.Permanent(err)
		}
	}
	return all, nil
}

// Form returns what the values of a task's stage have to look like.
func Form(task *agent.Task) (*jsonvalue.Form, error) {
	if task.StageSpec == nil || len(task.StageSpec.Schema) == 0 {
		return nil, agent.PermanentJob(fmt.Errorf("the stage of %s has no schema", task.Unit))
	}

	form, err := jsonvalue.NewForm(task.StageSpec.Schema)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}

	if !form.NeedsGiven() {
		return form, nil
	}

	// A form may refer to what the unit is given: its document, all documents, or its
	// inputs.
	if task.StageSpec.Documents {
		if task.Text != nil {
			return form.With(output.GivenOfDocuments(task.Index, nil, 0)), nil
		}
		all, err := NewDirect(task, nil)
		if err != nil {
			return nil, err
		}
		return form.With(output.GivenOfDocuments(task.Index, all.Documents(), task.StageSpec.Size)), nil
	}

	given, _, err := Given(task)
	if err != nil {
		return nil, err
	}
	return form.With(output.GivenOf(task.Index, task.Item, given)), nil
}

// Given returns the outputs whose citations a unit that writes may pass on, and of a
// stage that reads passages these passages, in the order in which they are read.
func Given(task *agent.Task) (given []*output.Output, passages []output.Passage, err error) {
	inputs, referred, err := Inputs(task)
	if err != nil {
		return nil, nil, err
	}

	if !task.StageSpec.Passages {
		return append(inputs, referred...), nil, nil
	}

	var batch []byte
	if task.StageSpec.Each == pipeline.EachBatch {
		batch = task.Item
	}

	passages, err = output.Passages(batch, inputs)
	if err != nil {
		return nil, nil, agent.Permanent(err)
	}
	return []*output.Output{output.OfPassages(passages)}, passages, nil
}

// MergeValues merges the values that a unit reads as far as their form decides.
func MergeValues(task *agent.Task) (*agent.Result, error) {
	inputs, _, err := Inputs(task)
	if err != nil {
		return nil, err
	}
	out, err := MergedValue(task, inputs)
	if err != nil {
		return nil, err
	}
	return Valued(out)
}

// MergedValue is MergeValues before it is encoded.
func MergedValue(task *agent.Task, inputs []*output.Output) (*output.Output, error) {
	form, err := Form(task)
	if err != nil {
		return nil, err
	}

	out, err := output.MergeValues(string(task.Unit), form, inputs)
	if err != nil {
		return nil, agent.Permanent(err)
	}

	if err := check.Value(inputs, nil, form, out); err != nil {
		return nil, agent.Permanent(fmt.Errorf("what was merged is no value of the stage: %w", err))
	}
	return out, nil
}

// Valued is the result of a unit that came to a value.
func Valued(out *output.Output) (*agent.Result, error) {
	if len(out.Value) == 0 {
		return nil, agent.Permanent(errors.New("the unit came to no value"))
	}
	data, err := out.Encode()
	if err != nil {
		return nil, agent.Permanent(err)
	}
	return &agent.Result{Output: data, Size: token.Unknown, Text: out.Text(), Confidence: 1}, nil
}
