package cascade

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Certificate is what later jobs accept answers by.
type Certificate = storagev1.Certificate

// FitDrift returns what labels have shown by each of so many measures: nothing yet of those that are not there.
func FitDrift(drift []*storagev1.CertificateDrift, measures int) []*storagev1.CertificateDrift {
	for len(drift) < measures {
		drift = append(drift, new(storagev1.CertificateDrift))
	}
	return drift[:measures]
}

// A Keeping is where the certificate of a trial is kept: under the hash of all that has to be the same in jobs that
// use it.
type Keeping struct {
	Tenant mapreduce.TenantID
	ID     mapreduce.CertificateID
}

// read returns the certificate that is kept; nil if there is none.
func (st *Store) read(ctx context.Context, r store.Reader, at *Keeping) (*Certificate, error) {
	c := new(Certificate)
	found, err := records.Read(ctx, r, st.Keys.Tenant(at.Tenant).Certificate(at.ID), c)
	if err != nil || !found {
		return nil, err
	}
	return c, nil
}

// keep keeps a certificate unless there is one, and returns what is to be said of that.
func (st *Store) keep(ctx context.Context, tx store.Tx, at *Keeping, made *Certificate) (said string, err error) {
	before, err := st.read(ctx, tx, at)
	if err != nil || before != nil {
		return "", err
	}

	switch full, err := st.isFull(ctx, tx, at); {
	case err != nil:
		return "", err
	case full: // others were kept since the trial began
		return fmt.Sprintf("; no certificate is kept, as the tenant has %d: drop some", mapreduce.MaxCertificates), nil
	}
	made.MadeMicros = st.NowMicros()
	tx.Set(st.Keys.Tenant(at.Tenant).Certificate(at.ID), records.Encode(made))
	return fmt.Sprintf("; certificate %s is kept for later jobs over documents of the kind %s", at.ID, made.Kind), nil
}

// isFull reports whether there is no room for a certificate. Two that are kept at once may be one too many: so it is no
// reason to run again if others keep some.
func (st *Store) isFull(ctx context.Context, tx store.Tx, at *Keeping) (bool, error) {
	all, more, err := tx.Snapshot().GetRange(ctx, st.Keys.Tenant(at.Tenant).Certificates(), store.RangeOptions{Limit: mapreduce.MaxCertificates})
	return more || len(all) >= mapreduce.MaxCertificates, err
}

// isUsing reports whether a trial has begun that is not decided, and goes by a certificate.
func isUsing(t *storagev1.CascadeTrial) bool {
	return t != nil && !t.Decided && t.Certificate != nil && !t.Fallen
}

// DecideBy stores the decision of a trial by the certificate that it began with, about the same units as Begin, and adds
// to that what its labels have shown, unless audit says that the certificate does not hold any more: then it is dropped. If
// that is so, or if somebody has dropped it, the trial has fallen and draws its own labels. If keep is nil, the trial repeats
// that of another job, and the certificate is left as it is.
func (st *Store) DecideBy(ctx context.Context, id mapreduce.JobID, member int64, t *Trial, units []Scored, keep *Keeping, audit func(*Certificate) (rejects bool)) error {
	if _, err := st.putParts(ctx, id, member, isUsing, units); err != nil {
		return err
	}

	key := st.Keys.Cascade(id, member).Trial()
	return st.change(ctx, failpoint.Certify, id, member, func(tx store.Tx, before *storagev1.CascadeTrial) error {
		if !isUsing(before) {
			return nil
		}
		holds, why := true, ""
		if keep != nil {
			var err error
			if holds, why, err = st.audit(ctx, tx, keep, t.Certificate, audit); err != nil {
				return err
			}
		}

		if !holds {
			var err error
			before.Fallen = true
			if before.Unkept, err = st.isFull(ctx, tx, keep); err != nil {
				return err
			}
			tx.Set(key, records.Encode(before))
			st.note(tx, id, fmt.Sprintf("the certificate of job %s %s: how many answers of %s are accepted is being certified anew", t.Certificate.Job, why, t.Member))
			return nil
		}
		t.Decided = true
		tx.Set(key, records.Encode(t.toStored()))
		st.note(tx, id, fmt.Sprintf("%d of %s of a cascade are accepted as %s answered them, by the certificate of job %s, after %d were compared with %s",
			t.Accepted, plural.Count(t.Units, "unit"), t.Member, t.Certificate.Job, t.Drawn, t.Oracle))
		return nil
	})
}

