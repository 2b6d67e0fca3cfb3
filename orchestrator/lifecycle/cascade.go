package lifecycle

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/outcome/ascent"
	"github.com/coditect/mapreduce/internal/outcome/certify"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/cascade"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A judgement takes the units of a cascade on, all of which have ended or wait with the answer
// of a member. What it does next follows from what is stored alone, so it does not matter which
// orchestrator does it, nor how often one has died half way:
//
//  1. Where a trial of a member is decided, units that still wait with its answer go on as was
//     decided.
//  2. Where one has begun, the units that it draws are compared, some at a time, until it can
//     be decided.
//  3. Else a trial begins of the units that wait with the answer of the lowest member.
type judgement struct {
	*advancer
	job     mapreduce.JobID
	stage   *pipeline.Stage
	seed    uint64
	members int64
	names   []string        // of the measures
	keep    *keeping        // nil if no certificate lasts
	repeats mapreduce.JobID // the job that this one repeats; "" if it repeats none
}

// judge takes the units of a level on that wait for the decision of a cascade, and decides a
// trial all of whose units were drawn. It does nothing where a unit may still move by itself, as
// others may have woken it just now.
func (a *advancer) judge(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) error {
	if s.Level != 0 || !s.Waits() && !s.Ended() {
		return nil
	}
	compiled, err := a.specs.Job(ctx, id)
	if err != nil {
		return err
	}

	stage := compiled.Graph.Pipeline().Stages[s.Planned[0].Stage]
	if !stage.Cascade.IsSet() {
		return nil
	}
	measures, err := ascent.New(compiled.Schemas[s.Planned[0].Stage], stage.Per)
	if err != nil {
		return err
	}

	j := &judgement{
		advancer: a, job: id, stage: stage, seed: seedOf(stage, id, compiled),
		members: int64(len(stage.Members)), names: measures.Names(), repeats: compiled.Spec.Replay,
	}
	if j.keep, err = keepingOf(compiled, s.Planned[0].Stage); err != nil {
		return err
	}
	return j.run(ctx, s.Parked > 0)
}

// seedOf returns the seed of the draws of a job. A job that repeats another draws as that one
// did, or it would need answers that nobody has kept.
func seedOf(stage *pipeline.Stage, id mapreduce.JobID, compiled *jobspec.Compiled) uint64 {
	if stage.Seed != 0 {
		return uint64(stage.Seed)
	}
	sum := sha256.Sum256([]byte(cmp.Or(compiled.Spec.Replay, id)))
	return binary.BigEndian.Uint64(sum[:])
}

func (j *judgement) run(ctx context.Context, waits bool) error {
	decided := make(map[int64]*cascade.Trial)
	for member := range j.members - 1 {
		t, err := j.jobs.Cascade.Trial(ctx, j.job, member)
		switch {
		case err != nil:
			return err
		case t == nil:
		case t.Decided:
			decided[member] = t
		default:
			return j.certify(ctx, member, t)
		}
	}
	if !waits {
		return nil
	}

	waiting, others, err := j.waiting(ctx)
	if err != nil {
		return err
	}
	for member := range j.members - 1 {
		units := waiting[member]
		switch t := decided[member]; {
		case len(units) == 0:
		case t != nil:
			return j.carryOut(ctx, member, t, units)
		case others:
			return nil // they may come to wait with an answer, and belong to the trial then
		default:
			return j.begin(ctx, member, units)
		}
	}
	return nil
}

// A waiter is a unit that waits with an answer.
type waiter struct {
	unit mapreduce.UnitID
	cascade.Scored
}

// waitingPage is how many units are looked at together.
const waitingPage = 1024

// waiting returns the units that wait with an answer, by the member whose answer it is, in order,
// and whether others wait for something else, such as a batch at a vendor.
func (j *judgement) waiting(ctx context.Context) (all map[int64][]waiter, others bool, err error) {
	all = make(map[int64][]waiter)
	for from := int64(0); ; {
		page, err := j.jobs.View.UnitsFrom(ctx, j.job, 0, from, waitingPage)
		if err != nil || len(page) == 0 {
			return all, others, err
		}
		from = page[len(page)-1].Index + 1

		parked, err := j.jobs.View.Parkings(ctx, j.job, page)
		if err != nil {
			return nil, false, err
		}
		for _, u := range page {
			p := parked[u.ID]
			if p == nil {
				continue
			}
			member, ok := ascent.MemberOf(p.Handle)
			if others = others || !ok; ok {
				all[int64(member)] = append(all[int64(member)], waiter{u.ID, cascade.Scored{Index: u.Index, Scores: j.fitScores(p.Scores)}})
			}
		}
	}
}

