package worker

import (
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/breaker"
	"github.com/coditect/mapreduce/worker/step"
)

// A job is the session's copy of one JobInfo of a job. The next JobInfo of the same job
// makes another one, and attempts keep the one that they began with. Any goroutine may read it.
type job struct {
	spec     *mapreduce.JobSpec
	breaker  *breaker.Breaker // of the provider and model
	estimate token.Estimator  // of outputs that no provider counted; nil guesses

	mu     sync.Mutex       // guards stages; taken after session.mu
	stages map[string]stage // by name, of those that units came for
}

// A stage is the specification of a stage in the pipeline of a job, or the error of
// reading it.
type stage struct {
	spec    *agent.StageSpec // nil of units without a stage
	unclear error            // why the pipeline does not say it
}

// stageOf returns the specification of a stage.
func (j *job) stageOf(name string) stage {
	j.mu.Lock()
	defer j.mu.Unlock()

	found, ok := j.stages[name]
	if !ok {
		found.spec, found.unclear = step.Specify(j.spec, name)
		j.stages[name] = found
	}
	return found
}

// jobs are those that the orchestrator of the current stream has introduced. They have a lock
// of their own.
type jobs struct {
	breakers *breaker.Set
	tokens   *token.Counter

	mu  sync.Mutex // guards the map; taken after session.mu
	all map[mapreduce.JobID]*job
}

func newJobs(breakers *breaker.Set) *jobs {
	return &jobs{breakers: breakers, tokens: token.New(), all: make(map[mapreduce.JobID]*job)}
}

// learn takes what an orchestrator says of a job, for the units that follow.
func (js *jobs) learn(info protocol.JobInfo) {
	spec := info.Spec.WithDefaults() // of a service that left some open
	j := &job{spec: &spec, stages: make(map[string]stage), breaker: js.breakers.Of(&spec, "")}
	j.estimate, _ = token.Named(spec.Estimator, js.tokens.Count) // one that only a later version knows is a guess

	js.mu.Lock()
	defer js.mu.Unlock()
	js.all[info.Job] = j
}

// find returns a job, or nil if it was not introduced.
func (js *jobs) find(id mapreduce.JobID) *job {
	js.mu.Lock()
	defer js.mu.Unlock()
	return js.all[id]
}

// forget drops jobs. Attempts that the session holds keep theirs.
func (js *jobs) forget(ids []mapreduce.JobID) {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, id := range ids {
		delete(js.all, id)
	}
}

// forgetAll drops all jobs: each stream introduces its own.
func (js *jobs) forgetAll() {
	js.mu.Lock()
	defer js.mu.Unlock()
	clear(js.all)
}
