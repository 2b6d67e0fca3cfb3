package steps

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent/model/found"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm"
)

// What a model is asked of a reduce. A question is about one field of one record,
// and its options are all values that were found, with the quotes behind them.
const (
	askChoose = "choose" // which value is right
	askWrite  = "write"  // one text of several
	askSame   = "same"   // whether two elements of a list mean the same
)

// A question asks for the value of one field of one record that the schema leaves open.
type question struct {
	kind    string
	ask     string // the question without its options, as the model reads it
	entry   int
	field   schema.Field
	options []option
	yes     func() // of askSame: makes the options one
}

// An option is a value that was found.
type option struct {
	key     string // of its candidate; "" of a text that a model wrote
	value   any
	refs    []string
	weight  int
	decided bool // by a model, in a call before
	said    float64
	why     string
	shown   string      // with its evidence, but for its number
	order   merge.Order // of the record in which it was found first
}

func (o option) optionText(n int) string { return fmt.Sprintf("option %d: %s\n", n, o.shown) }

func (q *question) questionText() string {
	var b strings.Builder
	b.WriteString(q.ask)
	for i, o := range q.options {
		b.WriteString(o.optionText(i + 1))
	}
	return b.String()
}

// listQuestions returns the questions that the schema leaves open in the merged entries.
func (m *mergeRun) listQuestions() []*question {
	var all []*question
	for i := range m.out.Entries {
		e := &m.out.Entries[i]
		if len(e.Members) < 2 {
			continue // it stands in the output of its map unit
		}

		known := output.Derived(m.Schema, e.Accumulator, m.out.Citations)
		resolved := merge.Resolve(m.Schema, known)

		for _, f := range known.Fields {
			// Values without evidence are not asked about, nor is a field with one value
			// left.
			p := m.Schema.Field(f.Path)
			found := verifiedCandidates(f)
			if p == nil || len(found) < 2 {
				continue
			}

			q := &question{entry: i, field: schema.Field{Path: f.Path, Property: p}}
			for _, c := range found {
				q.options = append(q.options, m.candidateOption(c))
			}
			all = append(all, m.fieldQuestions(q, &resolved)...)
		}
	}

	return all
}

// verifiedCandidates are the candidates that something is cited for, in the order in which
// they were seen.
func verifiedCandidates(f merge.Field) []merge.Candidate {
	all := slices.DeleteFunc(slices.Clone(f.Candidates), func(c merge.Candidate) bool {
		return !slices.ContainsFunc(c.Mentions, func(m merge.Mention) bool {
			return len(m.Citations) > 0 && (m.Derived == nil || m.Derived.Fault == "")
		})
	})
	slices.SortStableFunc(all, func(a, b merge.Candidate) int { return firstOf(a).Compare(firstOf(b)) })
	return all
}

func firstOf(c merge.Candidate) merge.Order {
	first := c.Mentions[0].First
	for _, m := range c.Mentions[1:] {
		if m.First.Compare(first) < 0 {
			first = m.First
		}
	}
	return first
}

// fieldQuestions returns the questions about one field, if anything is open.
func (m *mergeRun) fieldQuestions(q *question, r *merge.Result) []*question {
	p := q.field.Property
	switch {
	case p.Type == schema.Array && p.Merge() == hint.MergeUnion:
		return m.pairQuestions(q, r)
	case p.Type == schema.Array, p.Type == schema.Map, p.Merge() == hint.MergeSum, p.Merge() == hint.MergeConcat:
		return nil // every value counts
	case isProse(q):
		q.kind = askWrite
	case m.Merge == settings.MergeModel || isUndecided(q.field.Path, r):
		q.kind = askChoose
	default:
		return nil
	}

	q.ask = m.wordQuestion(q, r)
	return []*question{q}
}

// wordQuestion words a question without its options.
func (m *mergeRun) wordQuestion(q *question, r *merge.Result) string {
	words := "field " + q.field.Path
	if d := q.field.Property.Description; d != "" {
		words += " (" + found.Line(d) + ")"
	}
	if len(r.Key) > 0 {
		words += ", record " + shownValue(m.issued, r.Key)
	}
	return words + "\n"
}

// proseLength is from where on a text is taken for one that can be merged with
// others, in characters.
const proseLength = 80