// fitScores returns the scores of a unit, one for each measure: a worker may say anything.
func (j *judgement) fitScores(scores []uint32) []uint32 {
	fit := make([]uint32, len(j.names))
	copy(fit, scores)
	return fit
}

// begin begins a trial of the units that wait with the answer of a member.
func (j *judgement) begin(ctx context.Context, member int64, units []waiter) error {
	rules := j.rules(member)
	t := &cascade.Trial{
		Member: j.stage.Members[member], Oracle: j.oracle(), Target: rules.Target, Confidence: rules.Confidence,
		Seed: rules.Seed, Measures: j.names,
	}

	scored := make([]cascade.Scored, len(units))
	for i, u := range units {
		scored[i] = u.Scored
	}
	keep, err := j.beginWith(ctx, member, t)
	if err != nil {
		return err
	}
	if err := j.jobs.Cascade.Begin(ctx, j.job, member, t, scored, keep); err != nil {
		return err
	}

	begun, err := j.jobs.Cascade.Trial(ctx, j.job, member)
	if err != nil || begun == nil || begun.Decided {
		return err
	}
	return j.certify(ctx, member, begun)
}

// rules returns what is to be certified of a member. The confidences of all members are
// together that of the cascade.
func (j *judgement) rules(member int64) certify.Rules {
	return certify.Rules{
		Target:     j.stage.Target,
		Confidence: 1 - (1-j.stage.Confidence)/float64(j.members-1),
		Seed:       j.seed + uint64(member),
		Alone:      j.isAlone(member),
	}
}

// oracle names who compares: the last member, or whoever has the role that reviews.
func (j *judgement) oracle() string {
	if j.stage.Review.Reasons().Compared {
		return j.stage.Review.Role()
	}
	return j.stage.Oracle()
}

// isAlone reports whether the accepted answers of a member have to reach the target by themselves: what is not accepted
// is not asked of whoever judges them.
func (j *judgement) isAlone(member int64) bool {
	return member < j.members-2 || j.stage.Review.Reasons().Compared
}

// certify draws units of a trial, or decides it.
func (j *judgement) certify(ctx context.Context, member int64, t *cascade.Trial) error {
	units, err := j.jobs.Cascade.TrialUnits(ctx, j.job, member, t)
	if err != nil {
		return err
	}
	trial, err := newTrial(t, units, j.isAlone(member))
	if err != nil {
		return err
	}

	d := &drawing{judgement: j, member: member, stored: t, trial: trial, units: units, labels: make(map[int][]certify.Label)}
	if t.Certificate != nil {
		settled, err := d.audit(ctx)
		if err != nil || !settled || !t.Fallen {
			return err
		}
	}

	for {
		step := trial.Next(d.known)
		draw, floors := step.Draw, []certify.Score(nil)
		if step.Done() && j.keep != nil && !t.Unkept {
			draw, floors = trial.Lasting(step.Verdicts, d.known)
		}
		if len(draw) == 0 {
			return d.decide(ctx, step.Verdicts, floors)
		}

		settled, err := d.label(ctx, draw)
		if err != nil || !settled {
			return err
		}
	}
}

// A drawing is a trial all of whose labels so far are at hand.
type drawing struct {
	*judgement
	member int64
	stored *cascade.Trial
	trial  *certify.Trial
	units  []cascade.Scored
	labels map[int][]certify.Label // by item and measure, of those that were drawn
}

// known returns the label of an item.
func (d *drawing) known(item, measure int) certify.Label {
	if labels := d.labels[item]; labels != nil {
		return labels[measure]
	}
	return certify.Unknown
}

func newTrial(t *cascade.Trial, units []cascade.Scored, alone bool) (*certify.Trial, error) {
	scores := make([][]certify.Score, len(t.Measures))
	for m := range scores {
		scores[m] = make([]certify.Score, len(units))
		for i, u := range units {
			scores[m][i] = certify.Score(u.Scores[m])
		}
	}
	return certify.New(certify.Rules{Target: t.Target, Confidence: t.Confidence, Seed: t.Seed, Alone: alone}, scores...)
}

// label reads the labels of drawn units, and has those compared that wait. It reports whether
// all are labelled.
func (d *drawing) label(ctx context.Context, draw []int) (settled bool, err error) {
	settled = true
	var compare []cascade.Judged
	for _, item := range draw {
		u, err := d.unitAt(ctx, d.units[item].Index)
		if err != nil {
			return false, err
		}

		switch {
		case u == nil || u.State == mapreduce.UnitFailed:
			// The oracle has no answer. So nobody can say that the other one is right.
			d.labels[item] = slices.Repeat([]certify.Label{certify.Wrong}, len(d.names))
		case u.State == mapreduce.UnitComplete:
			if d.labels[item], err = d.labelsOf(ctx, d.stored, u); err != nil {
				return false, err
			}
		default:
			if settled = false; u.Parked {
				compare = append(compare, cascade.Judged{Unit: u.ID, Answer: string(ascent.Compare)})
			}
		}
	}
	return settled, d.wake(ctx, d.member, compare)
}

