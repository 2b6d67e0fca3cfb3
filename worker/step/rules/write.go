package rules

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/text/digest"
	"github.com/coditect/mapreduce/internal/text/prose"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
)

// A writer writes values by extracts: the schema of the stage says with the hint write
// what stands where.
type writer struct{}

// maxThemes bounds the themes of so many passages that one unit reads.
func maxThemes(passages int) int { return min(6, 1+passages/3) }

// Run implements step.Runner.
func (writer) Run(ctx context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	form, err := unit.Form(task)
	if err != nil {
		return nil, err
	}

	w := &writing{task: task, query: digest.NewQuery(task.StageSpec.Query)}
	if err := w.read(); err != nil {
		return nil, err
	}

	value, err := w.value()
	if err != nil {
		return nil, agent.PermanentJob(err)
	}

	raw, err := json.Marshal(value)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}

	// Nothing that was written is believed: references are checked as those of a model are.
	out, err := output.NewValue(string(task.Unit), raw, form, output.IssueAll(w.given), w.given)
	if err != nil {
		return nil, agent.Permanent(err)
	}

	return unit.Valued(out)
}

// A writing is the value of one unit, as it is made.
type writing struct {
	task     *agent.Task
	docs     []payload.Document // that the unit reads; none if it reads outputs, or one document
	query    *digest.Query
	given    []*output.Output  // what may be cited
	passages []digest.Passage  // that the unit reads; none if it reads values
	findings []digest.Finding  // of values; of passages they are made when they are needed
	report   *digest.Report    // made once
	parts    digest.Parts      // that it has
	quotes   map[string]string // of what may be cited, by the names of the references; made once
}

// read reads what the unit was given.
func (w *writing) read() error {
	if w.task.StageSpec.Documents {
		return w.readDocuments()
	}

	given, passages, err := unit.Given(w.task)
	if err != nil {
		return err
	}

	w.given = given

	if w.task.StageSpec.Passages {
		for _, p := range passages {
			w.passages = append(w.passages, digest.Passage{Ref: p.ID.Full(), Text: p.Quote, Relevance: p.Relevance})
		}
		return nil
	}

	inputs, referred, err := unit.Inputs(w.task)
	if err != nil {
		return err
	}

	values, err := unit.Read(w.task, inputs, referred)
	if err != nil {
		return err
	}

	// A unit of an element works on that alone.
	if len(w.task.Item) > 0 {
		values = [][]byte{w.task.Item}
	}

	for _, raw := range values {
		var v any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			return agent.Permanent(err)
		}
		w.collect(v)
	}
	return nil
}

// readDocuments reads the texts of documents, which cannot be cited.
func (w *writing) readDocuments() error {
	if t := w.task.Text; t != nil {
		w.passages = []digest.Passage{{Text: string(t.Content[t.CoreStart:t.CoreEnd])}}
		return nil
	}

	all, err := unit.NewDirect(w.task, nil)
	if err != nil {
		return err
	}

	w.docs = all.Documents()
	for _, d := range w.docs {
		w.passages = append(w.passages, digest.Passage{Text: string(d.Text)})
	}

	return nil
}

// collect makes a finding of every object of a value that has texts and references: of the
// shortest text its topic, and of the longest what was found. Texts that have references of
// their own keep these alone; to any other all references of the object are put.
func (w *writing) collect(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			w.collect(item)
		}
	case map[string]any:
		if f, ok := findingOf(v); ok {
			if len(refs.FullIDs(f.Text)) == 0 {
				f.Text = w.citeSentences(f.Text, f.Refs)
			}
			w.findings = append(w.findings, f)
			return
		}

		// In sorted order, so that equal values give equal findings.
		for _, key := range slices.Sorted(maps.Keys(v)) {
			w.collect(v[key])
		}
	}
}

func findingOf(object map[string]any) (f digest.Finding, ok bool) {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		switch one := object[key].(type) {
		case string:
			if strings.TrimSpace(one) != "" {
				texts = append(texts, one)
			}
		case []any:
			for _, item := range one {
				text, isText := item.(string)
				if !isText {
					return f, false // it holds objects, which may be findings
				}
				f.Refs = appendRefs(f.Refs, text)
			}
		case map[string]any:
			return f, false
		}
	}

	// The shortest text is the topic, and the longest the finding.
	for _, text := range texts {
		f.Refs = appendRefs(f.Refs, text)
		if len(text) > len(f.Text) {
			f.Text = text
		}
		if f.Topic == "" || len(text) < len(f.Topic) {
			f.Topic = text
		}
	}

	if len(f.Refs) == 0 || f.Text == "" {
		return f, false
	}

	if enumLike(f.Topic, object) {
		f.Topic = firstText(object, texts)
	}
	return f, true
}

