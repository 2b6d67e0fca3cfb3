// Package cascade keeps which answers of a member of a job's cascade are accepted.
//
// A trial is the units whose answers by one member wait to be accepted, with how sure each
// answer is, and later the decision about each. What always holds:
//
//  1. The units of a trial and their scores are stored before any of them is woken, and never
//     change. So the draws of a trial, which follow from them, are the same for whoever goes
//     on with it.
//  2. A trial is decided at most once, and no unit is accepted before it is. The decision about
//     each unit is stored before the trial says that it is decided.
//  3. A certificate that later jobs use is kept in the transaction that decides the trial which it rests on. What their
//     labels show of it changes in the transaction that decides their trial, and so does that it is dropped.
//     A trial that began with a certificate is decided by it, or has said before anything else was decided that it fell.
//  4. A unit goes on at most once by a decision: only if it is still parked under the handle
//     that the decision is about.
//
// Two orchestrators may see at the same time that a trial can begin or be decided. They come to
// the same, so it does not matter whose parts are stored. What a score is, and how a trial is
// decided, others know.
package cascade

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Store keeps trials.
type Store struct {
	db *records.DB
	*records.Records
}

// New returns the operations on the records of db.
func New(db *records.DB) *Store { return &Store{db, db.Records()} }

// A Trial is how far it is certified which answers of a member are accepted.
type Trial struct {
	Member, Oracle     string // as the stage names them
	Target, Confidence float64
	Seed               uint64
	Measures           []string // names of fields, or one empty name for whole records
	Units              int64    // that have scores
	Decided            bool
	Verdicts           []Verdict // by measure, once it is decided
	Drawn              int64     // units that were labelled
	Accepted           int64     // units whose answer is the member's
	// What the oracle took of those units that were labelled and of which it is known: tokens,
	// millionths of a US dollar, and how many they are.
	OracleTokens, OracleCostMicros, Priced int64
	// Certificate is that of an earlier job by which answers are accepted, as it was when the trial began; nil if the
	// trial draws its own. Fallen says that it did not hold, and that the trial draws its own nevertheless.
	Certificate    *Certificate
	CertificateAge int64 // when the trial began, in microseconds
	Fallen         bool
	// Unkept says that no certificate of it can be kept, as there are as many as may be: nothing is to be compared for one.
	Unkept bool

	parts int64
}

// A Verdict is what was certified by a measure.
type Verdict struct {
	First  int64  // so many units, in the order of their scores, may be accepted
	Least  uint32 // score of these
	Labels int64  // that the tests have used
	Right  int64  // of these
	Ended  string // why no more were tried
}

func (t *Trial) toStored() *storagev1.CascadeTrial {
	s := &storagev1.CascadeTrial{
		Member: t.Member, Oracle: t.Oracle, Target: t.Target, Confidence: t.Confidence, Seed: t.Seed, Measures: t.Measures,
		Units: t.Units, Parts: t.parts, Decided: t.Decided, Drawn: t.Drawn, Accepted: t.Accepted,
		OracleTokens: t.OracleTokens, OracleCostMicros: t.OracleCostMicros, Priced: t.Priced,
		Certificate: t.Certificate, CertificateAgeMicros: t.CertificateAge, Fallen: t.Fallen, Unkept: t.Unkept,
	}
	for _, v := range t.Verdicts {
		s.Verdicts = append(s.Verdicts, v.ToStored())
	}
	return s
}

// ToStored returns the verdict as it is kept.
func (v *Verdict) ToStored() *storagev1.CascadeVerdict {
	return &storagev1.CascadeVerdict{First: v.First, Least: v.Least, Labels: v.Labels, Right: v.Right, Ended: v.Ended}
}

