package result

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/store/jobs/cascade"
)

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
	// By which certificate of an earlier job answers were accepted, or would have been.
	Certificate *certificateView `json:"certificate,omitempty"`
	// What the oracle would have taken for the units that are accepted, by what it took on average
	// for those that were compared; nothing if that is not known.
	SavedTokens int64   `json:"saved_tokens,omitempty"`
	SavedUSD    float64 `json:"saved_usd,omitempty"`
}

// A certificateView is a certificate of an earlier job, as it was when the job began to go by it.
type certificateView struct {
	Kind       string `json:"kind"`
	Job        string `json:"job_id"`      // which certified it
	Made       string `json:"made_at"`     // when it did
	AgeSeconds int64  `json:"age_seconds"` // when this job began to go by it
	Units      int64  `json:"units"`       // of that job
	Labels     int64  `json:"labels"`      // of these that were compared
	Uses       int64  `json:"uses"`        // jobs that had used it before
	// Held says that answers were accepted by it. Else it did not hold any more, and the numbers beside it are of what the
	// job certified itself.
	Held bool `json:"held"`
}

func viewCertificate(t *cascade.Trial) *certificateView {
	c := t.Certificate
	if c == nil {
		return nil
	}
	return &certificateView{
		Kind: c.Kind, Job: c.Job, Made: time.UnixMicro(c.MadeMicros).UTC().Format(time.RFC3339), AgeSeconds: t.CertificateAge / 1_000_000,
		Units: c.Units, Labels: c.Drawn, Uses: c.Uses, Held: !t.Fallen,
	}
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
			Certificate: viewCertificate(t),
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
