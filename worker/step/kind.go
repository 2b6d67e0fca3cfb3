package step

import (
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
)

// Of returns the kind of step that a task needs.
func Of(task *agent.Task) (Kind, error) { return KindOf(task.Kind, task.StageSpec) }

// KindOf returns the kind of step that units of a kind need in a stage. The stage
// is nil in a job whose pipeline is not made of stages, and for parse units.
//
//   - Parse units parse, whatever their stage.
//   - A stage with tools needs an agent that uses them, whatever it makes.
//   - A stage that makes records extracts them from documents, and merges those of
//     other stages. Of values it makes none.
//   - A group of items or tables, which have one form, is merged as well: what is
//     left open by their form is a model's affair.
//   - A stage of passages selects them.
//   - Any other stage writes.
func KindOf(unit mapreduce.UnitKind, stage *agent.StageSpec) (Kind, error) {
	switch {
	case unit == mapreduce.KindParse:
		return Parse, nil
	case stage == nil:
		return kindWithoutStage(unit)
	case len(stage.Tools) > 0:
		return Agent, nil
	case stage.Output == agent.PassagesChosen:
		return Select, nil
	// Records come from documents, or from records: of anything else no step makes any.
	case stage.Output == agent.Records && stage.Documents:
		return Extract, nil
	case stage.Output == agent.Records && len(stage.Reads) == 0:
		return "", fmt.Errorf("the stage %s makes records of what has none: no step does", stage.Name)
	case stage.Output == agent.Records:
		return Merge, nil
	case stage.Group && stage.Output != agent.Report:
		return Merge, nil
	}
	return Write, nil
}

func kindWithoutStage(unit mapreduce.UnitKind) (Kind, error) {
	switch unit {
	case mapreduce.KindMap, mapreduce.KindDirect:
		return Extract, nil
	case mapreduce.KindReduce, mapreduce.KindFinal:
		return Merge, nil
	}
	return "", fmt.Errorf("a unit of kind %v needs no step that is known here", unit)
}
