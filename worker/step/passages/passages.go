// Package passages is the step that chooses passages out of documents. It needs no
// provider: every worker chooses alike.
package passages

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/digest"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
	"github.com/coditect/mapreduce/worker/step"
)

// A Runner chooses passages.
type Runner struct{}

var _ step.Runner = Runner{}

// defaultLength is how many characters a passage has, if the stage does not say.
const defaultLength = 1000

// maxSummary bounds what is said of a passage, in characters.
const maxSummary = 2000

// Run implements step.Runner. A document that is a citation is one passage, whole; of any
// other the places are chosen that bear on the stage's query.
func (Runner) Run(ctx context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	if task.Text == nil || task.StageSpec == nil {
		return nil, agent.Permanent(errors.New("a unit that chooses passages has one document, and a stage"))
	}

	out, err := output.ChoosePassages(Choose(task))
	if err != nil {
		return nil, agent.Permanent(err)
	}

	return unit.Valued(out)
}

// Choose returns the passages of a task's text that bear most on the query of its stage, in
// the order of the text.
func Choose(task *agent.Task) []output.Passage {
	c := &chooser{task: task, text: task.Text, source: refs.FromMetadata(string(task.Text.Document), task.Text.Metadata)}
	return c.choose()
}

// A chooser chooses the passages of a unit.
type chooser struct {
	task   *agent.Task
	text   *protocol.Text
	source refs.Source
}

func (c *chooser) choose() []output.Passage {
	stage, core := c.task.StageSpec, string(c.text.Content[c.text.CoreStart:c.text.CoreEnd])
	query := digest.NewQuery(stage.Query)

	// A document that is a citation was chosen by whoever cites it.
	if c.text.Metadata[mapreduce.MetadataCitation] != "" {
		return c.wholePassage(query, core)
	}

	length := stage.Passage
	if length == 0 {
		length = defaultLength
	}

	var all []output.Passage
	for _, place := range digest.Choose(core, query, stage.Size, length) {
		all = append(all, c.passage(core, place.Start, place.End, place.Relevance, true))
	}

	return all
}

// wholePassage returns the text as one passage, with the relevance that whoever cites it
// says it has.
func (c *chooser) wholePassage(query *digest.Query, core string) []output.Passage {
	start, end := len(core)-len(strings.TrimLeft(core, " \t\r\n")), len(strings.TrimRight(core, " \t\r\n"))

	if start >= end {
		return nil
	}

	relevance, err := strconv.ParseFloat(strings.TrimSpace(c.text.Metadata[mapreduce.MetadataRelevance]), 64)
	ranked := err == nil && !math.IsNaN(relevance) && !math.IsInf(relevance, 0)
	if !ranked {
		relevance, ranked = query.Relevance(core), !query.Empty()
	}

	return []output.Passage{c.passage(core, start, end, relevance, ranked)}
}

// passage returns the passage at bytes [start, end) of the unit's core.
func (c *chooser) passage(core string, start, end int, relevance float64, ranked bool) output.Passage {
	t, quote := c.text, core[start:end]

	before := t.CoreStart + start
	// Places count from the beginning of the document, and not of what the unit was given.
	from := int(t.ByteOffset) + before
	at := int(t.CharOffset) + utf8.RuneCount(t.Content[:before])
	length := utf8.RuneCountInString(quote)

	p := output.Passage{Relevance: relevance, Ranked: ranked, Summary: c.summary()}
	p.Citation = output.Citation{
		ID:       refs.New(output.HashDocument(string(t.Document), t.SHA256), from, from+len(quote), quote),
		Document: string(t.Document), Unit: string(c.task.Unit),
		Start: int64(at), End: int64(at + length), ByteStart: int64(from), ByteEnd: int64(from + len(quote)),
		Quote: quote, Grade: string(ground.Exact), Label: c.source.Label(),
	}

	p.Size = int64(utf8.RuneCountInString(c.text.Metadata["title"])+utf8.RuneCountInString(p.Summary)+length) + output.PassageOverhead
	return p
}

// summary is what is said of the passage beside it.
func (c *chooser) summary() string {
	text := strings.Join(strings.Fields(c.text.Metadata["summary"]), " ")
	if utf8.RuneCountInString(text) > maxSummary {
		return string([]rune(text)[:maxSummary])
	}
	return text
}
