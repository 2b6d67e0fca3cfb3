// Package eval compares results with the truth. It measures precision, recall and
// F1 for each field, over all values (micro) and over the fields (macro), and
// whether confidences are reliable.
//
// It is pure and imports nothing of the project but api/schema.
package eval

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
)

// A Result is one record of a job's result.
type Result struct {
	Documents []string       // its sources; none for a summary, which is compared with a truth of one document
	Values    map[string]any // as in result.json, without the keys that begin with _
	// Confidence is that of the values, by field path; nil if it is not known.
	Confidence map[string]float64
	// Quotes are those of the values' citations, by field path.
	Quotes map[string][]string
	// Unverified are the values that were found and are not in Values, by field path.
	Unverified map[string]Unverified

	decided map[string]any // what people have decided is right, by field path; null where there is nothing
}

// An Unverified is a value that was found and is no value of the record: its quote is not in
// the document, or the schema does not allow it.
type Unverified struct {
	Value      any
	Constraint string // that of the schema which the value breaks, such as "minimum"; empty if its quote was not found
	Message    string // what is wrong with the value; empty if its quote was not found
	Quotes     []string
}

// A Truth is the correct record of a document, or one of several.
type Truth struct {
	Document string
	Values   map[string]any // null and absent both mean that there is no such value
}

// A Score measures one field, or several together.
type Score struct {
	Precision float64 `json:"precision"` // right values among those that were found
	Recall    float64 `json:"recall"`    // values that were found among those in the truth
	F1        float64 `json:"f1"`        // their harmonic mean
	Support   int     `json:"support"`   // values in the truth
}

// A Report is the outcome of a comparison.
type Report struct {
	Fields    map[string]Score `json:"fields"`
	Micro     Score            `json:"micro"` // every value counts the same
	Macro     Score            `json:"macro"` // every field counts the same
	Documents Coverage         `json:"documents"`
	// Calibration compares confidences with how many values are right; nil if
	// the result has none.
	Calibration *Calibration `json:"calibration,omitempty"`
	// Errors are all values that differ from the truth, in its order.
	Errors []Difference `json:"errors,omitempty"`
	// Confusions are how often which wrong value stands for which true one, by field, the
	// most frequent first.
	Confusions map[string][]Confusion `json:"confusions,omitempty"`
	// Intervals hold the true precision and recall of a field with a probability of 0.95,
	// if the documents are a random sample.
	Intervals map[string]Interval `json:"intervals,omitempty"`

	// Outcomes are whether each true field was found as it is.
	Outcomes map[Outcome]bool `json:"-"`
}

// Coverage tells how the documents of the truth and of the result correspond.
type Coverage struct {
	Truth   int `json:"truth"`   // documents in the truth
	Found   int `json:"found"`   // of these, how many the result has records of
	Unknown int `json:"unknown"` // documents of the result that the truth does not name
}

// A count holds the totals that scores are computed from.
type count struct {
	right, found, true int
}

func (c *count) add(d count) {
	c.right += d.right
	c.found += d.found
	c.true += d.true
}

// computeScore computes the measures. A measure without a denominator is 0.
func (c count) computeScore() Score {
	s := Score{Support: c.true}
	if c.found > 0 {
		s.Precision = float64(c.right) / float64(c.found)
	}
	if c.true > 0 {
		s.Recall = float64(c.right) / float64(c.true)
	}
	if c.found+c.true > 0 {
		s.F1 = 2 * float64(c.right) / float64(c.found+c.true)
	}
	return s
}

// Compare measures results against the truth. The schema gives the types by which
// values are compared; without one Compare guesses them from the truth.
//
// Compare judges only fields that both the truth and the schema have, and only
// documents that the truth names: the truth may be a sample. A field is right if
// it equals the truth after normalising. The elements of a list count one by one.
// If a document has several records, they are paired so that most fields agree.
func Compare(s *schema.Schema, results []Result, truth []Truth) Report {
	return CompareBy(s, results, truth, nil)
}

// CompareBy is Compare with texts that count as equal if they are so after a
// normalisation; nil is that of Compare.
func CompareBy(s *schema.Schema, results []Result, truth []Truth, normalise Normalisation) Report {
	judged := fieldsOf(s, truth)
	for i := range judged {
		judged[i].normalise = normalise
	}

	docs, coverage := matchDocuments(results, truth)

	counts := make([]count, len(judged))
	var sure []Judged
	details := newDetails()

	for _, d := range docs {
		sure = append(sure, d.compareRecords(judged, counts, details)...)
	}

	r := newReport(judged, counts, coverage)
	details.addTo(&r, judged, counts)

	// Only results that state confidences can be calibrated.
	if len(sure) > 0 {
		c := Calibrate(sure)
		r.Calibration = &c
	}
	return r
}

func newReport(judged []judge, counts []count, coverage Coverage) Report {
	r := Report{Fields: make(map[string]Score, len(judged)), Documents: coverage}

	var all count
	fields := 0
	for i, j := range judged {
		score := counts[i].computeScore()
		r.Fields[j.path] = score
		all.add(counts[i])
		if counts[i].found+counts[i].true == 0 {
			continue // nothing to say about it
		}

		fields++
		r.Macro.Precision += score.Precision
		r.Macro.Recall += score.Recall
		r.Macro.F1 += score.F1
	}

	r.Micro = all.computeScore()
	r.Macro.Support = all.true
	if fields > 0 {
		r.Macro.Precision /= float64(fields)
		r.Macro.Recall /= float64(fields)
		r.Macro.F1 /= float64(fields)
	}
	return r
}

