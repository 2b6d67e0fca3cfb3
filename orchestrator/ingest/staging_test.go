package ingest_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// While the store takes its time with a part of a submission, its next documents are read.
// All parts are stored before the job is there.
func TestDocumentsAreReadWhileAPartIsStored(t *testing.T) {
	testenv.Raced(t)

	enginetest.VirtuallyIfItCan(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		var parts atomic.Int64
		read := make(chan struct{}) // closed once documents of the second part were read
		c.Hook = func(p failpoint.Point) {
			switch p {
			case failpoint.Stage.Before():
				select {
				case <-read:
				case <-time.After(3 * time.Second): // a transaction may take five
					t.Error("no documents are read while a part is stored")
				}
			case failpoint.Stage.After():
				parts.Add(1)
			case failpoint.Publish.Before():
				if n := parts.Load(); n < 5 {
					t.Errorf("the job is made with %d of 5 parts stored", n)
				}
			}
		}
		n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 8, Prefetch: 4}, n)
		const docs = 2100
		job, err := n.Orch.SubmitJob(t.Context(), mapreduce.Local(""), enginetest.Script(nil), func(yield func(*mapreduce.Document, error) bool) {
			i := 0
			for d, err := range enginetest.Documents(docs) {
				if i++; i == 700 {
					close(read)
				}
				if !yield(d, err) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if units := len(n.Units(job.ID)); units < docs {
			t.Errorf("the job has %d units of %d documents", units, docs)
		}
		n.WantEnd(job.ID, mapreduce.JobComplete)
	})
}

// A submission ends with the first of its parts that cannot be stored, whatever comes
// after that, and nothing is left of it.
func TestAPartThatIsNotStoredEndsItsSubmission(t *testing.T) {
	testenv.Raced(t)

	gone := errs.New(errs.Cancelled, "the client has gone")
	for _, tt := range []struct {
		name   string
		same   int  // a document that has the id of the first; 0 if none has
		fails  int  // a document that cannot be read; 0 if all can
		panic  bool // while the first part is stored
		broken int  // a document that makes the program panic; 0 if none does
		want   func(error) bool
	}{
		{"it has an id twice", 3, 0, false, 0, func(err error) bool {
			return errs.KindOf(err) == errs.Invalid && strings.Contains(err.Error(), "documents 1 and 4")
		}},
		{"a later one has the id of the first", 1700, 0, false, 0, func(err error) bool {
			return errs.KindOf(err) == errs.Invalid && strings.Contains(err.Error(), "documents 1 and 1701")
		}},
		{"the documents break off before it is", 3, 600, false, 0, func(err error) bool { return errors.Is(err, gone) }},
		{"the documents break off", 0, 600, false, 0, func(err error) bool { return errors.Is(err, gone) }},
		{"a mistake of the program", 0, 0, true, 0, func(err error) bool { return errors.Is(err, cluster.ErrPanic) }},
		{"a mistake of the program with a document", 0, 0, false, 600, func(err error) bool { return errors.Is(err, cluster.ErrPanic) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := enginetest.NewCluster(t)
			c.Hook = func(p failpoint.Point) {
				if tt.panic && p == failpoint.Stage.Before() {
					panic("a mistake of the program")
				}
			}
			n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
			before := enginetest.Pairs(t, c.Store)
			read := 0
			_, err := n.Orch.SubmitJob(t.Context(), mapreduce.Local(""), enginetest.Script(nil), func(yield func(*mapreduce.Document, error) bool) {
				for d, err := range enginetest.Documents(5000) {
					if read > 0 && read == tt.same {
						d.ID = mapreduce.DocumentID(fmt.Sprintf("doc-%07d", 0))
					}
					if read++; read == tt.fails {
						yield(nil, gone)
						return
					}
					if read == tt.broken {
						panic("a mistake of the program")
					}
					if !yield(d, err) {
						return
					}
				}
			})
			if err == nil || !tt.want(err) {
				t.Errorf("the submission ended with %v", err)
			}
			if read > 3500 {
				t.Errorf("%d documents were read of a submission that had failed", read)
			}
			if diff := cmp.Diff(before, enginetest.Pairs(t, c.Store)); diff != "" {
				t.Errorf("something is left (-before +after):\n%s", diff)
			}
		})
	}
}