// audit adds what labels have shown to a certificate that a trial began with, or drops it, and reports whether it holds.
func (st *Store) audit(ctx context.Context, tx store.Tx, at *Keeping, began *Certificate, audit func(*Certificate) bool) (holds bool, why string, err error) {
	c, err := st.read(ctx, tx, at)
	key := st.Keys.Tenant(at.Tenant).Certificate(at.ID)
	switch {
	case err != nil:
		return false, "", err
	case c == nil || c.Job != began.Job || c.MadeMicros != began.MadeMicros:
		return false, "was dropped", nil
	case audit(c):
		tx.Clear(key)
		return false, "does not hold any more, and was dropped", nil
	}

	c.Uses++
	c.UsedMicros = st.NowMicros()
	tx.Set(key, records.Encode(c))
	return true, "", nil
}

// Certificates returns those of a tenant, by their ids.
func (st *Store) Certificates(ctx context.Context, t mapreduce.TenantID) ([]mapreduce.Certificate, error) {
	var all []mapreduce.Certificate
	err := st.db.View(ctx, func(tx store.Tx) error {
		all = nil
		pairs, _, err := tx.Snapshot().GetRange(ctx, st.Keys.Tenant(t).Certificates(), store.RangeOptions{Limit: 2 * mapreduce.MaxCertificates})
		if err != nil {
			return err
		}

		for _, kv := range pairs {
			_, rest, err := st.Keys.Last(kv.Key)
			if err != nil {
				return err
			}
			rest.Text() // the tenant
			c := new(Certificate)
			if err := records.Decode(kv.Key, kv.Value, c); err != nil {
				return err
			}
			all = append(all, view(mapreduce.CertificateID(rest.Text()), c))
		}
		return nil
	})
	return all, err
}

// view returns a certificate as it is shown.
func view(id mapreduce.CertificateID, c *Certificate) mapreduce.Certificate {
	v := mapreduce.Certificate{
		ID: id, Kind: c.Kind, Member: c.Member, Oracle: c.Oracle, Target: c.Target, Confidence: c.Confidence, Schema: c.Schema,
		Job: mapreduce.JobID(c.Job), Made: time.UnixMicro(c.MadeMicros).UTC(), Seed: c.Seed, Units: c.Units, Labels: c.Drawn, Uses: c.Uses,
	}
	if c.UsedMicros > 0 {
		v.Used = time.UnixMicro(c.UsedMicros).UTC()
	}

	for i := range min(len(c.Measures), len(c.Floors)) {
		m := mapreduce.CertificateMeasure{Field: c.Measures[i], Floor: float64(c.Floors[i]) / mapreduce.MaxScore}
		if i < len(c.Verdicts) {
			m.Labels, m.Right = c.Verdicts[i].Labels, c.Verdicts[i].Right
		}
		if i < len(c.Drift) {
			m.AuditLabels, m.AuditedRight = c.Drift[i].Labels, c.Drift[i].Right
		}
		v.Measures = append(v.Measures, m)
	}
	return v
}

// Drop removes a certificate. Jobs that began with it and are not decided draw their own labels.
func (st *Store) Drop(ctx context.Context, t mapreduce.TenantID, id mapreduce.CertificateID) error {
	return st.db.Update(ctx, failpoint.Disown, func(tx store.Tx) error {
		at := &Keeping{t, id}
		c, err := st.read(ctx, tx, at)
		if err != nil {
			return err
		}
		if c == nil {
			return errs.New(errs.NotFound, "there is no certificate %.64q", id)
		}
		tx.Clear(st.Keys.Tenant(t).Certificate(id))
		return nil
	})
}
