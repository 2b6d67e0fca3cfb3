package gather

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/digest"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/prose"
	"github.com/coditect/mapreduce/internal/text/rules/form"
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
// none does. Of equal ones it is the first.
func (g *gathering) bestEvidence(ctx context.Context) (best *output.Evidence, err error) {
	most := bearsOn

	for _, id := range g.found {
		e, err := unit.Evidence(ctx, g.calls, id)
		if err != nil {
			return nil, err
		}
		relevance := g.relevanceOf(e)
		if relevance > most || best == nil && relevance >= most {
			best, most = e, relevance
		}
	}

	return best, nil
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

	s, err := schema.Parse("schema", g.task.StageSpec.Schema)
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
			value[p.Name] = x.object(p.Properties)
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

	return g.valued(out)
}

// An extract is what is written about one text.
type extract struct {
	unit     string
	evidence *output.Evidence
	query    *digest.Query
	cited    []output.Citation
}

// object writes the properties of an object about the text.
func (x *extract) object(properties []schema.Property) map[string]any {
	object := make(map[string]any)
	references := ""
	for _, p := range properties {
		switch p.Hints.Write {
		case "title":
			object[p.Name] = x.title()
		case "address":
			object[p.Name] = x.evidence.Metadata["url"]
		case "finding":
			object[p.Name] = x.finding()
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

// cite cites bytes of the text, and returns them.
func (x *extract) cite(start, end int) string {
	text := string(x.evidence.Text)
	chars := len([]rune(text[:start]))
	quote := text[start:end]

	x.cited = append(x.cited, x.evidence.Cite(x.unit, ground.Span{
		ByteStart: start, ByteEnd: end, Start: chars, End: chars + len([]rune(quote)), Grade: ground.Exact, Places: 1,
	}))

	return quote
}

// title is the headline of what was found: of the title of the page and the headings above the
// finding, the one that bears most on the question, and of equal ones the one that is part of the title;
// or else the first line.
func (x *extract) title() any {
	span := x.titleSpan()
	if span.End == 0 {
		return nil
	}
	return x.cite(span.Start, span.End)
}

// titleSpan returns where the headline stands; the zero Span if there is none.
func (x *extract) titleSpan() prose.Span {
	text, title := string(x.evidence.Text), strings.TrimSpace(x.evidence.Metadata["title"])
	found := x.findingSpan()
	best, most := prose.Span{}, -1.0

	consider := func(s prose.Span, more float64) {
		if score := x.query.Relevance(s.In(text)) + more; score > most {
			best, most = s, score
		}
	}

	code := prose.CodeBlocks(text)
	for at := 0; at < len(text) && at <= found.Start; {
		end := endAt(text, at, "\n")
		line := headingOf(text, at, end)
		switch {
		case line.In(text) == "" || touches(code, at, end) || contents.MatchString(line.In(text)):
		case line.In(text) == title || !isHeading(text, at, end):
		case strings.Contains(title, line.In(text)):
			consider(line, partOfTitle)
		default:
			consider(line, 0)
		}
		at = end + 1
	}

	// The title of the page is worth less than a heading that is part of it.
	if at := strings.Index(text, title); title != "" && at >= 0 {
		consider(prose.Span{Start: at, End: at + len(title)}, partOfTitle/2)
	}

	if best.End == 0 {
		return firstLine(text, code)
	}
	return best
}

// contents matches the heading above a table of contents, which is that of no part.
var contents = regexp.MustCompile(`^(?i:(?:table of )?contents|on this page|navigation|menu)\W*$`)

// headingOf returns the line [at, end) of a text without the marks of a heading, and without pictures and badges
// at its end; it is empty if nothing else is there.
func headingOf(text string, at, end int) prose.Span {
	line := text[at:end]
	for _, mark := range []string{"[![", "![", "<img", "<a "} {
		line, _, _ = strings.Cut(line, mark)
	}

	bare := strings.Trim(line, "# \t\r*")
	start := at + strings.Index(line, bare)
	return prose.Span{Start: start, End: start + len(bare)}
}

// touches reports whether any of the spans, which are in order, has a byte of [start, end).
func touches(spans []prose.Span, start, end int) bool {
	i, _ := slices.BinarySearchFunc(spans, start, func(s prose.Span, at int) int { return cmp.Compare(s.End, at+1) })
	return i < len(spans) && spans[i].Start < end
}

// endAt returns where the part of a text that begins at at ends: before the next mark, or with the
// text. It copies nothing: a text may have very many lines.
func endAt(text string, at int, mark string) int {
	if n := strings.Index(text[at:], mark); n >= 0 {
		return at + n
	}
	return len(text)
}

// isHeading reports whether the line [at, end) of a text is a heading: it is marked as one, or it is
// short, stands by itself, and is no sentence.
func isHeading(text string, at, end int) bool {
	line := text[at:end]
	if strings.HasPrefix(line, "#") || prose.IsUnderlined(text, at, end) {
		return true
	}

	above, below := text[:at], text[end:]
	apart := (above == "" || strings.HasSuffix(above, "\n\n")) && (strings.HasPrefix(below, "\n\n") || strings.TrimSpace(below) == "")
	return apart && len(line) <= maxHeading && !prose.IsSentence(line) && !leadsOn(line) && !prose.IsMarked(line) && !prose.IsTags(line) && !prose.IsCaption(line)
}

// leadsOn reports whether a line is the beginning of what stands below it, or a part of it.
func leadsOn(line string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(line, " \t\r*_"))
	return strings.ContainsRune(":,;", last)
}

// maxHeading bounds a heading without a mark, in bytes.
const maxHeading = 200

// partOfTitle is how much rather a heading is the headline if the title of the page has it.
const partOfTitle = 0.1

// firstLine returns the first line of a text that says something and is no code, without the marks of a
// heading; the zero Span if there is none.
func firstLine(text string, code []prose.Span) prose.Span {
	for at := 0; at < len(text); {
		end := endAt(text, at, "\n")
		if line := headingOf(text, at, end); line.Start < line.End && !touches(code, at, end) {
			return line
		}
		at = end + 1
	}
	return prose.Span{}
}

// finding is the paragraph that bears most on the question, or its first sentences if it is
// long. Headings, bylines, tags and the like are no findings if there is any paragraph with a whole sentence.
func (x *extract) finding() any {
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

	for at := 0; at < len(text); {
		end := endAt(text, at, "\n\n")
		start := at + len(text[at:end]) - len(strings.TrimLeft(text[at:end], " \t\r\n"))

		// Whatever a paragraph without a sentence is, it says nothing.
		paragraph := prose.Span{Start: start, End: end}
		if score := query.Relevance(paragraph.In(text)); len(paragraph.In(text)) >= leastFinding && !isHeading(text, start, end) && score > most && firstSentences(text, paragraph, code).End > 0 {
			best, most = paragraph, score
		}
		at = end + 2
	}

	if most < 0 || most == 0 && !x.query.Empty() {
		places := digest.Choose(text, x.query, 1, findingLength)
		if len(places) == 0 {
			return prose.Span{}
		}
		return places[0].Span
	}
	return firstSentences(text, best, code)
}

// firstSentences returns the part of a paragraph from its first whole sentence on, about findingLength long,
// up to a whole sentence or to code. The first sentence is always taken; it is the zero Span if there is none.
func firstSentences(text string, paragraph prose.Span, code []prose.Span) prose.Span {
	var part prose.Span
	for _, s := range prose.Sentences(paragraph.In(text)) {
		s.Start, s.End = s.Start+paragraph.Start, s.End+paragraph.Start
		isCode := touches(code, s.Start, s.End)
		whole := !isCode && prose.IsSentence(s.In(text))

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

// dated is how far into a text its own date is looked for, in bytes.
const dated = 2000

// date is the first date of the text, or null.
func (x *extract) date() any {
	text := string(x.evidence.Text)
	day := schema.Property{Name: "date", Type: schema.String, Format: schema.Date}

	for _, s := range form.Of(&day)(text, 0, min(len(text), dated), format.NumberStyle{}) {
		if iso, ok := format.ParseDate(text[s.Start:s.End]); ok {
			x.cite(s.Start, s.End)
			return iso
		}
	}
	return nil
}
