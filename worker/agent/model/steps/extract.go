package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/pack"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/agent/model/found"
	"github.com/coditect/mapreduce/worker/agent/model/prompt"
	"github.com/coditect/mapreduce/worker/agent/unit"
)

// A stretch is the part of a unit's text that one call reads: bytes of its
// Content, with the core that is the stretch's own.
type stretch struct {
	start, end         int
	coreStart, coreEnd int
	name               string // "2.1", of a part of a part; "" is the whole
}

// Bounds of splitting. A unit of parts that are still too large has something
// else the matter with it.
const (
	minPart  = 48 // tokens
	maxParts = 64 // calls of one unit
)

// An extraction is a map unit under way.
type extraction struct {
	*attempt
	mapper  *unit.Mapper
	system  string             // what the agent is told
	whole   *merge.Accumulator // of the document's one record
	records int64
	reason  string
	calls   int
	tokens  int64       // of all answers that were taken; token.Unknown if one was not counted
	told    string      // what the pipeline says of the document
	shown   model.Pages // that the model sees beside the text
}

// runExtract runs a map unit.
func (s *attempt) runExtract(ctx context.Context) (*agent.Result, error) {
	t := s.Task.Text
	x := &extraction{attempt: s, mapper: unit.NewMapper(s.Task, s.Schema), system: s.System}
	var err error
	if x.told, err = s.OwnPrompt(s.Mapping, model.DocumentOf(t)); err != nil {
		return nil, err
	}

	if x.shown, err = s.showPages(ctx); err != nil {
		return nil, err
	}
	if err := x.readAll(ctx); err != nil {
		return nil, err
	}

	res, err := x.mapper.Result(x.reason)
	if errors.Is(err, check.ErrSchema) {
		return nil, errors.Join(err, model.NoteRefused(ctx, s.Calls))
	}
	if err != nil {
		return nil, err
	}

	res.Size, res.Errors = x.tokens, s.Notes
	return res, nil
}

// readAll has all of the unit's text read.
func (x *extraction) readAll(ctx context.Context) error {
	t := x.Task.Text
	all := stretch{end: len(t.Content), coreStart: t.CoreStart, coreEnd: t.CoreEnd}
	err := x.readStretch(ctx, all)
	if x.hideRefused(err) {
		err = x.readStretch(ctx, all)
	}
	if err != nil {
		return err
	}

	if x.whole != nil {
		x.mapper.Add(0, *x.whole)
	}
	return nil
}

