package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// A Passage is a place of a document that was chosen for a query.
type Passage struct {
	Citation          // of the passage, whole
	Relevance float64 // to the query; by whoever chose it, higher is more
	Ranked    bool    // Relevance is known
	Summary   string  // what is said of the passage beside it; may be empty
	Size      int64   // characters that it takes in a prompt, all told
}

// A passageElement is a passage in the list that a unit which chooses passages comes to.
type passageElement struct {
	Passage   string   `json:"passage"` // the reference in full
	Relevance *float64 `json:"relevance,omitempty"`
	Size      int64    `json:"size"`
	Text      int64    `json:"text"` // characters of the passage
	Summary   string   `json:"summary,omitempty"`
}

// PassageOverhead is how many characters a passage takes in a prompt besides its title,
// its summary and its text.
const PassageOverhead = 100

// ChoosePassages makes the output of a unit of the passages that it chose.
func ChoosePassages(all []Passage) (*Output, error) {
	o := &Output{}
	list := make([]passageElement, 0, len(all))
	for _, p := range all {
		o.Cite(p.Citation)
		e := passageElement{Passage: p.ID.Full(), Size: p.Size, Text: p.End - p.Start, Summary: p.Summary}
		if p.Ranked {
			e.Relevance = &p.Relevance
		}
		list = append(list, e)
	}

	raw, err := json.Marshal(map[string]any{"passages": list})
	if err != nil {
		return nil, fmt.Errorf("output: passages: %w", err)
	}
	o.Value, err = jsonvalue.Canonical(raw)
	return o, err
}

// errPassages is what is refused as passages.
var errPassages = errors.New("output: these are no passages")

// Passages returns the passages that a unit reads: those of a batch, which is a JSON list
// of them, or without a batch all that the inputs came to. The most relevant come first,
// and otherwise they are in the order of the inputs.
func Passages(batch []byte, inputs []*Output) ([]Passage, error) {
	var all []Passage
	cited := make(map[merge.Citation]Citation)
	for _, in := range inputs {
		maps.Copy(cited, in.Citations)
		if batch != nil {
			continue
		}

		var chosen struct {
			Passages json.RawMessage `json:"passages"`
		}
		if err := json.Unmarshal(in.Value, &chosen); err != nil {
			return nil, fmt.Errorf("%w: %w", errPassages, err)
		}
		some, err := passagesIn(chosen.Passages, in.Citations)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}

	if batch != nil {
		var err error
		if all, err = passagesIn(batch, cited); err != nil {
			return nil, err
		}
	}

	// The sort is stable, so those of equal relevance keep the order of the inputs.
	slices.SortStableFunc(all, func(a, b Passage) int {
		switch {
		case a.Ranked && b.Ranked && a.Relevance != b.Relevance:
			if a.Relevance > b.Relevance {
				return -1
			}
			return 1
		case a.Ranked == b.Ranked:
			return 0
		case a.Ranked:
			return -1
		}
		return 1
	})
	return all, nil
}

// passagesIn reads a list of passages, whose citations are given.
func passagesIn(raw []byte, cited map[merge.Citation]Citation) ([]Passage, error) {
	var list []passageElement
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("%w: %w", errPassages, err)
	}

	all := make([]Passage, len(list))
	for i, e := range list {
		id, ok := refs.Parse(e.Passage)
		// A passage is only what one of the inputs cites.
		c, given := cited[merge.Citation(id[:])]
		if !ok || !given {
			return nil, fmt.Errorf("%w: %.80q was not given", errPassages, e.Passage)
		}
		all[i] = Passage{Citation: c, Summary: e.Summary, Size: e.Size}
		if e.Relevance != nil {
			all[i].Relevance, all[i].Ranked = *e.Relevance, true
		}
	}
	return all, nil
}

// OfPassages returns an output that has the citations of passages, and nothing else: what
// a unit which reads them may cite.
func OfPassages(all []Passage) *Output {
	o := &Output{}
	for _, p := range all {
		o.Cite(p.Citation)
	}
	return o
}
