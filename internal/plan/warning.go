package plan

import (
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A WarningKind is what a warning is about.
type WarningKind string

// The kinds of warnings.
const (
	OverBudget  WarningKind = "over-budget"  // an output is larger than the budget
	NoProgress  WarningKind = "no-progress"  // another level would not be smaller
	MaxLevels   WarningKind = "max-levels"   // no more levels are allowed
	GuessedSize WarningKind = "guessed-size" // tokens are a quarter of the characters
	Advised     WarningKind = "advice"       // the pipeline has advice for so many documents
	Lists       WarningKind = "lists"        // how long lists are is not known
)

// A Warning is something that a job gets over, and its owner should know.
type Warning struct {
	Kind    WarningKind
	Level   int64 // that was being planned
	Outputs int64 // that it is about
	Tokens  int64 // of these
	Budget  int64
	Unit    mapreduce.UnitID // whose output it is about, if one
	Agent   string           // the role of that unit's agent, if known
	Text    string           // if not empty, what String returns: it comes from elsewhere
}

// String returns the warning for people.
func (w Warning) String() string {
	if w.Text != "" {
		return w.Text
	}

	switch w.Kind {
	case OverBudget:
		return fmt.Sprintf("the output of %s has %d tokens, more than the budget of %d: it is reduced by itself, in parts; "+
			"a larger budget or a terser output would spare that", w.subjectText(), w.Tokens, w.Budget)
	case NoProgress:
		return fmt.Sprintf("level %d would be no smaller than the one below it: its %d outputs of %d tokens are read one after another, "+
			"every call within the budget of %d", w.Level, w.Outputs, w.Tokens, w.Budget)
	case MaxLevels:
		return fmt.Sprintf("no more levels of reduction are allowed before level %d: %d outputs of %d tokens are read one after another, "+
			"every call within the budget of %d", w.Level, w.Outputs, w.Tokens, w.Budget)
	case GuessedSize:
		return "tokens are guessed: as a quarter of the characters of texts, and of outputs whose tokens no provider counted; " +
			"the estimator o200k_base would count them"
	}
	return string(w.Kind)
}

func (w Warning) subjectText() string {
	if w.Agent == "" {
		return fmt.Sprintf("unit %q", w.Unit)
	}
	return fmt.Sprintf("agent %q, unit %q,", w.Agent, w.Unit)
}