// isProse reports whether the values are texts that the schema leaves open how to
// merge.
func isProse(q *question) bool {
	p := q.field.Property
	if p.Type != schema.String || p.Format != "" || p.Enum != nil || p.Hints.Merge != "" || len(p.Hints.Values) > 0 {
		return false
	}
	return slices.ContainsFunc(q.options, func(o option) bool {
		text, _ := o.value.(string)
		return len([]rune(text)) >= proseLength
	})
}

// lead is the factor by which the first value must lead the second for a vote to be
// decided.
const lead = 2

// isUndecided reports whether a vote was taken about a field, and was close.
func isUndecided(path string, r *merge.Result) bool {
	i := slices.IndexFunc(r.Conflicts, func(c merge.Conflict) bool { return c.Field == path })
	if i < 0 {
		return false
	}

	c := r.Conflicts[i]
	if c.Strategy != hint.MergeVote && c.Strategy != hint.MergeConfidence || len(c.Candidates) < 2 {
		return false
	}

	weight := func(o merge.Choice) float64 {
		// A choice without citations has no weight, whatever its votes.
		if len(o.Citations) == 0 {
			return 0
		}
		return o.Confidence * float64(o.Count)
	}

	return weight(c.Candidates[0]) < lead*weight(c.Candidates[1])
}

// maxPairs bounds the pairs of one list that are asked about.
const maxPairs = 200

// pairQuestions asks about elements of a list that look alike.
func (m *mergeRun) pairQuestions(q *question, r *merge.Result) []*question {
	var all []*question

	ask := m.wordQuestion(q, r)
	words := make([][]string, len(q.options))
	for i, o := range q.options {
		words[i] = wordsOf(fmt.Sprint(o.value))
	}

	for i := range q.options {
		for j := i + 1; j < len(q.options) && len(all) < maxPairs; j++ {
			if textsAlike(words[i], words[j]) {
				one := *q
				one.kind, one.ask, one.options = askSame, ask, []option{q.options[i], q.options[j]}
				one.yes = func() { m.joinElements(&one) }
				all = append(all, &one)
			}
		}
	}

	return all
}

// wordsOf are the words of a text in lower case, each once, sorted.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(format.Fold(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	slices.Sort(words)
	return slices.Compact(words)
}

// textsAlike reports whether two texts share half of their words, or begin most of
// their words alike.
func textsAlike(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	same := 0
	for _, w := range a {
		if slices.ContainsFunc(b, func(v string) bool { return v == w || wordStem(v) == wordStem(w) }) {
			same++
		}
	}
	return 2*same >= max(len(a), len(b))
}

// wordStem is the beginning of a word, which is the same for many of its forms and
// abbreviations.
func wordStem(w string) string {
	const length = 4
	if r := []rune(w); len(r) > length {
		return string(r[:length])
	}
	return w
}

// Bounds of the text of an option.
const (
	maxEvidence  = 3   // quotes
	maxQuote     = 300 // characters of each
	maxValueText = 4000
)

// candidateOption shows a candidate with its evidence.
func (m *mergeRun) candidateOption(c merge.Candidate) option {
	o := option{key: c.Key, value: c.Value, weight: len(c.Mentions), order: firstOf(c)}

	var b strings.Builder
	b.WriteString(shownValue(m.issued, c.Value))

	for _, mention := range c.Mentions {
		// A quote is shown once, and only as many as fit.
		for _, id := range mention.Citations {
			name := m.issued.Name(id)
			if name == "" || slices.Contains(o.refs, name) || len(o.refs) == maxEvidence {
				continue
			}
			o.refs = append(o.refs, name)
			fmt.Fprintf(&b, "\n  [%s] %s", name, quoteShort(m.out.Citations[id].Quote, maxQuote))
		}
	}

	if n := len(c.Mentions); n > maxEvidence {
		fmt.Fprintf(&b, "\n  found at %d places", n)
	}

	o.shown = b.String()
	return o
}

