package mapreduce

import (
	"fmt"
	"slices"
)

// DefaultProvider runs the units of a job that names no provider. It spends
// nothing.
const DefaultProvider = "rules"

// A Provider describes a provider of steps. The place that registers the provider
// also gives this description, so that no other code depends on names of providers.
type Provider struct {
	Name string
	// Models says that the provider's steps ask models: a unit takes seconds,
	// costs money, and counts against the limits of calls. The units of a provider
	// that asks none are over in less time than it takes to claim the next.
	Models bool
	// Steps are the kinds of steps that the provider has, sorted; none if they are not
	// known here, as of a provider that only workers elsewhere have.
	Steps []string
}

// Has reports whether the provider has a kind of step.
func (p Provider) Has(step string) bool { return slices.Contains(p.Steps, step) }

// Lacks reports whether it is known that the provider has no such step.
func (p Provider) Lacks(step string) bool { return len(p.Steps) > 0 && !p.Has(step) }

// Requirements are what a unit needs of the worker that runs it.
type Requirements struct {
	Provider string   // empty if any worker will do
	Model    string   // of the provider; a worker that has the provider can ask all its models
	Tools    []string // all of these
	Parser   string   // empty if the unit parses nothing
	Dollars  bool     // the job has a budget in dollars, which the worker has to keep to
	Batched  bool     // its calls of the provider go by batch, which earlier versions do not know
	Reviewed bool     // its values may have to wait for a person, which earlier versions do not know
	Placed   bool     // its job has a deadline, by which calls go by batch or do not; earlier versions ask again what a batch has answered
	Weight   int      // slots that the unit takes; 0 means one
}

// An Offer is what a worker has that units may require.
type Offer struct {
	Providers []string
	Tools     []string
	Parsers   []string
	Dollars   bool     // it reserves money before calls; earlier versions reserve tokens alone
	Batches   []string // names of providers whose batches it can make
	Reviews   bool     // it has values wait for people; earlier versions report them as they were found
	Deadlines bool     // it makes each unit's calls in the tier that it is told
}

// MetBy reports whether the offer has all that the unit requires.
func (r Requirements) MetBy(o Offer) bool {
	kind, _ := r.firstMissing(o)
	return kind == ""
}

// Missing returns the first thing that the unit requires and the offer lacks, in
// words such as `provider "openai"`. It returns "" if nothing is missing.
func (r Requirements) Missing(o Offer) string {
	kind, name := r.firstMissing(o)
	if kind == "" {
		return ""
	}
	return fmt.Sprintf("%s %q", kind, name)
}

func (r Requirements) firstMissing(o Offer) (kind, name string) {
	if r.Provider != "" && !slices.Contains(o.Providers, r.Provider) {
		return "provider", r.Provider
	}
	if r.Parser != "" && !slices.Contains(o.Parsers, r.Parser) {
		return "parser", r.Parser
	}

	if r.Dollars && !o.Dollars {
		return "a version that keeps", "--max-cost"
	}

	if r.Batched && !slices.Contains(o.Batches, r.Provider) {
		return "a version that makes batches of", r.Provider
	}

	if r.Reviewed && !o.Reviews {
		return "a version that knows", "--review"
	}

	if r.Placed && !o.Deadlines {
		return "a version that knows", "--deadline"
	}

	for _, tool := range r.Tools {
		if !slices.Contains(o.Tools, tool) {
			return "tool", tool
		}
	}

	return "", ""
}
