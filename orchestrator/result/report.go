package result

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/claims"
	"github.com/coditect/mapreduce/internal/text/prose"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/orchestrator/result/sections"
)

// A Report says what is known of a job that ends with a report.
type Report struct {
	Question string // that it answers; may be empty
	Schema   []byte // of its sections; of a report that is one text it describes a text
}

// A reportView is the report of a result: its text with numbers in place of ids, what the
// numbers stand for, and how far the passages support what it claims. Texts are Markdown.
type reportView struct {
	Question   string        `json:"question,omitempty"`
	Sections   []sectionView `json:"sections"`
	References []refs.Entry  `json:"references"` // by number: those that are used, and no others
	Claims     []claimView   `json:"claims"`     // in order of the text
	Measures   measures      `json:"measures"`
}

// A sectionView is a section. Source is its text as it was written, with ids: with the
// numbers of References in place of ids it is Text.
type sectionView struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Text   string   `json:"text,omitempty"`
	Source string   `json:"source,omitempty"`
	Items  []string `json:"items,omitempty"` // of a section that is a list

	Columns []string   `json:"columns,omitempty"` // of a section that is a table
	Rows    [][]string `json:"rows,omitempty"`    // a text for each column
}

// A claimView is a sentence that claims something, with its references.
type claimView struct {
	Section    string         `json:"section"`
	Text       string         `json:"text"`
	Grade      claims.Grade   `json:"grade"` // of all its references together
	Score      float64        `json:"score"`
	Reasons    []string       `json:"reasons,omitempty"`
	Judge      string         `json:"judge"` // that decided on the grade: rules, or model
	References []claimRefView `json:"references"`
}

// A claimRefView is a reference of a claim, with what it says of the claim by itself.
type claimRefView struct {
	Number  int          `json:"number"`
	Ref     string       `json:"ref"`
	Grade   claims.Grade `json:"grade"`
	Model   claims.Grade `json:"model,omitempty"` // what a model found; empty if none was asked
	Score   float64      `json:"score"`
	Reasons []string     `json:"reasons,omitempty"`
}

// measures sum up the claims. Recall and precision are those of ALCE (Gao and others,
// 2023): the share of claims that their references support together; and of the references
// the share that a supported claim needs.
type measures struct {
	Claims       int     `json:"claims"`
	Cited        int     `json:"cited"`
	Supported    int     `json:"supported"`
	Partial      int     `json:"partial"`
	Unsupported  int     `json:"unsupported"`
	Contradicted int     `json:"contradicted"`
	Recall       float64 `json:"citation_recall"`
	Precision    float64 `json:"citation_precision"`
	Judge        string  `json:"judge"` // rules, or rules and model
}

// A reporter makes the report of a result.
type reporter struct {
	r         *result
	cited     map[string]output.Citation // by name
	sources   map[string]refs.Source     // of the same
	numbering *refs.Numbering
	judged    map[judgedClaim]output.Judgement
	view      reportView
	needed    int // references that a supported claim needs
	total     int // references of claims
}

// A judgedClaim is what a model was asked about.
type judgedClaim struct {
	claim string // with references in full
	ref   string // in full
}

// writeReport makes the report of the value that the job came to, of which sources are the
// descriptions of the cited documents, by the names of the citations.
func (r *result) writeReport(ctx context.Context, sources map[string]refs.Source) error {
	p := &reporter{r: r, cited: make(map[string]output.Citation), sources: sources, judged: make(map[judgedClaim]output.Judgement)}

	for _, c := range r.last.Citations {
		p.cited[r.names.Spell(c.ID)] = c
	}
	for _, j := range r.last.Judged {
		p.judged[judgedClaim{j.Claim, j.Citation.Full()}] = j
	}

	p.numbering = refs.NewNumbering(p.isCited)
	p.view = reportView{Question: r.job.Report.Question, References: []refs.Entry{}, Claims: []claimView{}}
	p.view.Measures.Judge = "rules"
	if len(r.last.Judged) > 0 {
		p.view.Measures.Judge = "rules and model"
	}

	if err := p.addSections(); err != nil {
		return err
	}

	// The passages are numbered in the order in which the sections refer to them.
	for i, name := range p.numbering.Used() {
		p.view.References = append(p.view.References, refs.Entry{Number: i + 1, Ref: name, Place: p.r.places[name], Source: sources[name]})
	}

	p.sumUp()
	b, err := marshalJSON(p.view)
	if err != nil {
		return err
	}
	return r.sink(&mapreduce.ResultPart{Report: b})
}

func (r *reporter) isCited(name string) bool {
	_, ok := r.cited[name]
	return ok
}