// recordOption shows an entity by the values of its fields.
func (m *mergeRun) recordOption(e *output.Entry) option {
	known := e.Accumulator
	if m.out != nil { // which there is once entities are one
		known = output.Derived(m.Schema, known, m.out.Citations)
	}

	r := merge.Resolve(m.Schema, known)

	var b strings.Builder
	fmt.Fprintf(&b, "of %d documents", len(r.Sources))
	for _, f := range m.Schema.Fields() {
		if v, ok := r.Values[f.Path]; ok {
			fmt.Fprintf(&b, "\n  %s: %s", f.Path, shorten.Text(shownValue(m.issued, v), maxQuote))
		}
	}

	return option{shown: b.String()}
}

// quoteShort writes a text as JSON, shortened.
func quoteShort(text string, most int) string {
	raw, _ := json.Marshal(shorten.Text(text, most)) // a string cannot fail
	return string(raw)
}

// shownValue writes a value, with ids as they are spelled to the model.
func shownValue(issued *output.Issued, v any) string {
	if text, ok := v.(string); ok {
		return quoteShort(issued.Show(text), maxValueText)
	}

	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return "null"
	}

	return shorten.Text(strings.TrimSpace(issued.Show(b.String())), maxValueText)
}

// A decided is an answer to a question.
type decided struct {
	Question   int      `json:"question"`
	Option     int      `json:"option"`
	Text       string   `json:"text"`
	Same       bool     `json:"same"`
	Refs       []string `json:"refs"`
	Confidence float64  `json:"confidence"`
	Reason     string   `json:"reason"`
}

func readDecisions(raw []byte) ([]decided, error) {
	var a struct {
		Answers []decided `json:"answers"`
	}
	err := json.Unmarshal(raw, &a)
	return a.Answers, err
}

// applyAnswer does what an answer says.
func (m *mergeRun) applyAnswer(q *question, a decided) {
	if q.kind == askSame {
		if a.Same {
			q.yes()
		}
		return
	}
	if o := m.chosenOption(q, a); o != nil {
		m.applyDecision(q, *o)
	}
}

// chosenOption returns the option that an answer chooses; nil if it chooses none.
func (m *mergeRun) chosenOption(q *question, a decided) *option {
	var o option
	switch {
	case q.kind == askWrite && strings.TrimSpace(a.Text) != "":
		o = option{value: a.Text, shown: quoteShort(a.Text, maxValueText)}
	case a.Option >= 1 && a.Option <= len(q.options):
		o = q.options[a.Option-1]
	default:
		return nil
	}

	o.decided, o.refs, o.said, o.why = true, a.Refs, max(0, min(a.Confidence, 1)), found.Line(a.Reason)
	return &o
}

// applyDecision applies a decision. Whatever it says is checked there.
func (m *mergeRun) applyDecision(q *question, o option) {
	if !o.decided {
		return
	}
	m.out.Decide(m.Schema, string(m.Task.Unit), m.issued, []output.Decision{{
		Entry: q.entry, Field: q.field.Path, Value: o.value, Refs: o.refs, Said: o.said, Why: o.why,
	}})
}

// joinElements makes two elements one: that with more behind it is kept, then the longer
// one. One of them may have become part of another before.
func (m *mergeRun) joinElements(q *question) {
	a, b := q.options[0], q.options[1]
	if b.weight > a.weight || b.weight == a.weight && len(b.shown) > len(a.shown) {
		a, b = b, a
	}
	a.key, b.key = m.currentKey(q, a.key), m.currentKey(q, b.key)
	if a.key != b.key && m.out.Join(q.entry, q.field.Path, a.key, b.key) {
		m.joined[candidatePlace{q.entry, q.field.Path, b.key}] = a.key
	}
}

// A candidatePlace is a candidate of a field.
type candidatePlace struct {
	entry int
	path  string
	key   string
}

// currentKey is the candidate that a key has become part of.
func (m *mergeRun) currentKey(q *question, key string) string {
	for {
		next, ok := m.joined[candidatePlace{q.entry, q.field.Path, key}]
		if !ok {
			return key
		}
		key = next
	}
}

// questionsRequest asks questions in one call.
func (m *mergeRun) questionsRequest(batch []*question) *llm.Request {
	var b strings.Builder
	for i, q := range batch {
		fmt.Fprintf(&b, "QUESTION %d (%s): %s\n", i+1, q.kind, q.questionText())
	}
	return m.MergeRequest(len(batch), b.String())
}
