package dashboard

import "maps"

// manyUnits is how many units a job has whose result, log and failed units are not read before the page is there.
const manyUnits = 20_000

// first makes a page as it is sent first: of a large job without what the stream brings as soon as it has been read.
// Whole reports that nothing is missing.
func (p page) first(v *visit) (data any, whole bool, err error) {
	if p.early != nil && !v.query.Has("whole") {
		of, err := p.early(v)
		if err != nil {
			return nil, false, err
		}
		if of.TotalUnits >= manyUnits {
			of.Whole = v.whole()
			return of, false, nil
		}
	}
	data, err = p.load(v)
	return data, true, err
}

// whole returns the address of the page that is sent when all of it has been read, for browsers without scripts.
func (v *visit) whole() string {
	query := maps.Clone(v.query)
	query.Set("whole", "1")
	return address(v.path, query)
}

// earlyHead returns what makes a page of a job that shows its head at first.
func earlyHead(here string) func(v *visit) (*jobPage, error) {
	return func(v *visit) (*jobPage, error) { return openJob(v, here) }
}

// earlyRecords makes the page of records without any.
func earlyRecords(v *visit) (*jobPage, error) {
	filter, err := readRecordFilter(v)
	if err != nil {
		return nil, err
	}
	p, err := openJob(v, "records")
	if err != nil {
		return nil, err
	}
	p.Content = &recordList{Filter: filter}
	return p, nil
}
