package worker

import (
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A tooLargeError is why a unit's inputs are not assembled.
type tooLargeError struct{ bytes, most int }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("inputs of %d bytes; at most %d are taken", e.bytes, e.most)
}

// Pieces holds parts of inputs until the assignment that needs them comes, in
// the same stream. It is for one goroutine.
type pieces struct {
	most  int // bytes of one unit's inputs; all units together may hold pendingUnits times as much
	bytes int // held by all units
	of    map[mapreduce.Held]*pending
}

// pendingUnits is for how many of the largest units pieces may be held.
const pendingUnits = 4

// A pending is what is held for one attempt.
type pending struct {
	parts []mapreduce.InputPiece
	bytes int // received, kept or not
}

// add takes a piece. Beyond the bounds only its size is kept.
func (p *pieces) add(x mapreduce.InputPiece) {
	if p.of == nil {
		p.of = make(map[mapreduce.Held]*pending)
	}
	h := x.Held
	h.Running = false
	of := p.of[h]
	if of == nil {
		of = &pending{}
		p.of[h] = of
	}
	of.bytes += len(x.Data)
	if of.bytes <= p.most && p.bytes+len(x.Data) <= pendingUnits*p.most {
		of.parts = append(of.parts, x)
		p.bytes += len(x.Data)
	}
}

// assemble completes the inputs of the assignments that came in pieces, and
// returns what is wrong with those that cannot be, by index.
func (p *pieces) assemble(as []mapreduce.Assignment) map[int]error {
	var bad map[int]error
	for i := range as {
		if err := p.complete(&as[i]); err != nil {
			if bad == nil {
				bad = make(map[int]error)
			}
			bad[i] = err
		}
	}
	return bad
}

func (p *pieces) complete(a *mapreduce.Assignment) error {
	cut := slices.ContainsFunc(a.Inputs, func(in mapreduce.Input) bool { return in.Pieces > 0 })
	if !cut {
		return nil
	}
	parts, err := p.take(mapreduce.Held{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt})
	if err != nil {
		return err
	}
	for i := range a.Inputs {
		if err := join(&a.Inputs[i], i, parts); err != nil {
			return err
		}
	}
	return nil
}

// take returns the pieces held for an attempt, by input, and forgets them.
func (p *pieces) take(h mapreduce.Held) (map[int][]mapreduce.InputPiece, error) {
	of := p.of[h]
	if of == nil {
		return nil, nil
	}
	delete(p.of, h)
	byInput := make(map[int][]mapreduce.InputPiece)
	for _, x := range of.parts {
		byInput[x.Input] = append(byInput[x.Input], x)
		p.bytes -= len(x.Data)
	}
	if of.bytes > p.most {
		return nil, &tooLargeError{of.bytes, p.most}
	}
	return byInput, nil
}

// join sets the data of input i from its pieces, in whatever order they came.
func join(in *mapreduce.Input, i int, parts map[int][]mapreduce.InputPiece) error {
	if in.Pieces == 0 {
		return nil
	}
	own := parts[i]
	slices.SortStableFunc(own, func(a, b mapreduce.InputPiece) int { return a.Index - b.Index })
	size := 0
	for k, x := range own {
		if x.Index != k {
			return fmt.Errorf("input %d: piece %d is missing", i, k)
		}
		size += len(x.Data)
	}
	if len(own) != in.Pieces {
		return fmt.Errorf("input %d: has %d of %d pieces", i, len(own), in.Pieces)
	}
	in.Data = make([]byte, 0, size)
	for _, x := range own {
		in.Data = append(in.Data, x.Data...)
	}
	return nil
}
