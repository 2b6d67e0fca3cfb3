package scripted_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/checked"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// writing is a task of a stage that makes values of a schema, out of inputs.
func writing(kind agent.OutputKind, schema string, vars map[string]string, inputs ...[]byte) *agent.Task {
	task := &agent.Task{
		Assignment: protocol.Assignment{Unit: "s_0", Attempt: 1, Kind: mapreduce.KindReduce, Stage: "s"},
		Spec:       &mapreduce.JobSpec{Vars: vars},
		StageSpec:  &agent.StageSpec{Name: "s", Output: kind, Schema: []byte(schema)},
	}
	for i, data := range inputs {
		task.Inputs = append(task.Inputs, protocol.Input{Unit: mapreduce.UnitID(fmt.Sprintf("in_%d", i)), Data: data})
	}
	return task
}

func valueOf(t *testing.T, task *agent.Task) []byte {
	t.Helper()
	res, err := checked.New(&scripted.Agent{}).Run(t.Context(), task, &meter{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := output.Decode(res.Output)
	if err != nil {
		t.Fatal(err)
	}
	return out.Value
}

// TestValuesFitAnySchema: values fit what schemas ask for; the same is made of the
// same, and something else of another unit, seed or input.
func TestValuesFitAnySchema(t *testing.T) {
	for name, schema := range map[string]string{
		"a list in an object": `{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer","minimum":5,"maximum":9}}}}}}`,
		"a table":             `{"type":"array","items":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":["null","string"],"maxLength":3}}}}`,
		"a report":            `{"type":"string","minLength":50}`,
		"formats":             `{"type":"object","properties":{"d":{"type":"string","format":"date"},"t":{"type":"string","format":"date-time"},"m":{"type":"string","format":"email"},"u":{"type":"string","format":"uri"},"h":{"type":"string","format":"time"}}}`,
		"bounds":              `{"type":"object","properties":{"few":{"type":"array","maxItems":1,"items":{"type":"string"}},"many":{"type":"array","minItems":7,"items":{"type":"integer","multipleOf":5}},"one":{"enum":["a","b"]},"fixed":{"const":3},"yes":{"type":"boolean"},"text":{"type":"string"}}}`,
		"references":          `{"$defs":{"node":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/node"}]}}}},"$ref":"#/$defs/node"}`,
		"anything":            `{"type":"object"}`,
	} {
		t.Run(name, func(t *testing.T) {
			vars := map[string]string{"script.calls": "1"}
			first := valueOf(t, writing(agent.Items, schema, vars))
			if again := valueOf(t, writing(agent.Items, schema, vars)); !bytes.Equal(first, again) {
				t.Errorf("%s came to %s the second time", first, again)
			}
			if name == "anything" {
				return
			}
			input, err := (&output.Output{Value: []byte(`"x"`)}).Encode()
			if err != nil {
				t.Fatal(err)
			}
			other := writing(agent.Items, schema, vars)
			other.Unit = "s_1"
			item := writing(agent.Items, schema, vars)
			item.Item = []byte(`"x"`)
			for what, task := range map[string]*agent.Task{
				"unit": other, "item": item, "input": writing(agent.Items, schema, vars, input),
				"seed": writing(agent.Items, schema, map[string]string{"script.seed": "1"}),
			} {
				if got := valueOf(t, task); bytes.Equal(first, got) {
					t.Errorf("of another %s comes the same: %s", what, got)
				}
			}
		})
	}
}

func TestScriptSaysHowMany(t *testing.T) {
	const schema = `{"type":"object","properties":{"l":{"type":"array","items":{"type":"string"}}}}`
	for _, tt := range []struct {
		vars map[string]string
		want int
	}{
		{nil, 3},
		{map[string]string{"script.items": "5"}, 5},
		{map[string]string{"script.items": "5", "script.items.s": "0"}, 0},
		{map[string]string{"script.items.other": "5"}, 3},
	} {
		var got struct{ L []string }
		if err := json.Unmarshal(valueOf(t, writing(agent.Items, schema, tt.vars)), &got); err != nil || len(got.L) != tt.want {
			t.Errorf("with %v there are %d elements and error %v, want %d", tt.vars, len(got.L), err, tt.want)
		}
	}
}

// TestValuesCiteInputs: texts cite what the inputs do.
func TestValuesCiteInputs(t *testing.T) {
	in := &output.Output{}
	id := refs.New(refs.DocumentHash{1}, 0, 5, "quote")
	in.Cite(output.Citation{ID: id, Document: "d", Unit: "d", End: 5, ByteEnd: 5, Quote: "quote", Grade: "exact"})
	in.Value = []byte(`"` + id.Full() + `"`)
	data, err := in.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got := valueOf(t, writing(agent.Report, `{"type":"string"}`, nil, data)); !bytes.Contains(got, []byte("["+id.Full()+"]")) {
		t.Errorf("report %s does not cite %s", got, id.Full())
	}
}