// readStretch has a stretch read, in parts if it is too large as it is.
func (x *extraction) readStretch(ctx context.Context, at stretch) error {
	if x.calls++; x.calls > maxParts {
		return model.TooLarge("it was split into %d parts, and they are still too large", maxParts)
	}

	err := x.takeStretch(ctx, at)
	if !model.IsTooLarge(err) {
		return err
	}

	parts, why := x.splitStretch(at)
	if parts == nil {
		return fmt.Errorf("%s: %w", why, err)
	}

	x.Notes = append(x.Notes, fmt.Sprintf("%s: split into %d parts: %v", x.nameOf(at), len(parts), err))
	// Parts are read in order, so that the records keep theirs.
	for _, part := range parts {
		if err := x.readStretch(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// nameOf returns the name that a part would have as a unit.
func (x *extraction) nameOf(at stretch) string {
	if at.name == "" {
		return string(x.Task.Unit)
	}
	return string(x.Task.Unit) + "_part_" + strings.ReplaceAll(at.name, ".", "_part_")
}

// splitStretch cuts a stretch in two, or a little more, with some context around each.
func (x *extraction) splitStretch(at stretch) (parts []stretch, why string) {
	core := string(x.Task.Text.Content[at.coreStart:at.coreEnd])
	size := x.Agent.Count.Count(core)
	if size < minPart {
		return nil, fmt.Sprintf("even %d tokens of the document are too many beside instructions and schema; ask a model with a larger context window", size)
	}

	// In tokens: the parts share no more than an eighth of the text.
	overlap := min(200, size/8)
	pieces, err := pack.Cut(core, pack.Options{MaxTokens: size/2 + overlap + 1, Overlap: overlap, Counter: x.Agent.Count})
	if err != nil || len(pieces) < 2 {
		return nil, fmt.Sprintf("a text of %d tokens cannot be split", size)
	}

	for i, p := range pieces {
		parts = append(parts, stretch{
			start: at.coreStart + p.Start, end: at.coreStart + p.End,
			coreStart: at.coreStart + p.CoreStart, coreEnd: at.coreStart + p.CoreEnd,
			name: strings.TrimPrefix(fmt.Sprintf("%s.%d", at.name, i), "."),
		})
	}
	return parts, ""
}

// takeStretch asks the model to read a stretch in one answer, and adds its records.
func (x *extraction) takeStretch(ctx context.Context, at stretch) error {
	content := string(x.Task.Text.Content)
	text := prompt.Passage{
		Document: string(x.Task.Text.Document), Part: at.name, Told: x.told,
		Before: content[at.start:at.coreStart], Core: content[at.coreStart:at.coreEnd], After: content[at.coreEnd:at.end],
	}
	if n := x.Task.Text.Chunks; at.name == "" && n > 1 {
		text.Part = fmt.Sprintf("%d of %d", x.Task.Text.ChunkIndex+1, n)
	}

	r := &answerReading{form: x.Form, task: x.Task, aligner: unit.Aligner(x.Task.Text, at.start, at.end), shown: x.shown.Numbers}
	system, answer := x.system, x.Form.Answer
	if r.short = x.isShort(text, x.shown); r.short {
		system, answer = x.ShortSystem, x.Short
	}
	if err := x.askGleaning(ctx, x.PassageRequest(system, answer, text, x.shown), r); err != nil {
		return err
	}

	if r.note != "" && !slices.Contains(x.Notes, r.note) {
		x.Notes = append(x.Notes, r.note)
	}

	// One answer that was not counted leaves the sum unknown.
	if r.tokens < 0 || x.tokens < 0 {
		x.tokens = token.Unknown
	} else {
		x.tokens += r.tokens
	}

	base := int(x.Task.Text.ByteOffset)
	for _, rec := range r.records {
		if x.Schema.Kind == schema.KindRecords && !rec.BeginsWithin(base+at.coreStart, base+at.coreEnd) {
			continue // it is the neighbour's
		}
		x.addRecord(rec)
	}

	if x.records == 0 {
		x.reason = r.reason
	} else {
		x.reason = ""
	}

	return nil
}

// addRecord takes a record.
func (x *extraction) addRecord(rec found.Record) {
	if x.Schema.Kind == schema.KindRecords {
		x.mapper.Add(x.records, x.mapper.Accumulate(x.records, rec.Values, rec.Missing))
		x.records++
		return
	}

	a := x.mapper.Accumulate(0, rec.Values, rec.Missing)
	if x.whole != nil {
		a = merge.Merge(*x.whole, a)
	}
	x.whole, x.records = &a, 1
}

// An answerReading holds the records of an answer after its quotes were looked for.
type answerReading struct {
	form    *form.Form
	task    *agent.Task
	aligner ground.Unit
	short   bool // it has values alone
	records []found.Record
	reason  string   // why there are none
	note    string   // why quotes were looked for in the chunk alone, if so
	faults  []string // what is wrong with the answer, for its author
	shown   []int    // pages that the model saw
	tokens  int64    // of the answer, see llm.Response.Written
}

// countFound counts the values whose quotes stand in the document.
func (r *answerReading) countFound() (n int) {
	for _, rec := range r.records {
		for _, v := range rec.Values {
			if len(v.Places) > 0 {
				n++
			}
		}
	}
	return n
}

// readAnswer takes an answer.
func (r *answerReading) readAnswer(ctx context.Context, raw []byte) error {
	answers, none, err := r.form.ReadAnswer(raw)
	if err != nil {
		return err
	}

	r.reason = found.Line(none)
	found.Look(r.form, answers, string(r.task.Text.Content))
	return r.place(ctx, answers)
}

// lineOf returns the line of the unit's text that a place begins in; what stands there if the unit did
// not read the place.
func (r *answerReading) lineOf(at unit.Place) string {
	content := string(r.task.Text.Content)
	from := at.ByteStart - int(r.task.Text.ByteOffset)
	if from < 0 || from > len(content) {
		return at.Quote
	}
	line := content[strings.LastIndexByte(content[:from], '\n')+1:]
	line, _, _ = strings.Cut(line, "\n")
	return strings.Join(strings.Fields(line), " ")
}