// addSections adds the sections of the value: the properties of an object in the order in
// which a reader wants them, or the text that it is.
func (r *reporter) addSections() error {
	value := output.Respelled(r.r.last.Value, r.r.names.Spell)
	var text string
	// A report may be a single text, without sections.
	if json.Unmarshal(value, &text) == nil {
		return r.addSection("report", "Report", text)
	}

	var object map[string]json.RawMessage
	if err := json.Unmarshal(value, &object); err != nil {
		return err
	}

	for _, s := range sections.Of(r.r.job.Report.Schema, object) {
		var items []string
		switch raw := object[s.Name]; {
		case json.Unmarshal(raw, &text) == nil:
			if err := r.addSection(s.Name, s.Title, text); err != nil {
				return err
			}
		case json.Unmarshal(raw, &items) == nil:
			one := sectionView{Name: s.Name, Title: s.Title, Items: []string{}}
			for _, item := range items {
				c := r.numbering.Convert(item)
				one.Items = append(one.Items, c.Text)
				r.checkText(s.Name, item)
				if err := r.reportRemoved(s.Name, c.Removed); err != nil {
					return err
				}
			}
			r.view.Sections = append(r.view.Sections, one)
		default:
			if err := r.addData(s, raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// addData adds a section that is no text: a table of the objects of a list, or the JSON of
// a number or a boolean. Others are not shown.
func (r *reporter) addData(s sections.Section, raw json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return err
	}

	switch v := v.(type) {
	case json.Number, bool:
		r.view.Sections = append(r.view.Sections, sectionView{Name: s.Name, Title: s.Title, Text: fmt.Sprint(v)})
	case []any:
		paths := slices.DeleteFunc(sections.ColumnsOf(s.Items, v), func(path string) bool { // what no row has takes room alone
			return len(v) > 0 && !slices.ContainsFunc(v, func(row any) bool { return sections.ValueAt(row, path) != nil })
		})

		one := sectionView{Name: s.Name, Title: s.Title, Columns: sections.HeadsOf(s.Items, paths)}
		for _, row := range v {
			cells := make([]string, len(paths))
			quotes := r.quotesIn(row)
			for i, path := range paths {
				value := sections.ValueAt(row, path)
				cells[i] = r.cell(value)
				if number, ok := value.(json.Number); ok {
					cells[i] = sections.DecimalsOf(sections.PropertyAt(s.Items, path), number.String(), quotes)
				}
				r.checkCell(s.Name, value)
			}
			one.Rows = append(one.Rows, cells)
		}
		r.view.Sections = append(r.view.Sections, one)
	}
	return nil
}

// quotesIn returns the quotes of the references that a value has anywhere in it.
func (r *reporter) quotesIn(v any) (quotes []string) {
	switch v := v.(type) {
	case string:
		if c, ok := r.cited[v]; ok {
			quotes = append(quotes, c.Quote)
		}
	case []any:
		for _, one := range v {
			quotes = append(quotes, r.quotesIn(one)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			quotes = append(quotes, r.quotesIn(v[name])...)
		}
	}
	return quotes
}

// cell returns a value as a text, with numbers in place of references.
func (r *reporter) cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if r.isCited(v) {
			return r.numbering.Convert("[" + v + "]").Text
		}
		return r.numbering.Convert(v).Text
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case []any:
		if numbers := r.numbersOf(v); len(numbers) > 0 {
			return "[" + strings.Join(numbers, ", ") + "]"
		}
		parts := make([]string, len(v))
		for i, one := range v {
			parts[i] = r.cell(one)
		}
		return strings.Join(parts, " ")
	}
	return fmt.Sprint(v)
}

// numbersOf returns the numbers of a list of references, in order; nil if it has anything else.
func (r *reporter) numbersOf(list []any) []string {
	var numbers []string
	for _, one := range list {
		name, isText := one.(string)
		if !isText || !r.isCited(name) {
			return nil
		}
		if number := strings.Trim(r.numbering.Convert("["+name+"]").Text, "[]"); !slices.Contains(numbers, number) {
			numbers = append(numbers, number)
		}
	}

	slices.SortFunc(numbers, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return numbers
}

// addSection adds a section of text, and checks its sentences.
func (r *reporter) addSection(name, title, source string) error {
	c := r.numbering.Convert(source)
	r.view.Sections = append(r.view.Sections, sectionView{Name: name, Title: title, Text: c.Text, Source: source})
	for _, span := range prose.Sentences(source) {
		if sentence := span.In(source); claims.Claims(sentence) || refersToOther(sentence) {
			r.checkClaim(name, sentence)
		}
	}
	return r.reportRemoved(name, c.Removed)
}

// checkText checks the sentences with references of an element of a list or of a cell.
// Those without are names and short words, and claim nothing by themselves.
func (r *reporter) checkText(section, source string) {
	for _, span := range prose.Sentences(source) {
		if sentence := span.In(source); refersToOther(sentence) {
			r.checkClaim(section, sentence)
		}
	}
}

// checkCell checks the texts of a cell. A cell that is nothing but references claims
// nothing: it says on what its row rests.
func (r *reporter) checkCell(section string, value any) {
	switch v := value.(type) {
	case string:
		if !r.isCited(v) && claims.Says(v) {
			r.checkText(section, v)
		}
	case []any:
		for _, one := range v {
			r.checkCell(section, one)
		}
	}
}

// reportRemoved tells of what was removed from a text because it is no reference.
func (r *reporter) reportRemoved(section string, all []refs.Removed) error {
	for _, m := range all {
		b, err := marshalJSON(removedReference{Name: m.Name, Field: section, Unit: string(r.r.job.Last), Reason: "the report has no such reference"})
		if err == nil {
			err = r.r.sink(&mapreduce.ResultPart{Removed: b})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkClaim checks a sentence against the passages that it names.
func (r *reporter) checkClaim(section, sentence string) {
	view := claimView{Section: section, Text: r.numbering.Convert(sentence).Text, References: []claimRefView{}}

	// A model is asked about the sentence with its references in full.
	full := refs.Respell(sentence, func(name string) (string, bool) {
		c, ok := r.cited[name]
		return c.ID.Full(), ok
	}).Text

	var passages []claims.Source
	for _, name := range refs.Mentioned(sentence, r.isCited) {
		c, ok := r.cited[name]
		if !ok {
			continue
		}
		passages = append(passages, claims.Source{Passage: c.Quote, About: aboutSource(r.sources[name])})
		v := claims.CheckSources(sentence, passages[len(passages)-1])
		one := claimRefView{Number: r.numbering.Number(name), Ref: name, Grade: v.Grade, Score: rounded(v.Score), Reasons: v.Reasons}

		if j, asked := r.judged[judgedClaim{full, c.ID.Full()}]; asked {
			one.Model = claims.Grade(j.Grade)
			if one.Grade = claims.Join(v, one.Model); j.Reason != "" {
				one.Reasons = append(one.Reasons, "the model: "+j.Reason)
			}
		}

		view.References = append(view.References, one)
	}

	r.gradeClaim(&view, sentence, passages)
	r.view.Claims = append(r.view.Claims, view)
}

// gradeClaim grades a claim by all its references together.
func (r *reporter) gradeClaim(view *claimView, sentence string, passages []claims.Source) {
	view.Judge = "rules"
	if len(passages) == 0 {
		view.Grade, view.Reasons = claims.Unsupported, []string{"the sentence has no reference"}
		if refersToOther(sentence) {
			view.Reasons = []string{"its reference was removed: the report has no such reference"}
		}
		return
	}

	v := claims.CheckSources(sentence, passages...)
	view.Grade, view.Score, view.Reasons = v.Grade, rounded(v.Score), v.Reasons
	if best := bestModelGrade(view.References); best != "" {
		if view.Grade = claims.Join(v, best); view.Grade == best {
			view.Judge = "model"
		}
	}

	r.total += len(passages)
	if view.Grade != claims.Supported {
		return
	}

	// A supported claim needs a reference that supports it alone, or without which the
	// others do not.
	for i, ref := range view.References {
		others := slices.Delete(slices.Clone(passages), i, i+1)
		if ref.Grade == claims.Supported || len(others) == 0 || claims.CheckSources(sentence, others...).Grade != claims.Supported {
			r.needed++
		}
	}
}

// bestModelGrade returns the best grade that a model gave to a reference, "" for none.
func bestModelGrade(all []claimRefView) claims.Grade {
	best := claims.Grade("")
	for _, one := range all {
		if at := slices.Index(claims.Grades(), one.Model); at >= 0 && (best == "" || at < slices.Index(claims.Grades(), best)) {
			best = one.Model
		}
	}
	return best
}

// sumUp computes the measures of the claims.
func (r *reporter) sumUp() {
	m := &r.view.Measures
	for _, c := range r.view.Claims {
		m.Claims++
		if len(c.References) > 0 {
			m.Cited++
		}

		switch c.Grade {
		case claims.Supported:
			m.Supported++
		case claims.Partial:
			m.Partial++
		case claims.Contradicted:
			m.Contradicted++
		default:
			m.Unsupported++
		}
	}

	if m.Claims > 0 {
		m.Recall = rounded(float64(m.Supported) / float64(m.Claims))
	}
	if r.total > 0 {
		m.Precision = rounded(float64(r.needed) / float64(r.total))
	}
}

// rounded keeps four decimals.
func rounded(x float64) float64 { return float64(int64(x*1e4+0.5)) / 1e4 }
