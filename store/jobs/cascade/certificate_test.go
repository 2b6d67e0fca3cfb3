package cascade_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs/cascade"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
)

// certified returns a certificate of a job, by one measure.
func certified(id mapreduce.JobID) *cascade.Certificate {
	return &cascade.Certificate{
		Kind: "bills", Member: "rules", Oracle: "a/b", Measures: []string{"total"}, Floors: []uint32{500_000}, Target: 0.9, Confidence: 0.95,
		Schema: "ab", Job: string(id), Seed: 7, Units: 30, Drawn: 12, Verdicts: []*storagev1.CascadeVerdict{{First: 30, Labels: 12, Right: 11}},
	}
}

// begin begins a trial of a new job, and returns it as it is stored.
func begin(w *jobstest.World, units []cascade.Scored, keep *cascade.Keeping) (mapreduce.JobID, *cascade.Trial) {
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(1))
	w.Must(j.Cascade.Begin(w.Ctx, id, 0, newTrial(1), units, keep))
	t, err := j.Cascade.Trial(w.Ctx, id, 0)
	w.Must(err)
	return id, t
}

// shows is an audit by which a certificate holds, and that adds labels to it.
func shows(c *cascade.Certificate) bool {
	c.Drift = cascade.FitDrift(c.Drift, 1)
	c.Drift[0].Labels, c.Drift[0].Right = c.Drift[0].Labels+5, c.Drift[0].Right+4
	return false
}

// A certificate is kept with the decision that it rests on, used by later jobs of the tenant, and dropped by the one whose
// labels are against it, which then decides by its own.
func TestCertificates(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	j, other := w.Nodes[0].Cascade, w.Nodes[1].Cascade
	units, at := scored(30, 1), &cascade.Keeping{ID: "c1"}

	first, trial := begin(w, units, at)
	if trial.Certificate != nil {
		t.Fatalf("the first job goes by %v", trial.Certificate)
	}
	w.Must(j.Decide(w.Ctx, first, 0, trial, units, at, certified(first)))
	w.Must(other.Decide(w.Ctx, first, 0, newTrial(1), units, at, certified("another"))) // comes late

	second, trial := begin(w, units, at)
	if trial.Certificate.GetJob() != string(first) || trial.Certificate.MadeMicros == 0 {
		t.Fatalf("the second job goes by %v, want that of %s", trial.Certificate, first)
	}
	w.Must(j.Decide(w.Ctx, second, 0, newTrial(1), units, at, nil)) // which goes by a certificate, and draws nothing
	if got, err := j.Trial(w.Ctx, second, 0); err != nil || got.Decided {
		t.Fatalf("a trial by a certificate was decided by labels of its own: %+v, %v", got, err)
	}
	for range 2 { // the second time it is decided
		w.Must(j.DecideBy(w.Ctx, second, 0, trial, units, at, shows))
	}

	list, err := other.Certificates(w.Ctx, "")
	w.Must(err)
	want := []mapreduce.Certificate{{
		ID: "c1", Kind: "bills", Member: "rules", Oracle: "a/b", Target: 0.9, Confidence: 0.95, Schema: "ab", Job: first, Seed: 7, Units: 30, Labels: 12, Uses: 1,
		Measures: []mapreduce.CertificateMeasure{{Field: "total", Floor: 0.5, Labels: 12, Right: 11, AuditLabels: 5, AuditedRight: 4}},
	}}
	if len(list) == 1 && !list[0].Made.IsZero() && !list[0].Used.Before(list[0].Made) {
		list[0].Made, list[0].Used = time.Time{}, time.Time{}
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Fatalf("certificates (-want +got):\n%s", diff)
	}

	third, trial := begin(w, units, at)
	fourth, late := begin(w, units, at)
	w.Must(j.DecideBy(w.Ctx, third, 0, trial, units, at, func(*cascade.Certificate) bool { return true }))
	w.Must(j.DecideBy(w.Ctx, fourth, 0, late, units, at, shows)) // it was dropped meanwhile
	for _, id := range []mapreduce.JobID{third, fourth} {
		got, err := j.Trial(w.Ctx, id, 0)
		w.Must(err)
		if got.Decided || !got.Fallen || got.Certificate.GetJob() != string(first) {
			t.Fatalf("a certificate that does not hold left %+v", got)
		}
		w.Must(j.DecideBy(w.Ctx, id, 0, got, units, at, shows)) // it has fallen
		w.Must(j.Decide(w.Ctx, id, 0, got, units, at, certified(id)))
		if got, err = j.Trial(w.Ctx, id, 0); err != nil || !got.Decided {
			t.Fatalf("a trial whose certificate fell is %+v, %v", got, err)
		}
	}
	if list, err = j.Certificates(w.Ctx, ""); err != nil || len(list) != 1 || list[0].Job != third {
		t.Fatalf("certificates %+v, %v, want that of %s", list, err, third)
	}

	w.Must(j.Drop(w.Ctx, "", "c1"))
	if err := j.Drop(w.Ctx, "", "c1"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("a certificate that is gone: %v", err)
	}
	if list, err := j.Certificates(w.Ctx, ""); err != nil || len(list) != 0 {
		t.Errorf("certificates %+v, %v", list, err)
	}
}