// citeSentences puts references behind each sentence of a text: those whose quotes have it, or else
// all. Bylines and the like are left out if there are whole sentences.
func (w *writing) citeSentences(text string, names []string) string {
	var whole, all []string
	for _, span := range prose.Sentences(text) {
		sentence := span.In(text)

		// A sentence that stands in the quotes of some references is cited with these
		// alone.
		behind := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.Contains(w.quoteOf(name), sentence) })
		if len(behind) == 0 {
			behind = names
		}

		cited := strings.TrimRight(sentence, ".! ") + " [" + strings.Join(behind, ", ") + "]."
		all = append(all, cited)
		if prose.IsSentence(sentence) {
			whole = append(whole, cited)
		}
	}

	if len(whole) > 0 {
		return strings.Join(whole, " ")
	}
	return strings.Join(all, " ")
}

// quoteOf returns the quote of a reference that the unit was given; "" if it has none.
func (w *writing) quoteOf(name string) string {
	if w.quotes == nil {
		w.quotes = make(map[string]string)
		for _, o := range w.given {
			for _, c := range o.Citations {
				w.quotes[c.ID.Full()] = c.Quote
			}
		}
	}
	return w.quotes[name]
}

// enumLike reports whether a topic is one word of small letters, as words of enums are,
// where other texts are there.
func enumLike(topic string, object map[string]any) bool {
	return len(object) > 2 && !strings.Contains(topic, " ") && strings.ToLower(topic) == topic
}

// firstText returns the text of an object that is named like a topic, or else the shortest
// of several words.
func firstText(object map[string]any, texts []string) string {
	for _, key := range []string{"theme", "topic", "title", "name"} {
		if text, ok := object[key].(string); ok && text != "" {
			return text
		}
	}

	best := texts[0]
	for _, text := range texts {
		if strings.Contains(text, " ") && (len(text) < len(best) || !strings.Contains(best, " ")) {
			best = text
		}
	}

	return best
}

// appendRefs appends the references that a text has in full, each once.
func appendRefs(to []string, text string) []string {
	for _, id := range refs.FullIDs(text) {
		if !slices.Contains(to, id.Full()) {
			to = append(to, id.Full())
		}
	}
	return to
}

// value is what the unit comes to.
func (w *writing) value() (any, error) {
	s, err := schema.Shared(w.task.StageSpec.Schema)
	if err != nil || w.task.StageSpec.Output == agent.Report && s.Kind != schema.KindRecord {
		w.parts = digest.Parts{Opening: true, Closing: true}
		r := w.composeReport()
		return joinDistinct(r.Opening, r.Body, r.Closing), nil
	}

	w.parts = partsOf(s)
	value := make(map[string]any)
	for i := range s.Properties {
		p := &s.Properties[i]
		if p.Hints.Given != "" {
			continue // it is filled in
		}
		v, ok := w.part(p)
		if !ok && p.Required {
			return nil, fmt.Errorf("the provider rules does not know what to write as %s: the schema has to say it with the hint write", p.Name)
		}
		if ok {
			value[p.Name] = v
		}
	}
	return value, nil
}

// partsOf returns the parts that a schema has beside the body of a report.
func partsOf(s *schema.Schema) (parts digest.Parts) {
	for i := range s.Properties {
		switch s.Properties[i].Hints.Write {
		case "opening", "summary":
			parts.Opening = true
		case "closing":
			parts.Closing = true
		}
	}
	return parts
}

// composeReport returns the report of all findings.
func (w *writing) composeReport() *digest.Report {
	if w.report == nil {
		findings := w.findings
		if w.passages != nil {
			findings = digest.EachPassage(w.query, w.passages, maxThemes(len(w.passages)))
		}

		r := digest.Compose(w.query, findings, w.parts)
		w.report = &r
	}
	return w.report
}

// part returns what stands in a property.
func (w *writing) part(p *schema.Property) (any, bool) {
	if p.Hints.Select {
		return w.selectDocuments(), true
	}

	if among := w.task.StageSpec.Choices[p.Name]; among != nil {
		return w.chosen(among), true
	}

	// What the schema says about selecting goes before what it says about writing.
	switch p.Hints.Write {
	case "query":
		return w.task.StageSpec.Query, true
	case "selection":
		return w.tellSelection(), true
	case "summary":
		return w.summary(), true
	case "opening":
		return w.composeReport().Opening, true
	case "evidence":
		return w.composeReport().Body, true
	case "closing":
		return w.composeReport().Closing, true
	case "topics":
		return emptyNotNull(w.composeReport().Topics), true
	case "themes":
		return w.listThemes(p), true
	case "contradictions":
		return emptyNotNull(digest.Contradictions(w.query, w.passages)), true
	case "relevance":
		return ofEnum(p, w.meanRelevance(), 0.5, 0.25), true
	}
	return nil, false
}