func trialOf(s *storagev1.CascadeTrial) *Trial {
	t := &Trial{
		Member: s.Member, Oracle: s.Oracle, Target: s.Target, Confidence: s.Confidence, Seed: s.Seed, Measures: s.Measures,
		Units: s.Units, parts: s.Parts, Decided: s.Decided, Drawn: s.Drawn, Accepted: s.Accepted,
		OracleTokens: s.OracleTokens, OracleCostMicros: s.OracleCostMicros, Priced: s.Priced,
		Certificate: s.Certificate, CertificateAge: s.CertificateAgeMicros, Fallen: s.Fallen, Unkept: s.Unkept,
	}
	for _, v := range s.Verdicts {
		t.Verdicts = append(t.Verdicts, Verdict{First: v.First, Least: v.Least, Labels: v.Labels, Right: v.Right, Ended: v.Ended})
	}
	return t
}

// A Scored is a unit of a trial.
type Scored struct {
	Index    int64 // of the unit in its level
	Scores   []uint32
	Accepted bool // once the trial is decided
}

// maxCells bounds the scores of a part: with their units they fit a value of every store.
const maxCells = 16_000

// perPart is how many units a part has, each with so many scores.
func perPart(scores int) int { return max(1, min(1_000, maxCells/max(1, scores))) }

// Begin stores a trial of some units, in order, unless there is one of the member. If keep is not nil, and a
// certificate is kept there, the trial begins with it; if none is, and there is no room for one, it is unkept.
func (st *Store) Begin(ctx context.Context, id mapreduce.JobID, member int64, t *Trial, units []Scored, keep *Keeping) error {
	parts, err := st.putParts(ctx, id, member, func(before *storagev1.CascadeTrial) bool { return before == nil }, units)
	if err != nil {
		return err
	}
	t.Units, t.parts, t.Decided = int64(len(units)), parts, false

	return st.change(ctx, failpoint.Certify, id, member, func(tx store.Tx, before *storagev1.CascadeTrial) error {
		if before != nil {
			return nil
		}
		if keep != nil {
			if t.Certificate, err = st.read(ctx, tx, keep); err != nil {
				return err
			}
			if t.Unkept, err = st.isFull(ctx, tx, keep); err != nil {
				return err
			}
			t.Unkept = t.Unkept && t.Certificate == nil
		}
		if t.Certificate != nil {
			t.CertificateAge = max(0, st.NowMicros()-t.Certificate.MadeMicros)
		}

		tx.Set(st.Keys.Cascade(id, member).Trial(), records.Encode(t.toStored()))
		how := "how many of the answers are accepted is being certified"
		switch {
		case t.Certificate != nil:
			how = fmt.Sprintf("how many of the answers are accepted goes by the certificate of job %s, if it holds", t.Certificate.Job)
		case t.Unkept:
			how += fmt.Sprintf("; no certificate of it will be kept, as the tenant has %d: drop some", mapreduce.MaxCertificates)
		}
		st.note(tx, id, fmt.Sprintf("%s answered %s of a cascade: %s", t.Member, plural.Count(t.Units, "unit"), how))
		return nil
	})
}

// Decide stores the decision of a trial that draws its own labels, about the same units as Begin, unless it is decided.
// A certificate that is not nil is kept for later jobs, unless one is.
func (st *Store) Decide(ctx context.Context, id mapreduce.JobID, member int64, t *Trial, units []Scored, keep *Keeping, made *Certificate) error {
	if _, err := st.putParts(ctx, id, member, isDrawing, units); err != nil {
		return err
	}

	return st.change(ctx, failpoint.Certify, id, member, func(tx store.Tx, before *storagev1.CascadeTrial) error {
		if !isDrawing(before) {
			return nil
		}
		t.Decided = true
		tx.Set(st.Keys.Cascade(id, member).Trial(), records.Encode(t.toStored()))
		message := fmt.Sprintf("%d of %s of a cascade are accepted as %s answered them, after %d were compared with %s",
			t.Accepted, plural.Count(t.Units, "unit"), t.Member, t.Drawn, t.Oracle)
		if keep != nil && made != nil {
			kept, err := st.keep(ctx, tx, keep, made)
			if err != nil {
				return err
			}
			message += kept
		}
		st.note(tx, id, message)
		return nil
	})
}