// A job that repeats another decides by that one's certificate, and leaves what is kept as it is.
func TestRepeatedCertificates(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j, units := w.Nodes[0], scored(5, 1)
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(1))
	trial := newTrial(1)
	trial.Certificate = certified("mr_1")
	w.Must(j.Cascade.Begin(w.Ctx, id, 0, trial, units, nil))
	begun, err := j.Cascade.Trial(w.Ctx, id, 0)
	w.Must(err)
	w.Must(j.Cascade.DecideBy(w.Ctx, id, 0, begun, units, nil, func(*cascade.Certificate) bool { t.Error("it is audited"); return true }))
	if got, err := j.Cascade.Trial(w.Ctx, id, 0); err != nil || !got.Decided || got.Fallen {
		t.Errorf("the trial is %+v, %v", got, err)
	}
	if list, err := j.Cascade.Certificates(w.Ctx, ""); err != nil || len(list) != 0 {
		t.Errorf("certificates %+v, %v", list, err)
	}
}

// No more are kept than may be.
func TestManyCertificates(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j, units := w.Nodes[0], scored(2, 1)
	for i := range mapreduce.MaxCertificates + 1 {
		at := &cascade.Keeping{ID: mapreduce.CertificateID(fmt.Sprintf("%032d", i))}
		id, trial := begin(w, units, at)
		w.Must(j.Cascade.Decide(w.Ctx, id, 0, trial, units, at, certified(id)))
		if trial.Unkept != (i == mapreduce.MaxCertificates) {
			t.Errorf("trial %d is unkept: %t", i, trial.Unkept)
		}
		if i < mapreduce.MaxCertificates {
			continue
		}
		events, err := j.Audit.List(w.Ctx, mapreduce.ListEventsQuery{Job: id, PageSize: 100})
		w.Must(err)
		said := ""
		for _, e := range events.Checkpoints {
			said += e.Message + "\n"
		}
		for _, want := range []string{"no certificate of it will be kept, as the tenant has 200", "no certificate is kept, as the tenant has 200"} {
			if !strings.Contains(said, want) {
				t.Errorf("the log does not say %q:\n%s", want, said)
			}
		}
	}

	// One that falls leaves room for its own.
	at := &cascade.Keeping{ID: mapreduce.CertificateID(fmt.Sprintf("%032d", 0))}
	id, trial := begin(w, units, at)
	w.Must(j.Cascade.DecideBy(w.Ctx, id, 0, trial, units, at, func(*cascade.Certificate) bool { return true }))
	got, err := j.Cascade.Trial(w.Ctx, id, 0)
	if err != nil || trial.Unkept || !got.Fallen || got.Unkept {
		t.Fatalf("a trial whose certificate fell is %+v: %v", got, err)
	}
	w.Must(j.Cascade.Decide(w.Ctx, id, 0, got, units, at, certified(id)))
	if list, err := j.Cascade.Certificates(w.Ctx, ""); err != nil || len(list) != mapreduce.MaxCertificates {
		t.Errorf("%d certificates, %v", len(list), err)
	}
}
