// Package decimals shows numbers of a result with the decimals that stand in the documents.
package decimals

import (
	"encoding/json"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/derive"
)

// Forms says with how many decimals reports show numbers: as many as the schema states, or else as the
// quote has. The data, in result.json and files of records, has the numbers as such.
type Forms struct {
	stated map[string]int  // by field
	isText map[string]bool // fields that are no numbers
	shown  map[string]int  // by field: the most decimals that a report shows of a value
}

// New returns the forms of the numbers of a schema.
func New(source []byte) *Forms {
	f := &Forms{stated: make(map[string]int), isText: make(map[string]bool), shown: make(map[string]int)}
	s, err := schema.Parse("schema", source)
	if err != nil {
		return f // a job without a schema has no fields to state
	}

	for _, field := range s.Fields() {
		name := schema.RecordName(field.Path)
		f.isText[name] = !field.Property.Numeric()
		if n, ok := derive.DecimalsOf(field.Property); ok {
			f.stated[name] = n
		}
	}
	return f
}

// Display returns a value of a field as reports show it. The quotes are those of the value.
func (f *Forms) Display(field, value string, quotes []string) string {
	if f.isText[field] || !json.Valid([]byte(value)) || strings.Trim(value, "-0123456789.") != "" {
		return value
	}

	n, ok := f.stated[field]
	for i := 0; i < len(quotes) && !ok; i++ {
		n, ok = derive.DecimalsIn(value, quotes[i])
	}
	f.shown[field] = max(f.shown[field], n)
	return derive.Padded(value, n)
}

// leastOfMean is how many decimals a mean of whole numbers may have.
const leastOfMean = 2

// DisplayStatistics gives the numbers of a field, by their columns, the decimals of its values. The mean, which
// stands in no document, has no more than these, or than two.
func (f *Forms) DisplayStatistics(field string, numbers map[string]string) {
	n, ok := f.stated[field]
	if !ok {
		n = f.shown[field]
	}
	for _, column := range []string{"min", "max", "sum"} {
		_, fraction, _ := strings.Cut(numbers[column], ".")
		n = max(n, len(fraction))
	}

	for _, column := range []string{"min", "max", "mean", "sum"} {
		if numbers[column] == "" {
			continue
		}
		if column == "mean" {
			numbers[column] = derive.Rounded(numbers[column], max(n, leastOfMean))
		}
		numbers[column] = derive.Padded(numbers[column], n)
	}
}