// summary is what a report opens with, what its sources differ in, and its body.
func (w *writing) summary() string {
	r := w.composeReport()
	return joinDistinct(r.Opening, strings.Join(digest.Differences(w.query, w.findings), " "), r.Body)
}

// joinDistinct joins the parts of a text that say what no part before them says: a report of few findings
// has the same one in several parts, for schemas that want them all.
func joinDistinct(parts ...string) string {
	var said []string
	for _, part := range parts {
		repeats := slices.ContainsFunc(said, func(before string) bool { return strings.Contains(before, part) })
		if part != "" && !repeats {
			said = append(said, part)
		}
	}
	return strings.Join(said, "\n\n")
}

// selectDocuments returns the documents that bear most on the question, by their ids. Of documents
// that bear on it alike, those go first that have less in common with the ones before, such
// as the country that they are of.
func (w *writing) selectDocuments() []map[string]any {
	most := len(w.docs)
	if n := w.task.StageSpec.Size; n > 0 {
		most = min(most, int(n))
	}

	seen := make(map[string]int) // values of metadata of the chosen
	chosen := make([]map[string]any, 0, most)
	left := slices.Clone(w.docs)

	// The relevance outweighs whatever documents have in common, which decides between
	// equal ones.
	for len(chosen) < most {
		best, bestScore := 0, -1.0
		for i, d := range left {
			score := 1000*w.query.Relevance(string(d.Text)) - float64(shared(d.Metadata, seen))
			if i == 0 || score > bestScore {
				best, bestScore = i, score
			}
		}

		chosen = append(chosen, map[string]any{"id": left[best].Document})
		for name, value := range left[best].Metadata {
			seen[name+"\x00"+value]++
		}

		left = slices.Delete(left, best, best+1)
	}

	return chosen
}

// chosen returns the agents whose names and descriptions bear on the question, and all of
// them if none does.
func (w *writing) chosen(among []pipeline.Candidate) []string {
	var all, chosen []string
	for _, c := range among {
		all = append(all, c.Name)
		if w.query.Relevance(c.Name+": "+c.Description) > 0 {
			chosen = append(chosen, c.Name)
		}
	}

	if chosen == nil {
		return all
	}
	return chosen
}

// shared counts the documents chosen before that have values of the metadata.
func shared(metadata map[string]string, seen map[string]int) (n int) {
	for name, value := range metadata {
		n += seen[name+"\x00"+value]
	}
	return n
}

// tellSelection says how documents were selected.
func (w *writing) tellSelection() string {
	return fmt.Sprintf("%d of %d documents: those that bear most on the question, and of equal ones those that have least in common.",
		len(w.selectDocuments()), len(w.docs))
}

func emptyNotNull(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// listThemes returns the themes of what the unit reads as the objects of a list.
func (w *writing) listThemes(p *schema.Property) []map[string]any {
	findings := w.findings
	if w.passages != nil {
		// Of passages the themes are looked for; values are themes as they are.
		findings = digest.Themes(w.query, w.passages, maxThemes(len(w.passages)))
	}

	list := make([]map[string]any, 0, len(findings))
	for _, f := range findings {
		object := make(map[string]any)
		if p.Items == nil {
			continue
		}

		for i := range p.Items.Properties {
			one := &p.Items.Properties[i]
			switch one.Hints.Write {
			case "topic":
				object[one.Name] = f.Topic
			case "finding":
				object[one.Name] = f.Text
			case "references":
				object[one.Name] = emptyNotNull(f.Refs)
			case "strength":
				object[one.Name] = ofEnum(one, float64(len(f.Refs)), 4, 2)
			}
		}

		list = append(list, object)
	}
	return list
}

// meanRelevance is that of the passages.
func (w *writing) meanRelevance() float64 {
	sum := 0.0
	for _, p := range w.passages {
		sum += p.Relevance
	}
	return sum / float64(max(1, len(w.passages)))
}

// ofEnum returns the first value of an enum for much, the last for little, and the one in
// the middle between; or the words for these.
func ofEnum(p *schema.Property, x, much, some float64) any {
	values := p.Enum
	if len(values) == 0 {
		values = []any{"much", "some", "little"}
	}

	switch {
	case x >= much:
		return values[0]
	case x >= some:
		return values[len(values)/2]
	}
	return values[len(values)-1]
}