// isDrawing reports whether a trial has begun that is not decided, and goes by no certificate.
func isDrawing(t *storagev1.CascadeTrial) bool {
	return t != nil && !t.Decided && (t.Certificate == nil || t.Fallen)
}

// putParts stores the units of a trial part by part, before it begins, and later with what is accepted. It does
// so while may says that of the trial.
func (st *Store) putParts(ctx context.Context, id mapreduce.JobID, member int64, may func(before *storagev1.CascadeTrial) bool, units []Scored) (parts int64, err error) {
	size := 1
	if len(units) > 0 {
		size = perPart(len(units[0].Scores))
	}

	for some := range slices.Chunk(units, size) {
		err := st.change(ctx, failpoint.Census, id, member, func(tx store.Tx, before *storagev1.CascadeTrial) error {
			if !may(before) {
				return nil
			}
			tx.Set(st.Keys.Cascade(id, member).Part(parts), records.Encode(encodePart(some)))
			return nil
		})
		if err != nil {
			return 0, err
		}
		parts++
	}
	return parts, nil
}

// change runs a transaction that changes a trial, which is nil if there is none, of a job that
// runs.
func (st *Store) change(ctx context.Context, step failpoint.Step, id mapreduce.JobID, member int64, fn func(store.Tx, *storagev1.CascadeTrial) error) error {
	return st.db.Update(ctx, step, func(tx store.Tx) error {
		ctl, err := st.Jobs.Control(ctx, tx, id) // a deletion clears it, so nothing is written behind that
		if err != nil {
			return err
		}
		if !mapreduce.JobState(ctl.State).Running() {
			return nil // whoever resumes it goes on with the trial
		}

		t := new(storagev1.CascadeTrial)
		found, err := records.Read(ctx, tx, st.Keys.Cascade(id, member).Trial(), t)
		if err != nil {
			return err
		}
		if !found {
			t = nil
		}
		return fn(tx, t)
	})
}

// note adds an event.
func (st *Store) note(tx store.Tx, id mapreduce.JobID, message string) {
	st.Jobs.AddCheckpoint(tx, id, &storagev1.Checkpoint{Kind: uint32(mapreduce.EventWoken), Message: records.ClipText(message)})
}

func encodePart(units []Scored) *storagev1.CascadePart {
	p := &storagev1.CascadePart{Accepted: make([]byte, (len(units)+7)/8)}
	before := int64(0)
	for i, u := range units {
		p.Units = append(p.Units, u.Index-before)
		p.Scores = append(p.Scores, u.Scores...)
		if u.Accepted {
			p.Accepted[i/8] |= 1 << (i % 8)
		}
		before = u.Index
	}
	return p
}

func decodePart(key []byte, p *storagev1.CascadePart, measures int) ([]Scored, error) {
	if len(p.Scores) != len(p.Units)*measures || len(p.Accepted)*8 < len(p.Units) {
		return nil, records.CorruptError(key, "it has %d units, %d scores by %d measures, and decisions about %d", len(p.Units), len(p.Scores), measures, len(p.Accepted)*8)
	}

	units := make([]Scored, len(p.Units))
	index := int64(0)
	for i := range units {
		index += p.Units[i]
		units[i] = Scored{Index: index, Scores: p.Scores[i*measures : (i+1)*measures], Accepted: p.Accepted[i/8]&(1<<(i%8)) != 0}
	}
	return units, nil
}

// Trial returns the trial of a member of a job's cascade, without its units; nil if there is none.
func (st *Store) Trial(ctx context.Context, id mapreduce.JobID, member int64) (*Trial, error) {
	var t *Trial
	err := st.db.View(ctx, func(tx store.Tx) error {
		t = nil
		s := new(storagev1.CascadeTrial)
		found, err := records.Read(ctx, tx.Snapshot(), st.Keys.Cascade(id, member).Trial(), s)
		if found {
			t = trialOf(s)
		}
		return err
	})
	return t, err
}

