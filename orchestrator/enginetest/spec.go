package enginetest

import (
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
)

// Piped makes a job's pipeline one of a file.
func Piped(file string) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) {
		p, err := pipeline.Parse("kitchen.yaml", []byte(file))
		if err != nil {
			panic(err)
		}
		s.Pipeline, s.Definition = p.Name, p.Canonical()
		s.Vars = map[string]string{"occasion": "a wedding"}
	}
}

// Static asks for reduces of k inputs.
func Static(k int64) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.ChunkSize = &k }
}

// Budget asks for reduces of so many tokens.
func Budget(n int64) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.TargetTokenBudget = &n }
}

// Window asks for reduces that fit a model's window of n tokens.
func Window(n int64) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.ContextWindow = &n }
}

// Ratio asks for reduces that fill so much of the window.
func Ratio(x float64) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.BudgetRatio = &x }
}

// Levels asks for at most so many levels of reduces.
func Levels(n int64) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.MaxReduceLevels = &n }
}

// Batches asks for the old form of a tree: reduces of so much, and of so many inputs.
func Batches(limit, size int) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.ReduceContextLimit, s.ReduceBatchSize = limit, size }
}

// An Ask is what a job asks for.
type Ask = []func(*mapreduce.JobSpec)

// Asking returns a job that asks for something.
func Asking(ask ...func(*mapreduce.JobSpec)) mapreduce.JobSpec {
	spec := Script(nil)
	for _, a := range ask {
		a(&spec)
	}
	return spec
}

// Pairs returns the keys of all records that only a submission makes.
func Pairs(t *testing.T, s store.Store) []string {
	t.Helper()
	var found []string
	err := store.NewDB(s, store.Config{}).View(t.Context(), func(tx store.Tx) error {
		found = nil
		for _, r := range []store.Range{keys.New().Jobs(), keys.New().Ingests(), keys.New().RecentJobs()} {
			kvs, _, err := tx.GetRange(t.Context(), r, store.RangeOptions{})
			if err != nil {
				return err
			}
			for _, kv := range kvs {
				found = append(found, string(kv.Key))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Folded is a pipeline whose reduce takes its inputs in their order.
const Folded = `
name: chronicle
stages:
- {name: map, each: chunk, agent: {role: Reader}, task: Read}
- {name: reduce, each: group, agent: {role: Chronicler}, task: Tell it in order, fold: true}
`
