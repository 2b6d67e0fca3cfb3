package dashboard

import (
	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/dashboard/visit"
)

// first makes a page as it is sent first: of a large job without what the stream brings as soon as it has been read.
// Whole reports that nothing is missing.
func (p page) first(v *visit.Visit) (data any, whole bool, err error) {
	if p.early != nil && !v.Query.Has("whole") && (p.quick == nil || !p.quick(v)) {
		of, err := p.early(v)
		if err != nil {
			return nil, false, err
		}
		if of.TotalUnits >= jobs.ManyUnits {
			of.Whole = v.Whole()
			return of, false, nil
		}
	}

	data, err = p.load(v)
	return data, true, err
}