// unitAt returns the unit with an index, nil if there is none.
func (j *judgement) unitAt(ctx context.Context, index int64) (*records.Unit, error) {
	found, err := j.jobs.View.UnitsFrom(ctx, j.job, 0, index, 1)
	if err != nil || len(found) == 0 || found[0].Index != index {
		return nil, err
	}
	return found[0], nil
}

// labelsOf returns by measure whether a member's answer about a unit was like the oracle's, and
// adds up what the oracle took. A unit that was not compared has no answer that is alike.
func (j *judgement) labelsOf(ctx context.Context, t *cascade.Trial, u *records.Unit) ([]certify.Label, error) {
	out, err := outputs.Of(ctx, j.jobs.Reader(), j.job, u)
	if err != nil {
		return nil, err
	}

	labels := slices.Repeat([]certify.Label{certify.Wrong}, len(j.names))
	how := out.Ascent
	if how == nil {
		return labels, nil
	}
	// Where a person is the oracle and nothing was found that people can look at, the last member has
	// answered, and what it says is no person's word.
	judged := j.stage.Review.Reasons().Compared && len(how.Found) == 0
	for m := range min(len(labels), len(how.Alike)) {
		if how.Alike[m] && !judged {
			labels[m] = certify.Right
		}
	}

	// An attempt whose answer was in its journal has spent nothing.
	if how.Tokens > 0 || how.CostMicros > 0 {
		t.Priced++
		t.OracleTokens += how.Tokens
		t.OracleCostMicros += how.CostMicros
	}
	return labels, nil
}

// decide stores which units are accepted, and lets them go on. Floors are those of a certificate for later
// jobs; there are none if it is not certified, or not asked for.
func (d *drawing) decide(ctx context.Context, verdicts []certify.Verdict, floors []certify.Score) error {
	t := d.stored
	t.Verdicts = nil
	for _, v := range verdicts {
		t.Verdicts = append(t.Verdicts, cascade.Verdict{
			First: int64(v.First), Least: uint32(v.Least), Labels: int64(v.Labels), Right: int64(v.Right), Ended: v.Ended.String(),
		})
	}

	d.accept(func(item int) bool { return d.trial.Accepts(verdicts, item) })
	keep, made := d.keep.of(d.repeats), (*cascade.Certificate)(nil)
	if len(floors) > 0 {
		made = d.certificate(floors)
	}
	if err := d.jobs.Cascade.Decide(ctx, d.job, d.member, t, d.units, keep, made); err != nil {
		return err
	}
	d.signals.MarkDue(d.job) // to carry it out, unless the job was stopped meanwhile
	return nil
}

// accept says of each unit whether it is accepted: one that was drawn is not.
func (d *drawing) accept(is func(item int) bool) {
	t := d.stored
	t.Drawn, t.Accepted = int64(len(d.labels)), 0
	for i := range d.units {
		if d.units[i].Accepted = d.labels[i] == nil && is(i); d.units[i].Accepted {
			t.Accepted++
		}
	}
}

// carryOut lets units go on as was decided. One that is not of the trial, as its document came
// later, goes on to the next member.
func (j *judgement) carryOut(ctx context.Context, member int64, t *cascade.Trial, units []waiter) error {
	all, err := j.jobs.Cascade.TrialUnits(ctx, j.job, member, t)
	if err != nil {
		return err
	}
	accepted := make(map[int64]bool, t.Accepted)
	for _, u := range all {
		if u.Accepted {
			accepted[u.Index] = true
		}
	}

	judged := make([]cascade.Judged, len(units))
	for i, u := range units {
		judged[i] = cascade.Judged{Unit: u.unit, Answer: string(ascent.Ascend)}
		if accepted[u.Index] {
			judged[i].Answer = string(ascent.Accept)
		}
	}
	return j.wake(ctx, member, judged)
}

// wake lets units go on, some at a time.
func (j *judgement) wake(ctx context.Context, member int64, units []cascade.Judged) error {
	for some := range slices.Chunk(units, cascade.MaxJudged) {
		waiting, err := j.jobs.Cascade.Judge(ctx, j.job, ascent.Handle(int(member)), some)
		if err != nil {
			return err
		}
		j.scheduler.Enqueue(j.job, waiting)
		j.signals.NotifyWatchers(j.job)
	}
	return nil
}
