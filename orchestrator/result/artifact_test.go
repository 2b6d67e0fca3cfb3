package result_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

// manyBills are documents of one record each, of which every tenth shop has two.
func manyBills(n int) (map[string]string, []string) {
	docs, order := make(map[string]string, n), make([]string, n)
	for i := range n {
		order[i] = fmt.Sprintf("%06d.txt", i)
		docs[order[i]] = fmt.Sprintf("für Köln, Nummer %d\nSHOP: Anker %d\nCITY: Kiel\nTOTAL: %d.50\n", i, i-i%10/9, i)
	}
	return docs, order
}

// partsOf returns the parts of a result but for the job.
func partsOf(n *enginetest.Node, id mapreduce.JobID, partial bool) (all []*mapreduce.ResultPart, err error) {
	err = n.GetResult(n.T.Context(), id, partial, func(p *mapreduce.ResultPart) error {
		if p.Job == nil {
			all = append(all, p)
		}
		return nil
	})
	return all, err
}

// steps counts the transactions of some steps.
type steps struct {
	mu sync.Mutex
	n  map[failpoint.Point]int
}

func (s *steps) hook(p failpoint.Point) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n[p]++
}

func (s *steps) of(step failpoint.Step) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n[step.After()]
}

// assembled runs a job whose result is small, or is a unit that is claimed.
func assembled(t *testing.T, documents int, small bool) (*enginetest.Cluster, *enginetest.Node, mapreduce.JobID, *steps) {
	t.Helper()
	c, s := enginetest.NewCluster(t), &steps{n: make(map[failpoint.Point]int)}
	c.Hook = s.hook
	config := enginetest.Quick(orchestrator.Config{Adopt: true, SmallResult: 1})
	if small {
		config.SmallResult = int64(documents)
	}
	n := c.Orchestrator(config)
	leave := c.WorkerFor("rules", enginetest.ByRules(), worker.Config{Slots: 4, Prefetch: 4}, n)
	defer leave()
	docs, order := manyBills(documents)
	spec := enginetest.Extracting(t, enginetest.Billed)
	spec.Provider = "rules"
	id, _ := n.Run(spec, enginetest.Texts(docs, order...))
	return c, n, id, s
}

// What is stored is what would be assembled of the units, it is stored once, and its
// unit is none of those that users count.
func TestTheResultIsStoredWithTheEndOfItsJob(t *testing.T) {
	for _, tt := range []struct {
		name      string
		documents int
		small     bool
		stored    int // transactions beside the end of the job
	}{
		{"one document", 1, true, 0},
		{"small", 60, true, 0},
		{"a unit of its own", 60, false, 1},
		{"too large to be small", 1500, true, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testenv.Variant(t, tt.stored < 2)

			_, n, id, steps := assembled(t, tt.documents, tt.small)
			got, err := partsOf(n, id, false)
			if err != nil {
				t.Fatal(err)
			}
			want, err := partsOf(n, id, true)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" || len(got) <= tt.documents {
				t.Errorf("%d parts (-assembled +stored):\n%s", len(got), diff)
			}
			if a, c := steps.of(failpoint.Assemble), steps.of(failpoint.Complete); a != tt.stored || c != 1 {
				t.Errorf("%d transactions stored the result, and %d ended the job; want %d and 1", a, c, tt.stored)
			}
			job, err := n.GetJob(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			units := n.Units(id)
			if units[mapreduce.ResultUnit] != nil || job.TotalUnits != int64(len(units)) || job.CompletedUnits != job.TotalUnits || job.RunningUnits != 0 {
				t.Errorf("%d units are listed, and of %d of the job %d are complete", len(units), job.TotalUnits, job.CompletedUnits)
			}
			n.Sound()
		})
	}
}

