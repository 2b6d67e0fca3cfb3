package gather

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/digest"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/prose"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
)

// findingLength is about how many characters a finding has.
const findingLength = 400

// leastFinding is how many bytes a paragraph has at least that is no heading.
const leastFinding = 60

// record counts a call of a tool, and keeps it for the trace.
func (g *gathering) record(name string, start time.Time, err error) {
	took := time.Since(start)
	g.calls.ToolCalled(took)

	c := mapreduce.Call{Kind: mapreduce.CallTool, Name: name, Latency: took}
	if err != nil {
		c.Error = err.Error()
	}

	g.calls.Record(c)
}

// isAnswered reports whether some evidence bears on the question.
func (g *gathering) isAnswered(ctx context.Context) bool {
	best, err := g.bestEvidence(ctx)
	return err == nil && best != nil
}

// bestEvidence returns the evidence with the place that bears most on the question; nil if
// none does, or if what each says of it by itself has but one of its words. Of equal ones it is the first.
func (g *gathering) bestEvidence(ctx context.Context) (best *output.Evidence, err error) {
	most := bearsOn

	for _, id := range g.found {
		e, err := unit.Evidence(ctx, g.calls, id)
		if err != nil {
			return nil, err
		}
		relevance := g.relevanceOf(e)
		if (relevance > most || best == nil && relevance >= most) && g.isFoundIn(e) {
			best, most = e, relevance
		}
	}

	return best, nil
}

// isFoundIn reports whether a text has a paragraph that says something to the question.
func (g *gathering) isFoundIn(e *output.Evidence) bool {
	x := &extract{evidence: e, query: g.query}
	return g.query.Empty() || g.query.BearsOn(x.findingSpan().In(string(e.Text)))
}

// Places of a text that say together whether it is about the question, and what one of them has to say of
// it at least: words of the question that stand here and there make no answer.
const (
	placesRead = 3
	leastPlace = 0.3
)

// relevanceOf says how much of the question a text is about: its title with the places that bear most on it.
// It is 0 if no place by itself says enough, or if nothing is asked.
func (g *gathering) relevanceOf(e *output.Evidence) float64 {
	text := string(e.Text)
	places := digest.Choose(text, g.query, placesRead, findingLength)
	if g.query.Empty() || len(places) == 0 {
		return 0
	}

	read, best := e.Metadata["title"], 0.0
	for _, place := range places {
		read += "\n" + place.In(text)
		best = max(best, place.Relevance)
	}
	if best < leastPlace {
		return 0
	}
	return max(best, g.query.Relevance(read))
}

// writeValue is the outcome of a stage that makes a value.
func (g *gathering) writeValue(ctx context.Context) (*agent.Result, error) {
	if g.task.MakesRecords() {
		return nil, agent.PermanentJob(fmt.Errorf("the provider rules makes passages or values of what tools bring; stage %s makes records", g.task.StageSpec.Name))
	}

	valueForm, err := unit.Form(g.task)
	if err != nil {
		return nil, err
	}

	s, err := schema.Shared(g.task.StageSpec.Schema)
	if err != nil || s.Kind != schema.KindRecord {
		return nil, agent.PermanentJob(fmt.Errorf("the schema of stage %s has to be of an object: %w", g.task.StageSpec.Name, err))
	}

	best, err := g.bestEvidence(ctx)
	if err != nil {
		return nil, err
	}

	x := &extract{unit: string(g.task.Unit), evidence: best, query: g.query}
	value := make(map[string]any)
	for i := range s.Properties {
		p := &s.Properties[i]
		switch {
		case p.Hints.Given != "":
		case p.Hints.Write == "found":
			value[p.Name] = best != nil
		case p.Hints.Write == "source" && best != nil:
			value[p.Name] = x.writeObject(p.Properties)
		case p.Hints.Write == "failure" && best == nil && len(g.failures) > 0:
			value[p.Name] = strings.Join(g.failures, "; ")
		default:
			value[p.Name] = nil
		}
	}

	raw, err := json.Marshal(value)
	if err != nil {
		return nil, agent.Permanent(err)
	}

	// The value may cite only what the extract has cited.
	own := []*output.Output{output.OfCitations(x.cited...)}
	out, err := output.NewValue(string(g.task.Unit), raw, valueForm, output.IssueAll(own), own)
	if err != nil {
		return nil, agent.Permanent(err)
	}

	return g.valueResult(out)
}

// An extract is what is written about one text.
type extract struct {
	unit     string
	evidence *output.Evidence
	query    *digest.Query
	cited    []output.Citation
}

