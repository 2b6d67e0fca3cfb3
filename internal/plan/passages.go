package plan

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/condition"
)

// A passage is what planning has to know of one: the elements of outputs of passages are
// such objects, and say more.
type passage struct {
	Relevance json.RawMessage `json:"relevance"` // a number, or nothing
	Size      int64           `json:"size"`      // characters that it takes in a prompt, all told
	Text      int64           `json:"text"`      // characters of its text among them
}

// charactersOfToken is how many characters of a passage are counted as a token.
const charactersOfToken = 4

// passagesOf returns the passages that the units of a level chose, and their number and
// tokens: a fourth of their characters, all told.
func passagesOf(level int, h History) ([]Element, condition.Size, error) {
	all, err := h.Items(level, pipeline.PassagesPath)
	size := condition.Size{Count: int64(len(all))}
	characters := int64(0)
	for i := range all {
		one, decodeErr := passageOf(&all[i])
		if decodeErr != nil {
			return nil, size, decodeErr
		}
		characters += one.Size
	}

	size.Tokens = characters / charactersOfToken
	return all, size, err
}

func passageOf(e *Element) (passage, error) {
	var one passage
	if err := json.Unmarshal(e.Value, &one); err != nil {
		return one, errs.New(errs.DataLoss, "an element of passages is none: %v", err)
	}
	return one, nil
}

// shown returns the characters that the passage takes in a prompt which has so many of its
// text, 0 for all.
func (p passage) shown(kept int64) int64 {
	if kept > 0 && p.Text > kept {
		return p.Size - p.Text + kept
	}
	return p.Size
}

// maxBatch bounds the JSON of a batch, in bytes: the record of a unit holds it.
const maxBatch = 31 << 10

// batchPassages makes the units of a step batches of passages: in the order that the stage
// asks for, at most its size in one, and no more of them than its tokens allow. A passage
// that is larger than that has a batch of its own.
func (s *Step) batchPassages(stage *pipeline.Stage, all []Element) error {
	by, sorted := stage.Ordering()
	if sorted {
		slices.SortStableFunc(all, func(a, b Element) int { return comparePassages(by, &a, &b) })
	}

	var batch []Element
	characters := int64(0)
	end := func() error {
		bin := make([]int64, 0, len(batch))
		values := make([]json.RawMessage, 0, len(batch))
		for _, e := range batch {
			bin, values = append(bin, e.Source), append(values, e.Value)
		}
		slices.Sort(bin)

		item, err := json.Marshal(values)
		if err != nil {
			return errs.New(errs.DataLoss, "passages of stage %s: %v", stage.Name, err)
		}

		// The unit takes an output once, however many of its passages are in the batch.
		s.Bins, s.Each = append(s.Bins, slices.Compact(bin)), append(s.Each, item)
		s.Units++
		batch, characters = nil, 0
		return nil
	}

	bytes := 0
	for i := range all {
		one, err := passageOf(&all[i])
		if err != nil {
			return err
		}

		size := one.shown(stage.Passage)
		full := int64(len(batch)) == stage.Size || bytes+len(all[i].Value)+len(batch) > maxBatch ||
			stage.Tokens > 0 && (characters+size)/charactersOfToken > stage.Tokens

		if len(batch) > 0 && full {
			if err := end(); err != nil {
				return err
			}
			bytes = 0
		}
		batch, characters, bytes = append(batch, all[i]), characters+size, bytes+len(all[i].Value)
	}
	return end()
}

// comparePassages compares passages by relevance or size, those without it last.
func comparePassages(by pipeline.Order, a, b *Element) int {
	field := func(e *Element) string {
		one, err := passageOf(e)
		switch {
		case err != nil:
			return ""
		case by.Field == "size":
			return strconv.FormatInt(one.Size, 10)
		}
		return string(one.Relevance)
	}

	x, y := field(a), field(b)
	switch {
	case x != "" && y != "":
		return by.Compare(x, y)
	case x != "":
		return -1
	case y != "":
		return 1
	}
	return 0
}
