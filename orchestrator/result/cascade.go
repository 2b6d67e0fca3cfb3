package result

import "context"

// A cascadeView is what was certified of a member of a cascade, as a result shows it.
type cascadeView struct {
	Member     string        `json:"member"`
	Oracle     string        `json:"oracle"`
	Target     float64       `json:"target"`
	Confidence float64       `json:"confidence"`
	Seed       uint64        `json:"seed,string"`
	Units      int64         `json:"units"`
	Labels     int64         `json:"labels"`   // units that were compared
	Accepted   int64         `json:"accepted"` // units whose values are the member's
	Measures   []measureView `json:"measures"`
	// What the oracle would have taken for the units that are accepted, by what it took on average
	// for those that were compared; nothing if that is not known.
	SavedTokens int64   `json:"saved_tokens,omitempty"`
	SavedUSD    float64 `json:"saved_usd,omitempty"`
}

// A measureView is what was certified of a field, or of whole records.
type measureView struct {
	Field string  `json:"field,omitempty"` // none for whole records
	First int64   `json:"certified"`       // so many units, those with the surest values
	Least float64 `json:"least_confidence"`
	Right int64   `json:"alike"` // labels of these that were like the oracle's
	Of    int64   `json:"of"`
	Ended string  `json:"ended"`
}

// cascades returns what was certified of the members of the job's cascade, as JSON; nothing if it
// has none.
func (r *result) cascades(ctx context.Context) ([]byte, error) {
	var all []cascadeView
	for member := int64(0); ; member++ {
		t, err := r.source.Trial(ctx, r.job.ID, member)
		if err != nil {
			return nil, err
		}
		if t == nil {
			break // each member but the oracle has one, in turn
		}
		if !t.Decided {
			continue
		}

		v := cascadeView{
			Member: t.Member, Oracle: t.Oracle, Target: t.Target, Confidence: t.Confidence, Seed: t.Seed,
			Units: t.Units, Labels: t.Drawn, Accepted: t.Accepted,
		}
		if t.Priced > 0 {
			v.SavedTokens = t.Accepted * t.OracleTokens / t.Priced
			v.SavedUSD = float64(t.Accepted*t.OracleCostMicros/t.Priced) / 1e6
		}
		for i, of := range t.Verdicts {
			v.Measures = append(v.Measures, measureView{
				Field: t.Measures[i], First: of.First, Least: float64(of.Least) / 1e6, Right: of.Right, Of: of.Labels, Ended: of.Ended,
			})
		}
		all = append(all, v)
	}

	if len(all) == 0 {
		return nil, nil
	}
	return marshalJSON(all)
}
