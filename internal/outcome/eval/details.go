package eval

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema"
)

// A Normalisation makes equal texts of those that a benchmark takes for equal.
type Normalisation func(string) string

// Normalisations are the normalisations by name.
func Normalisations() map[string]Normalisation {
	return map[string]Normalisation{"default": nil, "squad": squad, "kleister": kleister}
}

// squad is the normalisation of SQuAD: case, punctuation, articles and white space do not
// count.
func squad(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < unicode.MaxASCII && (unicode.IsPunct(c) || unicode.IsSymbol(c)) {
			return -1
		}
		return c
	}, strings.ToLower(s))

	words := slices.DeleteFunc(strings.Fields(s), func(w string) bool { return w == "a" || w == "an" || w == "the" })
	return strings.Join(words, " ")
}

// kleister is the normalisation of Kleister: case does not count, and white space and
// colons are underscores.
func kleister(s string) string {
	words := strings.FieldsFunc(strings.ToUpper(s), func(c rune) bool { return unicode.IsSpace(c) || c == ':' || c == '_' })
	return strings.Join(words, "_")
}

// Kind says how a value differs from the truth.
type Kind string

// The kinds of differences.
const (
	Wrong          Kind = "wrong"      // another value than the true one
	Missing        Kind = "missing"    // no value where there is a true one
	KindUnverified Kind = "unverified" // no value where there is a true one, and one under _unverified
	Spurious       Kind = "spurious"   // a value where there is no true one
)

// A Difference is a value that differs from the truth.
type Difference struct {
	Document   string   `json:"document"`
	Field      string   `json:"field"`
	Kind       Kind     `json:"kind"`
	Truth      any      `json:"truth"`                // null if there is none
	Found      any      `json:"found"`                // null if there is none; for KindUnverified what stands there
	Constraint string   `json:"constraint,omitempty"` // of an unverified value: that which it breaks
	Message    string   `json:"message,omitempty"`    // of an unverified value: what is wrong with it
	Confidence float64  `json:"confidence,omitempty"`
	Quotes     []string `json:"quotes,omitempty"` // of what was found
}

// A Confusion is a wrong value that stands for a true one.
type Confusion struct {
	Truth string `json:"truth"`
	Found string `json:"found"`
	Count int    `json:"count"`
}

// An Interval holds a field's precision and recall, each as its lower and upper bound.
type Interval struct {
	Precision [2]float64 `json:"precision"`
	Recall    [2]float64 `json:"recall"`
}

// An Outcome names what was compared: the field of a record of a document.
type Outcome struct {
	Document string
	Record   int // of those of the document, as they were paired
	Field    string
}

// details gathers the differences of all documents.
type details struct {
	differences []Difference
	confused    map[string]map[[2]string]int
	outcomes    map[Outcome]bool
}

func newDetails() *details {
	return &details{differences: []Difference{}, confused: make(map[string]map[[2]string]int), outcomes: make(map[Outcome]bool)}
}

// addField notes how a field of a record differs from the truth. Elements of lists that
// differ are matched in their order: with what was found first, then with what stands under
// _unverified.
func (d *details) addField(document string, record int, j judge, p *pairing) {
	truth, found := j.unmatched(p.truth, p.values())
	d.outcomes[Outcome{document, record, j.path}] = len(truth)+len(found) == 0

	result := p.result
	if result == nil {
		result = &Result{}
	}

	// What the result holds back explains a missing value better than nothing does.
	held := result.Unverified[j.path]
	rest := j.listValues(map[string]any{j.path: held.Value})

	for i := range max(len(truth), len(found)) {
		one := Difference{Document: document, Field: j.path, Kind: Wrong, Confidence: result.Confidence[j.path], Quotes: result.Quotes[j.path]}
		if i < len(truth) {
			one.Truth = truth[i]
		} else {
			one.Kind = Spurious
		}

		switch {
		case i < len(found):
			one.Found = found[i]
		case len(rest) > 0:
			one.Kind, one.Confidence, one.Quotes = KindUnverified, 0, held.Quotes
			one.Constraint, one.Message = held.Constraint, held.Message
			one.Found, rest = rest[0], rest[1:]
		default:
			one.Kind, one.Confidence, one.Quotes = Missing, 0, nil
		}

		if one.Kind == Wrong {
			if d.confused[j.path] == nil {
				d.confused[j.path] = make(map[[2]string]int)
			}
			d.confused[j.path][[2]string{shownText(one.Truth), shownText(one.Found)}]++
		}

		d.differences = append(d.differences, one)
	}
}

