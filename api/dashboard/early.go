package dashboard

// first makes a page as it is sent first: of a large job without what the stream brings as soon as it has been read.
// Whole reports that nothing is missing.
func (p page) first(v *visit) (data any, whole bool, err error) {
	if p.early != nil && !v.query.Has("whole") && (p.quick == nil || !p.quick(v)) {
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