// A stored result that is damaged is found by doctor, and given to nobody as a whole:
// its summary does not come.
func TestADamagedResultIsNotGiven(t *testing.T) {
	for name, damage := range map[string]func(tx store.Tx, id mapreduce.JobID, value []byte){
		"gone": func(tx store.Tx, id mapreduce.JobID, _ []byte) {
			tx.Clear(keys.New().Outputs(id).ResultChunk(mapreduce.ResultUnit, 1, 1))
		},
		"changed": func(tx store.Tx, id mapreduce.JobID, value []byte) {
			value[len(value)/2] ^= 1
			tx.Set(keys.New().Outputs(id).ResultChunk(mapreduce.ResultUnit, 1, 1), value)
		},
		"one too many": func(tx store.Tx, id mapreduce.JobID, value []byte) {
			tx.Set(keys.New().Outputs(id).ResultChunk(mapreduce.ResultUnit, 1, 99), value)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, n, id, _ := assembled(t, 200, false)
			err := store.NewDB(c.Store, store.Config{}).Update(t.Context(), func(tx store.Tx) error {
				value, err := tx.Get(t.Context(), keys.New().Outputs(id).ResultChunk(mapreduce.ResultUnit, 1, 1))
				if err == nil && value == nil {
					err = errors.New("the result has one chunk")
				}
				if err == nil {
					damage(tx, id, value)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			parts, err := partsOf(n, id, false)
			if errs.KindOf(err) != errs.DataLoss || !strings.Contains(err.Error(), "ask for a partial result") {
				t.Errorf("the result ended with %v", err)
			}
			if len(parts) > 0 && parts[len(parts)-1].Summary != nil {
				t.Error("the summary came")
			}
			if found := strings.Join(n.Findings(), "\n"); !strings.Contains(found, "result of unit assemble_result is not what was stored") {
				t.Errorf("doctor finds %q", found)
			}
			if _, err := partsOf(n, id, true); err != nil {
				t.Errorf("the partial result: %v", err)
			}
		})
	}
}

// A result that would show what is not so fails its job, which names the unit, and goes
// on once that is mended.
func TestAResultThatCannotBeAssembledFailsItsJob(t *testing.T) {
	testenv.Raced(t)

	for _, small := range []bool{true, false} {
		t.Run(fmt.Sprintf("small %t", small), func(t *testing.T) {
			c := enginetest.NewCluster(t)
			config := enginetest.Quick(orchestrator.Config{Adopt: true, SmallResult: 1})
			if small {
				config.SmallResult = 3
			}
			n := c.Orchestrator(config)
			may := make(chan struct{})
			leave := c.WorkerFor("rules", lastly{enginetest.ByRules(), may}, worker.Config{Slots: 1}, n)
			defer leave()
			docs, order := enginetest.Bills()
			spec := enginetest.Extracting(t, enginetest.Billed)
			spec.Provider = "rules"
			job, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, order...))
			if err != nil {
				t.Fatal(err)
			}
			id := job.ID
			n.Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits == 3 })
			var was *storagev1.Result
			n.Alter(t, c, id, "c", func(r *storagev1.Result) {
				was = proto.CloneOf(r)
				enginetest.Says(t, func(m *storagev1.Output) { m.Citations[0].Quote = "Ruderboot" })(r)
			})
			close(may)
			end := n.WantEnd(id, mapreduce.JobFailed)
			if !strings.Contains(end.Error, "its result cannot be assembled") || !strings.Contains(end.Error, `"c" cites`) {
				t.Errorf("the job failed with %q", end.Error)
			}
			n.Alter(t, c, id, "c", func(r *storagev1.Result) { proto.Reset(r); proto.Merge(r, was) })
			if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
				t.Fatal(err)
			}
			n.WantEnd(id, mapreduce.JobComplete)
			if parts, err := partsOf(n, id, false); err != nil || len(parts) < 4 {
				t.Errorf("%d parts, %v", len(parts), err)
			}
		})
	}
}

// lastly runs the last reduce once it may.
type lastly struct {
	step.Runner
	may <-chan struct{}
}

func (l lastly) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if task.Unit == mapreduce.FinalUnit {
		<-l.may
	}
	return l.Runner.Run(ctx, task, calls)
}
