package check_test

import (
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
)

func TestCheckComparesWhatIsSuperseded(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(9))
	bad := w.Claim(j, id, w.Session(j), 1)[0]
	w.Report(j, jobstest.Errored(id, bad, protocol.PermanentUnit))
	w.MapAll(j, id)
	w.Run(j, id)
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	w.Run(j, id)
	m := &jobstest.Mixture{World: w}
	w.Write(jobstest.Edit(m, w.Space.Job(id).Record(), new(storagev1.Job), func(job *storagev1.Job) { job.Superseded[0].TokensIn-- }))
	if found := w.Findings(); len(found) != 1 || found[0].Severity != mapreduce.Wrong {
		t.Errorf("a token less: %+v", found)
	}
	// Jobs of before it was kept lack some.
	w.Write(jobstest.Edit(m, w.Space.Job(id).Record(), new(storagev1.Job), func(job *storagev1.Job) { job.Superseded, job.Carried = nil, false }))
	w.Healthy()
}
