package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
	"github.com/coditect/mapreduce/internal/outcome/gate"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// errUndecided is what an output is refused with of which values wait for a person.
var errUndecided = errors.New("values wait for a person")

// errDecidedOtherwise is what an output is refused with that is not as people have decided.
var errDecidedOtherwise = errors.New("the output is not what was found, as people have decided about it")

// unreviewed says why an output of a stage that has nobody decide is refused if it says that somebody
// has. A reduce passes on what its inputs say, which is checked against these.
func unreviewed(u *records.Unit, out *output.Output) error {
	if u.Kind == mapreduce.KindReduce || u.Kind == mapreduce.KindFinal {
		return nil
	}
	return check.Unreviewed(string(u.ID), out)
}

// verifyDecided says why an output is refused of a unit whose values a person may have to decide about. No
// worker is believed that somebody has: the output has to be what the unit waited with, with the decisions
// that are stored, and no value may wait.
func (s *subject) verifyDecided(ctx context.Context, data []byte) (why, err error) {
	if s.unit.Kind != mapreduce.KindMap || s.stage == nil || !s.stage.Review.IsSet() {
		return nil, nil
	}

	out, why := output.Decode(data)
	if why != nil {
		return why, nil
	}

	asks := func(found *output.Output) []mapreduce.WaitingValue {
		return gate.Asks(s.schema, s.stage.Review.Reasons(), gate.Seed(s.job, s.spec.Spec.Replay), found)
	}
	if !gate.IsHandle(s.unit.Woken) {
		if why := check.Unreviewed(string(s.unit.ID), out); why != nil {
			return why, nil
		}
		if open := asks(out); len(open) > 0 {
			return undecided(open), nil
		}
		return nil, nil
	}

	found, err := outputs.Held(ctx, s.reader, s.job, s.unit, s.unit.Woken)
	if err != nil {
		return nil, err
	}
	held, why := output.Decode(found)
	if why != nil {
		return why, nil
	}
	decided, err := s.jobs.Review.OfUnit(ctx, s.job, s.unit.Index)
	if err != nil {
		return nil, err
	}

	standing := outputs.Standing(s.schema, held, decided)
	if open := gate.Open(asks(held), standing); len(open) > 0 {
		accepted, err := s.isAccepted(ctx)
		if err != nil {
			return nil, err
		}
		if !accepted {
			return undecided(open), nil
		}
	}
	right, why := gate.Apply(s.schema, held, standing)
	if why != nil {
		return why, nil
	}
	return differ(right, out), nil
}

// isAccepted reports whether values of a unit stay as they were found about which nobody has decided, as the time
// for that is over.
func (s *subject) isAccepted(ctx context.Context) (bool, error) {
	if s.stage.Review.Then != waiting.Accept {
		return false, nil
	}
	call, err := s.jobs.View.WakeCall(ctx, s.job, s.unit.ID)
	if err != nil || call == nil || call.Handle != s.unit.Woken {
		return false, err
	}
	answer, err := gate.DecodeAnswer(call.Answer)
	return err == nil && answer.Over, nil //nolint:nilerr // what is no answer says nothing
}

// undecided is why an output is refused of which values wait.
func undecided(open []mapreduce.WaitingValue) error {
	return fmt.Errorf("%w: %d, the first is %s of record %s", errUndecided, len(open), open[0].Field, open[0].Record)
}

// differ says that an output is not the right one; nil if it is.
func differ(right, out *output.Output) error {
	a, err := right.Encode()
	if err != nil {
		return err
	}
	b, err := out.Encode()
	if err != nil {
		return err
	}

	if !bytes.Equal(a, b) {
		return errDecidedOtherwise
	}
	return nil
}
