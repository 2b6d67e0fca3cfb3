package review

import (
	"encoding/json"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/schema"
)

// An About is what a record says of the value of a field.
type About struct {
	Unverified bool     // it stands under _unverified
	Confidence float64  // 0 if none is known
	Citations  []string // references
}

// AboutOf returns what a record says of the value of a field.
func AboutOf(s *schema.Schema, record []byte, field string) (a About, err error) {
	v, err := newView(s, record)
	if err != nil {
		return a, errs.New(errs.DataLoss, "a record cannot be read: %v", err)
	}

	_, a.Unverified = v.found(field)
	if raw, ok := v.about["_confidence"][field]; ok {
		err = json.Unmarshal(raw, &a.Confidence)
	}
	if raw, ok := v.about["_citations"][field]; ok && err == nil {
		err = json.Unmarshal(raw, &a.Citations)
	}
	if err != nil {
		return a, errs.New(errs.DataLoss, "what a record says of %s cannot be read: %v", field, err)
	}
	return a, nil
}