// writeObject writes the properties of an object about the text.
func (x *extract) writeObject(properties []schema.Property) map[string]any {
	object := make(map[string]any)
	references := ""
	for _, p := range properties {
		switch p.Hints.Write {
		case "title":
			object[p.Name] = x.headlineOf()
		case "address":
			object[p.Name] = x.evidence.Metadata["url"]
		case "finding":
			object[p.Name] = x.bestParagraph()
		case "date":
			object[p.Name] = x.date()
		case "references":
			references = p.Name
		default:
			object[p.Name] = nil
		}
	}

	// The references are written last, when all properties have cited what they say.
	if references != "" {
		names := make([]string, 0, len(x.cited))
		for _, c := range x.cited {
			if name := c.ID.Full(); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		object[references] = names
	}

	return object
}

// cite cites bytes of the text, and returns them as a reader of the text sees them.
func (x *extract) cite(start, end int) string {
	text := string(x.evidence.Text)
	chars := len([]rune(text[:start]))
	quote := text[start:end]

	x.cited = append(x.cited, x.evidence.Cite(x.unit, ground.Span{
		ByteStart: start, ByteEnd: end, Start: chars, End: chars + len([]rune(quote)), Grade: ground.Exact, Places: 1,
	}))

	return prose.Plain(quote)
}

// bestParagraph is the paragraph that bears most on the question, or its first sentences if it is
// long. Headings, bylines, tags and the like are no findings if there is any paragraph with a whole sentence.
func (x *extract) bestParagraph() any {
	span := x.findingSpan()
	if span.End == 0 {
		return nil
	}
	return x.cite(span.Start, span.End)
}

// findingSpan returns where the finding stands; the zero Span if there is none.
func (x *extract) findingSpan() prose.Span {
	text := string(x.evidence.Text)
	code := prose.CodeBlocks(text)
	query := x.query.Rare(strings.Split(text, "\n\n"))
	best, most := prose.Span{}, -1.0
	elsewhere := false // the paragraph is what other pages say

	for at := 0; at < len(text); {
		end := endAt(text, at, "\n\n")
		start := at + len(text[at:end]) - len(strings.TrimLeft(text[at:end], " \t\r\n"))

		// No part of a paragraph bears on the question more than the whole, and what has no sentence says nothing.
		paragraph := prose.Span{Start: start, End: end}
		isOne := len(paragraph.In(text)) >= leastFinding && !isHeading(text, start, end) && !elsewhere
		if isOne && query.Relevance(paragraph.In(text)) > most {
			part, score := bestSentences(text, paragraph, code, query)
			if score > most && part.End > 0 {
				best, most = part, score
			}
		}

		elsewhere = toElsewhere.MatchString(strings.TrimSpace(paragraph.In(text)))
		at = end + 2
	}

	if most < 0 || most == 0 && !x.query.Empty() {
		places := digest.Choose(text, x.query, 1, findingLength)
		if len(places) == 0 {
			return prose.Span{}
		}
		return places[0].Span
	}
	return best
}

// toElsewhere matches the heading of a list of other pages, as sites have it beside what they say.
var toElsewhere = regexp.MustCompile(`^(?i:#*\s*(?:most (?:read|popular|viewed|shared|commented)|trending(?: now| stories| topics)?|popular(?: now| stories| posts)?|related(?: articles| stories| posts| content| links| coverage| news)?|` +
	`recommended(?: for you| reading| stories)?|you (?:may|might) also like|read (?:next|more|also)|next up(?: in .{1,40})?|the latest|latest(?: news| stories)?|recent (?:posts|articles|stories)|more (?:stories|news|from .{1,40}|in .{1,40}|on .{1,40}|about .{1,40}))\W*)$`)

// bestSentences returns the part of a paragraph that bears most on the question, of those that begin with a whole
// sentence, and how much it does. Of equal ones it is the first. It is the zero Span if there is none.
func bestSentences(text string, paragraph prose.Span, code []prose.Span, query *digest.Query) (best prose.Span, most float64) {
	sentences := prose.Sentences(paragraph.In(text))
	for i := range sentences {
		sentences[i].Start += paragraph.Start
		sentences[i].End += paragraph.Start
	}

	most = -1
	for i := range sentences {
		part := firstSentences(text, sentences[i:], code)
		if part.End == 0 {
			break
		}
		if score := query.Relevance(part.In(text)); score > most {
			best, most = part, score
		}
	}
	return best, most
}

// firstSentences returns the part of a text from the first whole one of some sentences on, about findingLength long,
// up to a whole sentence or to code. The first sentence is always taken; it is the zero Span if there is none.
func firstSentences(text string, sentences, code []prose.Span) prose.Span {
	var part prose.Span
	for _, s := range sentences {
		isCode := touches(code, s.Start, s.End)
		whole := !isCode && prose.IsSentence(s.In(text)) && !strings.HasSuffix(strings.TrimRight(s.In(text), "\"”’)*_"), "?")

		switch {
		case part.End > 0 && (isCode || s.End-part.Start > findingLength):
			return part
		case part.End == 0 && whole:
			part = s
		case whole:
			part.End = s.End
		}
	}
	return part
}
