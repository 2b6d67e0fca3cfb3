package merge

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
)

// FieldStatistics describe the values of one field over all records. Numbers are
// exact but for the mean.
type FieldStatistics struct {
	Count    int64       `json:"count"`    // records that have a value
	Null     int64       `json:"null"`     // records that have none
	Distinct int64       `json:"distinct"` // different values; of lists, different elements
	Min      json.Number `json:"min,omitempty"`
	Max      json.Number `json:"max,omitempty"`
	Mean     json.Number `json:"mean,omitempty"`
	Sum      json.Number `json:"sum,omitempty"`
	Derived  bool        `json:"derived,omitempty"` // the values stand in no quote: they follow from some
}

// Statistics gathers statistics from a stream of records, in at most 8 bytes a
// value. The order of the records does not matter. It is not safe for concurrent
// use.
type Statistics struct {
	fields []schema.Field
	totals []fieldTotals
}

type fieldTotals struct {
	count, null int64
	min, max    string
	sum         decimal
	distinct    hashSet
}

// NewStatistics returns empty statistics of the schema's fields.
func NewStatistics(s *schema.Schema) *Statistics {
	return &Statistics{fields: s.Fields(), totals: make([]fieldTotals, len(s.Fields()))}
}

// Add adds a record, given as values by field path.
func (st *Statistics) Add(values map[string]any) {
	for i, f := range st.fields {
		st.totals[i].addValue(f.Property, values[f.Path])
	}
}

func (t *fieldTotals) addValue(p *schema.Property, v any) {
	if v == nil {
		t.null++
		return
	}

	t.count++

	if list, ok := v.([]any); ok {
		for _, item := range list {
			t.distinct.add(Identity(p, item))
		}
		return
	}

	t.distinct.add(p.Identity(v))

	// Only numbers have a least, a greatest and a sum.
	n, ok := v.(json.Number)
	if !ok || !p.Numeric() {
		return
	}

	number := n.String()
	if t.min == "" || format.CompareNumbers(number, t.min) < 0 {
		t.min = number
	}
	if t.max == "" || format.CompareNumbers(number, t.max) > 0 {
		t.max = number
	}

	t.sum.addMultiple(number, 1)
}

// Fields returns the statistics by field path.
func (st *Statistics) Fields() map[string]FieldStatistics {
	out := make(map[string]FieldStatistics, len(st.fields))
	for i, f := range st.fields {
		t := &st.totals[i]
		one := FieldStatistics{Count: t.count, Null: t.null, Distinct: t.distinct.countDistinct(), Derived: f.Property.Hints.Derived}

		if t.min != "" {
			one.Min, one.Max, one.Sum = json.Number(t.min), json.Number(t.max), json.Number(t.sum.String())
			one.Mean = json.Number(strconv.FormatFloat(t.sum.meanOver(t.count), 'f', -1, 64))
		}
		out[f.Path] = one
	}
	return out
}

// hashSet counts different texts by a hash of 64 bits. The probability that it
// takes any two of a million texts for one is one in forty million.
type hashSet struct {
	all    []uint64
	sorted int // the first so many are sorted and distinct
}

func (h *hashSet) add(text string) {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text)) // never fails
	h.all = append(h.all, sum.Sum64())

	// Sorting when the list has doubled keeps the memory within twice the distinct values,
	// and the time linear but for a logarithm.
	if len(h.all) >= 2*h.sorted+1024 {
		h.compact()
	}
}

func (h *hashSet) compact() {
	slices.Sort(h.all)
	h.all = slices.Compact(h.all)
	h.sorted = len(h.all)
}

func (h *hashSet) countDistinct() int64 {
	h.compact()
	return int64(len(h.all))
}