// TrialUnits returns the units of a trial, in order. Before it is decided none is accepted.
func (st *Store) TrialUnits(ctx context.Context, id mapreduce.JobID, member int64, t *Trial) ([]Scored, error) {
	units := make([]Scored, 0, t.Units)
	of := st.Keys.Cascade(id, member)
	r := store.Range{Begin: of.Part(0), End: of.Part(t.parts)} // a census that was not completed may have left more

	for more := true; more; {
		var page []Scored
		var behind []byte
		err := st.db.View(ctx, func(tx store.Tx) error {
			page = nil
			pairs, rest, err := tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: 16, Bytes: store.TargetTxSize})
			if err != nil {
				return err
			}

			for _, kv := range pairs {
				var p storagev1.CascadePart
				if err := records.Decode(kv.Key, kv.Value, &p); err != nil {
					return err
				}
				some, err := decodePart(kv.Key, &p, len(t.Measures))
				if err != nil {
					return err
				}
				page, behind = append(page, some...), store.Single(kv.Key).End
			}
			more = rest
			return nil
		})
		if err != nil {
			return nil, err
		}
		if units = append(units, page...); more {
			r.Begin = behind
		}
	}

	if int64(len(units)) != t.Units {
		return nil, records.CorruptError(st.Keys.Cascade(id, member).Trial(), "it is of %d units, and its parts have %d", t.Units, len(units))
	}
	if !t.Decided { // what a decision that was not completed has left does not count
		for i := range units {
			units[i].Accepted = false
		}
	}
	return units, nil
}

// A Judged is a unit that goes on.
type Judged struct {
	Unit   mapreduce.UnitID
	Answer string // what its next attempt is told
}

// MaxJudged bounds the units that Judge takes at once.
const MaxJudged = 200

// Judge makes units go on that are parked under a handle, and returns where they wait. Units
// that went on already, or were not parked under the handle, are left alone.
func (st *Store) Judge(ctx context.Context, id mapreduce.JobID, handle string, units []Judged) ([]records.Candidate, error) {
	var woken []records.Candidate
	err := st.db.Update(ctx, failpoint.Judge, func(tx store.Tx) error {
		woken = nil
		ctl, err := st.Jobs.Control(ctx, tx, id)
		if err != nil {
			return err
		}
		if !mapreduce.JobState(ctl.State).Running() {
			return nil
		}

		answers := make(map[string]int64)
		for _, j := range units {
			u, err := st.Units.Read(ctx, tx, id, j.Unit)
			if err != nil {
				return err
			}

			switch parked, err := st.Units.IsParkedUnder(ctx, tx, id, u, handle); {
			case err != nil:
				return err
			case parked:
				u.Woken = handle
				tx.Set(st.Keys.Queues(id).Woken(j.Unit), records.Encode(&storagev1.WakeCall{Handle: handle, Answer: []byte(j.Answer)}))
				st.Units.Release(tx, id, u)
				answers[j.Answer]++
			case u == nil || u.Woken != handle || !records.IsClaimable(u):
				continue
			}
			woken = append(woken, *records.CandidateOf(u))
		}

		if len(answers) > 0 {
			st.note(tx, id, describe(handle, answers))
			st.Jobs.WakeOthers(tx)
		}
		return nil
	})
	return woken, err
}

// describe says of how many units what was decided.
func describe(handle string, answers map[string]int64) string {
	parts := []string{handle}
	for _, answer := range slices.Sorted(maps.Keys(answers)) {
		parts = append(parts, fmt.Sprintf("%s: %s", plural.Count(answers[answer], "unit"), answer))
	}
	return strings.Join(parts, "; ")
}
