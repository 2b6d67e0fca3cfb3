package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
)

// batchOf returns bills whose names begin with a name, so that jobs are about units of other names.
func batchOf(name string, n int, wrong func(i int) bool) (docs map[string]string, order []string) {
	some, ids := bills(n, wrong)
	docs = make(map[string]string, n)
	for _, id := range ids {
		docs[name+id], order = some[id], append(order, name+id)
	}
	return docs, order
}

// ofKind are the variables of cascades whose certificates are kept.
var ofKind = map[string]string{"cascade_target": "0.9", "cascade_kind": "bills"}

// certificates returns those that are kept.
func certificates(t *testing.T, n *enginetest.Node) []mapreduce.Certificate {
	t.Helper()
	list, err := n.Jobs.Cascade.Certificates(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func seldom(i int) bool { return i%100 == 3 }
func often(i int) bool  { return i%5 < 3 }
func never(int) bool    { return false }

// TestCertificates has jobs over more documents of a kind use what the first has certified, with fewer labels, until the
// documents are others.
func TestCertificates(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f, last := cascadeFleet(t, 1)
		run := func(name string, n int, wrong func(int) bool, vars map[string]string) (mapreduce.JobID, outcome, string) {
			docs, order := batchOf(name, n, wrong)
			id, result := f.Any().Run(cascading(t, vars), enginetest.Texts(docs, order...))
			return id, outcomeOf(t, f.Any(), id, last), string(result.Summary.Cascades)
		}

		first, one, said := run("a", 300, seldom, ofKind)
		list := certificates(t, f.Any())
		if len(list) != 1 || list[0].Job != first || list[0].Labels != one.drawn || strings.Contains(said, "certificate") {
			t.Fatalf("the first job draws %d, says %s, and leaves %+v", one.drawn, said, list)
		}

		// Another target, and another kind, are certified by themselves.
		_, other, _ := run("b", 300, seldom, map[string]string{"cascade_target": "0.8", "cascade_kind": "bills"})
		_, another, _ := run("c", 300, seldom, map[string]string{"cascade_target": "0.9", "cascade_kind": "invoices"})
		if list = certificates(t, f.Any()); len(list) != 3 {
			t.Fatalf("%d and %d were drawn, and %d certificates are kept", other.drawn, another.drawn, len(list))
		}

		_, two, said := run("d", 400, seldom, ofKind)
		if two.drawn != 20 || two.accepted < 350 || !strings.Contains(said, `"certificate":{"kind":"bills","job_id":"`+string(first)) || !strings.Contains(said, `"uses":0,"held":true`) {
			t.Fatalf("the second job draws %d, accepts %d and says %s", two.drawn, two.accepted, said)
		}

		last4, three, said := run("e", 400, often, ofKind)
		if three.drawn <= 20 || !strings.Contains(said, `"uses":1,"held":false`) {
			t.Fatalf("a job over other documents draws %d, accepts %d and says %s", three.drawn, three.accepted, said)
		}
		for _, c := range certificates(t, f.Any()) {
			if c.Kind == "bills" && c.Target == 0.9 && c.Job != last4 {
				t.Errorf("the certificate that does not hold is kept: %+v", c)
			}
		}
		f.Any().Sound()
	})
}

// TestRepeatedCertificate repeats a job that went by a certificate, which is gone since: it comes to the same, without an answer
// that was not kept.
func TestRepeatedCertificate(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f, last := cascadeFleet(t, 1)
		docs, order := batchOf("a", 200, never)
		f.Any().Run(cascading(t, ofKind), enginetest.Texts(docs, order...))

		docs, order = batchOf("b", 200, seldom)
		spec := cascading(t, ofKind)
		spec.Capture = mapreduce.CaptureFull
		id, before := f.Any().Run(spec, enginetest.Texts(docs, order...))
		want := outcomeOf(t, f.Any(), id, last)
		if err := f.Any().Jobs.Cascade.Drop(t.Context(), "", certificates(t, f.Any())[0].ID); err != nil {
			t.Fatal(err)
		}

		again, after := f.Any().Run(mapreduce.JobSpec{Replay: id}, enginetest.Texts(nil))
		if diff := cmp.Diff(want, outcomeOf(t, f.Any(), again, last), cmp.AllowUnexported(outcome{})); diff != "" {
			t.Errorf("the job and its repetition (-want +got):\n%s", diff)
		}
		if left := certificates(t, f.Any()); len(left) != 0 || !cmp.Equal(before.Records, after.Records) {
			t.Errorf("%d certificates are kept; %d records, and %d before, or others", len(left), len(after.Records), len(before.Records))
		}
	})
}

// TestCertificatesGoOnWhereTheyWere kills orchestrators at each point of jobs that make, use and drop a certificate.
func TestCertificatesGoOnWhereTheyWere(t *testing.T) {
	testenv.Lengthy(t)

	for _, tt := range []struct {
		name  string
		n     int
		wrong func(int) bool
	}{{"holds", 150, seldom}, {"falls", 400, often}} {
		docs, order := batchOf("b", tt.n, tt.wrong)
		earlier, order1 := batchOf("a", 150, never)
		var want outcome
		var wanted []mapreduce.Certificate
		enginetest.Virtually(t, func(t *testing.T) {
			f, last := cascadeFleet(t, 1)
			f.Any().Run(cascading(t, ofKind), enginetest.Texts(earlier, order1...))
			id, _ := f.Any().Run(cascading(t, ofKind), enginetest.Texts(docs, order...))
			if list := certificates(t, f.Any()); (len(list) == 1 && list[0].Job != id) != (tt.name == "holds") {
				t.Fatalf("after both jobs these are kept: %+v", list)
			}
			want, wanted = outcomeOf(t, f.Any(), id, last), undated(certificates(t, f.Any()))
		})

		for _, step := range []failpoint.Step{failpoint.Census, failpoint.Certify, failpoint.Judge} {
			for _, point := range []failpoint.Point{step.Before(), step.After()} {
				t.Run(tt.name+"/"+string(point), func(t *testing.T) {
					enginetest.Virtually(t, func(t *testing.T) {
						f, last := cascadeFleet(t, 2)
						f.Any().Run(cascading(t, ofKind), enginetest.Texts(earlier, order1...))
						f.KillAt(point)
						job, err := f.Any().SubmitJob(t.Context(), cascading(t, ofKind), enginetest.Texts(docs, order...))
						if err != nil {
							t.Fatal(err)
						}
						killThrice(t, f, point, job.ID)

						if diff := cmp.Diff(want, outcomeOf(t, f.Any(), job.ID, last), cmp.AllowUnexported(outcome{})); diff != "" {
							t.Errorf("undisturbed and disturbed (-want +got):\n%s", diff)
						}
						if diff := cmp.Diff(wanted, undated(certificates(t, f.Any()))); diff != "" {
							t.Errorf("certificates, undisturbed and disturbed (-want +got):\n%s", diff)
						}
						for unit, times := range last.asked {
							if times > 1 {
								t.Errorf("%s was paid %d times", unit, times)
							}
						}
						f.Any().Sound()
					})
				})
			}
		}
	}
}

// undated returns certificates without what differs from run to run.
func undated(all []mapreduce.Certificate) []mapreduce.Certificate {
	for i := range all {
		all[i].Job, all[i].Made, all[i].Used = "", all[i].Made.Truncate(1<<62), all[i].Used.Truncate(1<<62)
	}
	return all
}
