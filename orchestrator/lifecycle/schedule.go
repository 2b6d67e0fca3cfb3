package lifecycle

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// ScheduleJob puts a job on the scheduler. It compiles the job if compiled is nil. waiting
// holds all units that wait, or nothing if they are not known.
func (m *Manager) ScheduleJob(ctx context.Context, id mapreduce.JobID, st *records.Standing, compiled *jobspec.Compiled, waiting []records.Candidate) {
	spec := st.Job.Spec
	if compiled == nil {
		var err error
		compiled, err = m.specs.Compiled(id, &spec)
		// Without its pipeline the units of the job cannot be checked, and wait.
		m.supervisor.LogFailure(ctx, "reading the pipeline of a job", err, "job", id)
	}

	stages := jobspec.NewStages(compiled, st.Control)
	if stage := stages.Current(); stage != nil {
		spec = jobspec.ForStage(spec, stage)
	}
	spec.Budget = st.Control.Budget

	share := int64(0)
	if n := st.Job.Documents - st.Job.Skipped; n > 0 {
		share = spec.Budget / n
	}

	if m.usesPriming(st.Control, &spec) {
		m.scheduler.Prime(id)
	}
	m.scheduler.PutJob(id, st.Control, &spec, stages, m.config.AsksModels(spec.Provider), share, waiting)

	// Inputs of reduces may have ended without this node hearing of it.
	if st.Control.TreeTop > 0 {
		m.signals.RequestTreeLook(id)
	}

	m.signals.MarkDue(id)
	for _, ref := range st.Sleepers {
		m.ScheduleWakeUp(id, ref)
	}
	m.scheduler.SleepersSeen(id, st.NextParked)
}

// usesPriming reports whether the first unit of a job must run alone.
func (m *Manager) usesPriming(ctl *records.Control, spec *mapreduce.JobSpec) bool {
	return m.config.Warms != nil && ctl.State == mapreduce.Mapping && m.config.AsksModels(spec.Provider) &&
		spec.Replay == "" && m.config.Warms(spec)
}
