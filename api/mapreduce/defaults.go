package mapreduce

import "cmp"

// The defaults of a job that are names.
const (
	DefaultPipeline  = "extract"
	DefaultEstimator = "o200k_base"
)

// WithDefaults returns the spec with what its client left open, as every process is to see it. The
// fields of a strategy stay as they are: which of them have defaults depends on the pipeline.
func (s JobSpec) WithDefaults() JobSpec {
	s.Pipeline = cmp.Or(s.Pipeline, DefaultPipeline)
	s.Provider = cmp.Or(s.Provider, DefaultProvider)
	s.Parallelism = cmp.Or(s.Parallelism, DefaultParallelism)

	s.MaxTokensPerUnit = cmp.Or(s.MaxTokensPerUnit, DefaultMaxTokensPerUnit)
	s.ChunkOverlap = cmp.Or(s.ChunkOverlap, min(DefaultChunkOverlap, s.MaxTokensPerUnit/4))
	s.Estimator = cmp.Or(s.Estimator, DefaultEstimator)
	s.ReduceShare = cmp.Or(s.ReduceShare, DefaultReduceShare)

	s.MaxAttempts = cmp.Or(s.MaxAttempts, DefaultMaxAttempts)
	s.UnitTimeout = cmp.Or(s.UnitTimeout, DefaultUnitTimeout)
	s.BreakerThreshold = cmp.Or(s.BreakerThreshold, DefaultBreakerThreshold)
	s.BreakerTimeout = cmp.Or(s.BreakerTimeout, DefaultBreakerTimeout)
	s.CheckpointInterval = cmp.Or(s.CheckpointInterval, DefaultCheckpointInterval)
	return s
}