// A document holds the truth and the results of one document.
type document struct {
	name    string
	truth   []Truth
	results []Result
}

// matchDocuments groups truth and results by document, in the order of the truth.
func matchDocuments(results []Result, truth []Truth) ([]*document, Coverage) {
	var docs []*document
	byName := map[string]*document{}
	for _, t := range truth {
		d := byName[t.Document]
		if d == nil {
			d = &document{name: t.Document}
			byName[t.Document] = d
			docs = append(docs, d)
		}
		d.truth = append(d.truth, t)
	}

	c := Coverage{Truth: len(docs)}

	// A result without sources is a summary, which is of the only document.
	names := newNames(byName)
	unknown := map[string]bool{}
	for _, r := range results {
		if len(r.Documents) == 0 && len(docs) == 1 {
			docs[0].results = append(docs[0].results, r)
		}
		for _, source := range r.Documents {
			name, ok := names.find(source)
			if !ok {
				unknown[source] = true
				continue
			}
			d := byName[name]
			d.results = append(d.results, r)
		}
	}

	for _, d := range docs {
		if len(d.results) > 0 {
			c.Found++
		}
	}
	c.Unknown = len(unknown)
	return docs, c
}

// names finds the document of the truth for a source, where one side gives the
// path from a folder further up than the other.
type names struct {
	known  map[string]bool
	byBase map[string][]string // by last element of the path
}

func newNames(docs map[string]*document) names {
	n := names{known: map[string]bool{}, byBase: map[string][]string{}}
	for name := range docs {
		n.known[name] = true
		self := name[strings.LastIndexByte(name, '/')+1:]
		n.byBase[self] = append(n.byBase[self], name)
	}
	return n
}

// find returns the only name in the truth that ends as source does, or with
// which source ends.
func (n names) find(source string) (string, bool) {
	if n.known[source] {
		return source, true
	}

	// Two names that fit would leave it open which is meant, so neither is taken.
	var found []string
	for _, name := range n.byBase[source[strings.LastIndexByte(source, '/')+1:]] {
		if strings.HasSuffix(source, "/"+name) || strings.HasSuffix(name, "/"+source) {
			found = append(found, name)
		}
	}

	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

// compareRecords adds the comparison of the document's records to counts, and
// returns the values that have a confidence.
func (d *document) compareRecords(judged []judge, counts []count, to *details) []Judged {
	var sure []Judged
	for n, p := range d.pairRecords(judged) {
		for i, j := range judged {
			c := j.compareField(p.truth, p.values())
			counts[i].add(c)
			to.addField(d.name, n, j, &p)
			if p.result == nil {
				continue
			}

			// As many of the values count as right as were right: which of them had which
			// confidence is not known.
			confidence, known := p.result.Confidence[j.path]
			for n := 0; known && n < c.found; n++ {
				sure = append(sure, Judged{Field: j.path, Confidence: confidence, Right: n < c.right})
			}
		}
	}
	return sure
}

// A pairing is a record of the truth and the result that it is compared with.
// Either may be nil.
type pairing struct {
	truth  map[string]any
	result *Result
	right  int
	t, r   int
}

// values returns the values of the result, none if there is no result.
func (p *pairing) values() map[string]any {
	if p.result == nil {
		return nil
	}
	return p.result.Values
}

// maxPairs bounds the pairings of records that are tried for a document. Beyond
// it, records are paired in order.
const maxPairs = 1 << 20

// pairRecords pairs each record of the truth with a result. The pairs that agree
// most are chosen first, and among equals those first in their lists.
func (d *document) pairRecords(judged []judge) []pairing {
	usedT, usedR := make([]bool, len(d.truth)), make([]bool, len(d.results))

	var chosen []pairing
	for _, p := range d.rankPairings(judged) {
		if !usedT[p.t] && !usedR[p.r] {
			usedT[p.t], usedR[p.r] = true, true
			chosen = append(chosen, p)
		}
	}

	// What is left on either side has nothing to be compared with.

	for t, used := range usedT {
		if !used {
			chosen = append(chosen, pairing{truth: d.truth[t].Values})
		}
	}
	for r, used := range usedR {
		if !used {
			chosen = append(chosen, pairing{result: &d.results[r]})
		}
	}

	return chosen
}

func (d *document) rankPairings(judged []judge) []pairing {
	var all []pairing
	// With one record on each side there is nothing to choose, so nothing is compared.
	simple := len(d.truth) == 1 && len(d.results) == 1

	if len(d.truth)*len(d.results) > maxPairs {
		for i := range min(len(d.truth), len(d.results)) {
			all = append(all, pairing{truth: d.truth[i].Values, result: &d.results[i], t: i, r: i})
		}
		return all
	}

	for t, truth := range d.truth {
		for r := range d.results {
			p := pairing{truth: truth.Values, result: &d.results[r], t: t, r: r}
			for i := 0; i < len(judged) && !simple; i++ {
				p.right += judged[i].compareField(truth.Values, p.values()).right
			}
			all = append(all, p)
		}
	}

	slices.SortStableFunc(all, func(a, b pairing) int { return cmp.Compare(b.right, a.right) })
	return all
}
