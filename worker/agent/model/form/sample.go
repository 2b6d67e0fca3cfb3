package form

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/plan"
)

// Sample returns an answer that has the value and the quote by which plans reckon in every field, of
// so many records if there may be many, else of one.
func (f *Form) Sample(short bool, records int) ([]byte, error) {
	answer := f.sampleRecord(short)
	if f.schema.Kind == schema.KindRecords {
		answer = dict{{"records", slices.Repeat([]dict{answer}, records)}, {"no_records", ""}}
	}

	raw, err := answer.MarshalJSON()
	return bytes.ReplaceAll(raw, []byte(`\u0026`), []byte("&")), err // no model escapes it
}

func (f *Form) sampleRecord(short bool) dict {
	var fields dict
	for _, field := range f.Fields {
		if short && !field.Property.Hints.Derived {
			fields = append(fields, pair{field.Key, []any{plan.SampleValue}})
			continue
		}

		finding := dict{{"value", plan.SampleValue}, {"quotes", []string{plan.SampleQuote}}}
		if field.Property.Hints.Derived {
			finding = append(finding, pair{"formula", ""})
		}
		finding = append(finding, pair{"confidence", json.Number("0.95")})
		if f.sees {
			finding = append(finding, pair{"page", 0})
		}
		fields = append(fields, pair{field.Key, []dict{finding}})
	}

	if short {
		return dict{{"fields", fields}}
	}
	return dict{{"fields", fields}, {"not_found", []dict{}}}
}
