package llm

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/worker/llm/answer"
	"github.com/coditect/mapreduce/worker/llm/internal/redact"
)

// A Reading is what the text of an answer comes to by its schema.
type Reading struct {
	Answer  json.RawMessage // that fits, in compact form; nil if nothing in the text does
	Repairs []answer.Repair // what was mended for that

	// The fields below are of a text in which nothing fits.
	Nearest json.RawMessage // what fits best; nil if the text holds no JSON
	Fault   error           // a *MismatchError: what does not fit of that
	Cut     bool            // the text breaks off
}

// Read reads the text of an answer, which may hold the answer among other things, with faults
// or in another shape (see package answer). What fits as it is costs no more than Check.
func (s *Schema) Read(text []byte) Reading {
	raw, err := s.Check(text)
	if err == nil {
		return Reading{Answer: raw}
	}

	found := answer.Find(string(text))
	if len(found) == 0 && s.wrap {
		found = []answer.Candidate{answer.Plain(string(text))}
	}

	if len(found) == 0 {
		begins := redact.ShortenLine(string(text[:min(len(text), 120)]))
		return Reading{Fault: &MismatchError{Faults: []Fault{{Message: fmt.Sprintf("it is not one JSON value, and begins %q", begins)}}, NoJSON: begins}}
	}

	return s.chooseReading(found)
}

// chooseReading returns what the best of several candidates comes to: of those that fit, the one
// that took the fewest repairs, and among these the last, as a model's last word. Lines that are
// an element each are read as one list.
func (s *Schema) chooseReading(found []answer.Candidate) Reading {
	var best, nearest *Reading
	faults := 0

	for _, c := range answer.Worthy(found) {
		r, n := s.readCandidate(c)
		// Of candidates that are equally good the last one counts.
		if r.Answer != nil && (best == nil || len(r.Repairs) <= len(best.Repairs)) {
			best = &r
		}
		if r.Answer == nil && (nearest == nil || n <= faults) {
			nearest, faults = &r, n
		}
	}

	if lines, ok := answer.Lines(found); ok && (best == nil || answer.IsWrapped(best.Repairs)) {
		if r, _ := s.readCandidate(lines); r.Answer != nil || r.Cut && best != nil {
			return r
		}
	}

	if best != nil {
		return *best
	}
	return *nearest
}

// readCandidate brings a candidate into the shape of the schema, and counts the faults that are
// left. What breaks off is no answer, even if what there is of it fits.
func (s *Schema) readCandidate(c answer.Candidate) (Reading, int) {
	v, repairs := s.shape.Align(c)
	raw, err := answer.Encode(v)
	if err != nil {
		return Reading{Fault: &MismatchError{Faults: []Fault{{Message: err.Error()}}}}, maxFaults
	}

	checked, err := s.Check(raw)
	if err == nil && !c.Unfinished {
		return Reading{Answer: checked, Repairs: repairs}, 0
	}

	r := Reading{Repairs: repairs, Nearest: raw, Fault: err, Cut: c.Unfinished}
	if err == nil {
		r.Nearest, r.Fault = checked, &MismatchError{Faults: []Fault{{Message: "it breaks off before its end"}}}
	}
	return r, countFaults(err)
}

func countFaults(err error) int { return len(faultsIn(err)) }

// Hinting returns the schema for answers of whose parts hints say more than it does.
func (s *Schema) Hinting(hints answer.Hints) (*Schema, error) {
	shape, err := answer.NewShape([]byte(s.Document()), hints)
	if err != nil {
		return nil, WrapError(BadSchema, err)
	}
	out := *s
	out.shape = shape
	return &out, nil
}

// Mends reports whether a correction of an answer may leave out what has no fault: see
// Tolerating.
func (s *Schema) Mends() bool { return s.tolerated != nil }

// Mend returns an answer, which may still not fit, with faults mended by a reply to a complaint
// of them. Nothing without a fault is taken from the reply, and nothing that makes more faults.
func (s *Schema) Mend(old, reply json.RawMessage, faults []Fault) json.RawMessage {
	was, err := answer.Decode(old)
	if err != nil {
		return old
	}

	now, err := answer.Decode(reply)
	if err != nil {
		return old
	}

	paths := make([]string, len(faults))
	for i, f := range faults {
		paths[i] = f.Path
	}

	// A change is better if it leaves fewer faults.
	mended := s.shape.Mend(was, now, slices.Compact(paths), func(now, before any) bool {
		return s.countIn(now) < s.countIn(before)
	})

	raw, err := answer.Encode(mended)
	if err != nil {
		return old
	}
	return raw
}

// countIn counts the faults of an answer.
func (s *Schema) countIn(v any) int {
	raw, err := answer.Encode(v)
	if err != nil {
		return maxFaults + 1
	}
	_, err = s.Check(raw)
	return countFaults(err)
}