// unmatched returns the values of the truth that were not found, and those found that
// are not in the truth.
func (j judge) unmatched(truth, result map[string]any) (missed, extra []any) {
	missed, extra = j.listValues(truth), j.listValues(result)
	element := j.property
	if element.Type == schema.Array && element.Items != nil {
		element = element.Items
	}

	// Each true value is matched with one that was found, so values that are there twice
	// count twice.
	missed = slices.DeleteFunc(missed, func(want any) bool {
		key := j.comparisonKey(element, want)
		i := slices.IndexFunc(extra, func(got any) bool { return j.comparisonKey(element, got) == key })
		if i >= 0 {
			extra = slices.Delete(extra, i, i+1)
		}
		return i >= 0
	})

	return missed, extra
}

// listValues returns the values of a field that have a comparison key.
func (j judge) listValues(record map[string]any) []any {
	v := valueAt(record, j.path)
	if v == nil {
		return nil
	}

	list, isList := v.([]any)
	element := j.property
	switch {
	case j.property.Type != schema.Array:
		list = []any{v}
	case !isList:
		list, element = []any{v}, j.property.Items
	default:
		element = j.property.Items
	}

	return slices.DeleteFunc(slices.Clone(list), func(v any) bool { return j.comparisonKey(element, v) == "" })
}

func shownText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := json.Marshal(v) // it was decoded from JSON
	return string(b)
}

// addTo puts what was gathered into a report.
func (d *details) addTo(r *Report, judged []judge, counts []count) {
	r.Errors, r.Outcomes = d.differences, d.outcomes

	r.Confusions = make(map[string][]Confusion)
	for field, pairs := range d.confused {
		var all []Confusion
		for pair, n := range pairs {
			all = append(all, Confusion{pair[0], pair[1], n})
		}

		// In fixed order: equal counts come out of a map at random.
		slices.SortFunc(all, func(a, b Confusion) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Truth, b.Truth), strings.Compare(a.Found, b.Found))
		})
		r.Confusions[field] = all
	}

	r.Intervals = make(map[string]Interval, len(judged))
	for i, j := range judged {
		r.Intervals[j.path] = Interval{wilson(counts[i].right, counts[i].found), wilson(counts[i].right, counts[i].true)}
	}
}

// wilson returns Wilson's score interval of a share with a probability of 0.95, rounded
// to four places.
func wilson(right, of int) [2]float64 {
	if of == 0 {
		return [2]float64{0, 1}
	}

	const z = 1.959964
	n, p := float64(of), float64(right)/float64(of)

	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	round := func(x float64) float64 { return math.Round(min(max(x, 0), 1)*1e4) / 1e4 }
	return [2]float64{round(middle - half), round(middle + half)}
}

// A Change compares a field of two results: the second with the first.
type Change struct {
	Better  int     `json:"better"`   // records that only the second has right
	Worse   int     `json:"worse"`    // records that only the first has right
	P       float64 `json:"p"`        // of McNemar's exact test: how likely it is that so large a difference is chance
	F1First float64 `json:"f1_first"` // of the first result
	F1      float64 `json:"f1"`       // of the second
}

// Changes compares two reports about the same truth, field by field.
func Changes(first, second Report) map[string]Change {
	all := make(map[string]Change)
	for name, s := range second.Fields {
		all[name] = Change{F1First: first.Fields[name].F1, F1: s.F1}
	}

	// Only fields that both have judged, and of which one is right alone, tell them apart.
	for key, right := range second.Outcomes {
		was, known := first.Outcomes[key]
		if !known || was == right {
			continue
		}

		c := all[key.Field]
		if right {
			c.Better++
		} else {
			c.Worse++
		}
		all[key.Field] = c
	}

	for name, c := range all {
		c.P = mcnemar(c.Better, c.Worse)
		all[name] = c
	}
	return all
}

// mcnemar returns the p-value of McNemar's exact test, two-sided, with four
// significant digits: no difference is impossible by chance.
func mcnemar(better, worse int) float64 {
	n := better + worse

	// The terms of the binomial distribution are added up from one end, as logarithms: the
	// first is 0.5 to the power of n.
	tail, term := 0.0, -float64(n)*math.Ln2
	for k := range min(better, worse) + 1 {
		tail += math.Exp(term)
		term += math.Log(float64(n-k)) - math.Log(float64(k+1))
	}

	p, _ := strconv.ParseFloat(strconv.FormatFloat(min(1, 2*tail), 'g', 4, 64), 64) // it was formatted as one
	return p
}
