package pipeline_test

import (
	"bytes"
	"testing"

	"github.com/coditect/mapreduce/api/pipeline"
)

// A stage has its own parameters of answers, which its canonical form keeps; other stages' is as it
// was.
func TestParametersOfStages(t *testing.T) {
	p, err := pipeline.Parse("p.yaml", []byte(whole("- {name: map, each: document, parameters: {effort: low, temperature: 0, stop: [END], seed: 7}}", grouped)))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Stages[0].Parameters.String(), `effort low, temperature 0, seed 7, stop "END"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !p.Stages[1].Parameters.IsZero() || bytes.Count(p.Canonical(), []byte("parameters")) != 1 {
		t.Errorf("another stage has parameters: %s", p.Canonical())
	}
	again, err := pipeline.Parse("again", p.Canonical())
	if err != nil || again.Stages[0].Parameters.String() != p.Stages[0].Parameters.String() || !bytes.Equal(again.Canonical(), p.Canonical()) {
		t.Errorf("%v, read again as %s", err, again.Canonical())
	}
}
