package dispatch_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// A liar changes the outputs of some units as a hostile worker would, which nothing
// on its side checks.
type liar struct {
	agent.Agent
	kind mapreduce.UnitKind
	lie  func(*storagev1.Output)
}

func (l liar) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	res, err := l.Agent.Run(ctx, task, calls)
	if err != nil || task.Kind != l.kind {
		return res, err
	}
	res.Output, err = enginetest.Altered(res.Output, l.lie)
	return res, err
}

// cites changes the first citation of an output, and gives it the id of what it
// then says.
func cites(docs map[string]string, change func(*storagev1.Citation)) func(*storagev1.Output) {
	return func(m *storagev1.Output) {
		c := m.Citations[0]
		change(c)
		sum := sha256.Sum256([]byte(docs[c.Document]))
		id := refs.New(output.HashDocument(c.Document, sum[:]), int(c.ByteStart), int(c.ByteEnd), c.Quote)
		c.Id = id[:]
	}
}

type lie struct {
	name string
	kind mapreduce.UnitKind
	tell func(*storagev1.Output)
	why  string
}

// lies are what hostile workers have been seen to say, or may.
func lies(docs map[string]string) []lie {
	c := func(name, why string, change func(*storagev1.Citation)) lie {
		return lie{name, mapreduce.KindMap, cites(docs, change), why}
	}
	value := func(path, json string) func(*storagev1.Output) {
		return func(m *storagev1.Output) {
			for _, f := range m.Entries[0].Fields {
				if f.Path == path {
					f.Candidates[0].Value = []byte(json)
				}
			}
		}
	}
	return []lie{
		c("a quote that nobody wrote", "is not the text", func(c *storagev1.Citation) { c.Quote = strings.Repeat("x", len(c.Quote)) }),
		c("a unit that there is not", "as found by ghost", func(c *storagev1.Citation) { c.Unit = "ghost" }),
		c("the last reduce as the unit", "is not the text", func(c *storagev1.Citation) { c.Unit, c.Quote = "final", "invented" }),
		c("another document", "cites zzz as found by", func(c *storagev1.Citation) { c.Document = "zzz" }),
		c("other characters", "stands at characters", func(c *storagev1.Citation) { c.Start++; c.End++ }),
		c("bytes beyond all", "did not read", func(c *storagev1.Citation) { c.ByteStart, c.ByteEnd = math.MaxInt64-1, math.MaxInt64 }),
		c("negative bytes", "did not read", func(c *storagev1.Citation) { c.ByteStart, c.ByteEnd = math.MinInt64, 4 }),
		c("text outside, of its own document", "is not the text", func(c *storagev1.Citation) { c.Outside, c.ByteStart, c.ByteEnd = true, 0, 1<<40 }),
		c("a grade that is none", "has the grade", func(c *storagev1.Citation) { c.Grade = "certified" }),
		c("a grade that is never shown", "has the grade", func(c *storagev1.Citation) { c.Grade = "near" }),
		c("an exact one that half agrees", "a coverage of 0.5", func(c *storagev1.Citation) { c.Coverage, c.Density = 0.5, 0.5 }),
		{"a number that is a large object", mapreduce.KindMap, value("total", `{"lots":"`+strings.Repeat("x", 5000)+`"}`), "is no value of the field"},
		{"a text too long to be shown as refused", mapreduce.KindMap, value("total", `"`+strings.Repeat("x", 5000)+`"`), "is no value of the field"},
		{"a text that is a large list", mapreduce.KindMap, value("city", `["`+strings.Repeat("x", 5000)+`"]`), "is no value of the field"},
		{"a field that there is not", mapreduce.KindMap, func(m *storagev1.Output) { m.Entries[0].Fields[0].Path = "aaa" }, "has no field"},
		{"a record of another unit", mapreduce.KindMap, func(m *storagev1.Output) { m.Entries[0].Members[0].Unit ^= 1 << 20 }, "is not its own"},
		{"no record", mapreduce.KindMap, func(m *storagev1.Output) { m.Entries[0].Members = nil }, "stands for no record"},
		{"another's source", mapreduce.KindMap, func(m *storagev1.Output) { m.Entries[0].Sources[0].Document = "zzz" }, "which it did not read"},
		{"another's name", mapreduce.KindMap, func(m *storagev1.Output) { m.Entries[0].Entity = "document:zzz" }, "is not its own"},
		{"a confidence beyond all", mapreduce.KindMap, func(m *storagev1.Output) { m.Entries[0].Fields[0].Candidates[0].Mentions[0].Confidence = 1 << 40 }, "millionths"},
		{"no record, of a reduce", mapreduce.KindFinal, func(m *storagev1.Output) { m.Entries[0].Members = nil }, "stands for no record"},
		{"one record less, of a reduce", mapreduce.KindFinal, func(m *storagev1.Output) { m.Entries[0].Members = m.Entries[0].Members[:1] }, "names the source b, which is none"},
		{"a record of nobody, of a reduce", mapreduce.KindFinal, func(m *storagev1.Output) { m.Entries[0].Members[0].Unit = 77 << 20 }, "was not given it"},
		{"a quote, of a reduce", mapreduce.KindFinal, cites(docs, func(c *storagev1.Citation) { c.Unit, c.Quote = "final", "invented" }), "was not given"},
		{"a grade, of a reduce", mapreduce.KindFinal, func(m *storagev1.Output) { m.Citations[0].Grade = "fuzzy" }, "changed the citation"},
	}
}

// TestLiesAreRefused: what a hostile worker says of its units is refused when it
// reports it, with the reason, and a worker that tells the truth then ends the job.
func TestLiesAreRefused(t *testing.T) {
	docs, order := enginetest.Bills()
	for _, l := range lies(docs) {
		t.Run(l.name, func(t *testing.T) {
			testenv.Variant(t, l.name == "no record")

			c := enginetest.NewCluster(t)
			config, log := enginetest.Logged(enginetest.Quick(orchestrator.Config{Adopt: true}))
			n := c.Orchestrator(config)
			spec := enginetest.Extracting(t, enginetest.Billed)
			spec.Provider, spec.MaxAttempts = "rules", 1
			leave := c.WorkerFor("rules", liar{enginetest.ByRules(), l.kind, l.tell}, worker.Config{Slots: 2}, n)
			job, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, order...))
			if err != nil {
				t.Fatal(err)
			}
			end := n.WantEnd(job.ID, mapreduce.JobFailed)
			if !strings.Contains(end.Error, "was refused") || !strings.Contains(end.Error, l.why) {
				t.Errorf("the job failed with %q, want it to say that an output was refused: %s", end.Error, l.why)
			}
			lines := log.Lines("output refused") // outputs are checked side by side
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "refused=1") }) {
				t.Errorf("the worker is not noted: %q", lines)
			}
			leave()
			c.WorkerFor("rules", enginetest.ByRules(), worker.Config{Slots: 2}, n)
			if l.kind == mapreduce.KindMap {
				_, err = n.ResumeJob(t.Context(), job.ID, mapreduce.Resume{})
			} else {
				job, err = n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, order...))
			}
			if err != nil {
				t.Fatal(err)
			}
			n.WantEnd(job.ID, mapreduce.JobComplete)
			got := n.Result(job.ID)
			enginetest.CheckQuotes(t, docs, got)
			got.Cited(t, docs)
			n.Sound()
		})
	}
}

// TestAnotherWorkerRunsWhatOneLiedAbout: a refused output is the failure of an
// attempt, and not of its unit.
func TestAnotherWorkerRunsWhatOneLiedAbout(t *testing.T) {
	docs, order := enginetest.Bills()
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	l := lies(docs)[0]
	once := 0
	hostile := liar{enginetest.ByRules(), l.kind, func(m *storagev1.Output) {
		if once++; once == 1 {
			l.tell(m)
		}
	}}
	c.WorkerFor("rules", hostile, worker.Config{Slots: 1}, n)
	spec := enginetest.Extracting(t, enginetest.Billed)
	spec.Provider = "rules"
	id, got := n.Run(spec, enginetest.Texts(docs, order...))
	enginetest.CheckQuotes(t, docs, got)
	failures := 0
	for _, u := range n.Units(id) {
		failures += u.Failures
	}
	if failures != 1 {
		t.Errorf("%d attempts failed, want the one that lied", failures)
	}
}

// hugeReports are reports that no worker of ours sends.
var hugeReports = map[string]func(*protocol.Report){
	"a length beyond all":          func(r *protocol.Report) { r.Length, r.SHA256 = math.MaxInt64, make([]byte, 32) },
	"an output that was not put":   func(r *protocol.Report) { r.Length, r.SHA256 = 1<<16+1, make([]byte, 32) },
	"a hash of nothing":            func(r *protocol.Report) { r.Length, r.SHA256 = 0, make([]byte, 32) },
	"a length without a hash":      func(r *protocol.Report) { r.Length = 1<<16 + 1 },
	"more than a report may carry": func(r *protocol.Report) { r.Output = make([]byte, protocol.MaxInline+1) },
	"tokens beyond all":            func(r *protocol.Report) { r.Tokens.In = math.MaxInt64 },
	"a size beyond all":            func(r *protocol.Report) { r.Size = math.MaxInt64 },
	"what is no output":            func(r *protocol.Report) { r.Output = []byte("\xff\xff") },
	"an output in both ways": func(r *protocol.Report) {
		r.Length, r.SHA256, r.Output = 5, make([]byte, 32), []byte("\x22\x00")
	},
}

// TestReportsThatNoWorkerSends: they cost their attempt and nothing else, and the
// orchestrators that run afterwards do not die of them either.
func TestReportsThatNoWorkerSends(t *testing.T) {
	for name, fill := range hugeReports {
		t.Run(name, func(t *testing.T) {
			testenv.Variant(t, name == "an output that was not put")

			enginetest.VirtuallyIfItCan(t, func(t *testing.T) { reportIsRefused(t, fill) })
		})
	}
}

func reportIsRefused(t *testing.T, fill func(*protocol.Report)) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	id := n.Submit(enginetest.Script(nil), 2)
	w := enginetest.Greet(t, n, "hostile", 1)
	held := w.Assigned()
	if v := w.Report(held, fill); v != protocol.Accepted {
		t.Errorf("verdict %v, want that the failure was taken", v)
	}
	w.Cut()
	u := n.Units(id)[held.Unit]
	if u.Failures != 1 || len(u.Errors) != 1 || !strings.Contains(u.Errors[0], "the output that worker hostile reported was refused") {
		t.Errorf("unit %+v, want one failure that says what was refused", u)
	}
	n.Stop()
	config := enginetest.Quick(orchestrator.Config{Adopt: true, Exclusive: true})
	config.Lease = 2 * time.Second // which the hostile worker has, if it was not given up yet
	next := c.Orchestrator(config)
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 2}, next)
	next.WantEnd(id, mapreduce.JobComplete)
	next.Sound()
}

// TestPutsOfOthers: a worker writes into no output but its own, and what it has stored
// whole it does not change any more: what is checked is what is published.
func TestPutsOfOthers(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	id := n.Submit(enginetest.Script(nil), 1)
	owner := enginetest.Greet(t, n, "owner", 1)
	held := owner.Assigned()
	data := reasoned(t, protocol.MaxInline)
	stored := putOutput(owner, "owner", held, data)
	other := enginetest.Greet(t, n, "other", 1)
	other.Until(func(m *protocol.ToWorker) bool { return m.Welcome != nil })
	invented := reasoned(t, 2*protocol.MaxInline)
	_, err := other.PutBlob(t.Context(), outputOf("other", held, invented, 0), parts(invented, io.EOF))
	wantKind(t, err, errs.Precondition)
	other.Say(&protocol.FromWorker{Reports: []protocol.Report{{Job: held.Job, Unit: held.Unit, Attempt: held.Attempt, Outcome: protocol.Done}}})
	if v := other.Until(func(m *protocol.ToWorker) bool { return len(m.Verdicts) > 0 }).Verdicts[0]; v.Verdict != protocol.Stale {
		t.Errorf("verdict %v on the report of another's unit, want stale", v)
	}
	_, err = owner.PutBlob(t.Context(), outputOf("owner", held, invented, 0), parts(invented, io.EOF))
	wantKind(t, err, errs.Precondition)
	v := owner.Report(held, stored)
	if u := n.Units(id)[held.Unit]; v != protocol.Accepted || u.State != mapreduce.UnitComplete {
		t.Errorf("verdict %v, unit %+v: the output is not the owner's", v, u)
	}
	page, err := n.ListUnits(t.Context(), mapreduce.ListUnitsQuery{Job: id, Outputs: true})
	if err != nil || !bytes.Equal(page.Units[0].Output, data) {
		t.Errorf("an output of %d bytes, %v", len(page.Units[0].Output), err)
	}
}

// TestLiesThatAreStored: what was stored before outputs were checked is shown to
// nobody, and doctor finds it.
func TestLiesThatAreStored(t *testing.T) {
	testenv.SlowOnFDB(t)

	docs, order := enginetest.Bills()
	for _, l := range lies(docs) {
		t.Run(l.name, func(t *testing.T) {
			testenv.Variant(t, l.name == "no record")

			c := enginetest.NewCluster(t)
			n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
			leave := c.WorkerFor("rules", enginetest.ByRules(), worker.Config{Slots: 2}, n)
			spec := enginetest.Extracting(t, enginetest.Billed)
			spec.Provider = "rules"
			id, _ := n.Run(spec, enginetest.Texts(docs, order...))
			leave()
			n.Sound()
			unit := mapreduce.FinalUnit
			if l.kind == mapreduce.KindMap {
				unit = "c" // which stands in the result by itself
			}
			n.Alter(t, c, id, unit, enginetest.Says(t, l.tell))
			if found := n.Findings(); len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), l.why) {
				t.Errorf("doctor finds %q, want one that says %s", found, l.why)
			}
			invented := errors.New("shown: " + l.name)
			read := func(partial bool) error {
				return n.GetResult(t.Context(), id, partial, func(p *mapreduce.ResultPart) error {
					if c := p.Citation; c != nil && (docs[string(c.Document)] == "" || docs[string(c.Document)][c.ByteStart:c.ByteEnd] != c.Quote) {
						return invented
					}
					return nil
				})
			}
			if err := read(false); err != nil { // it was assembled before
				t.Errorf("the stored result ended with %v", err)
			}
			err := read(true)
			switch {
			case err == nil && !harmless[l.name]:
				t.Errorf("the result was given, and the lie in it")
			case err != nil && errs.KindOf(err) != errs.DataLoss:
				t.Errorf("the result ended with %v, want that data is lost", err)
			}
		})
	}
}

// harmless are lies that change nothing of a result that stands: names of entities
// matter to reduces alone, and what a reduce lost a doctor sees.
var harmless = map[string]bool{
	"another's name": true, "one record less, of a reduce": true,
}

// TestOrchestratorsStartOnWhatIsStored: an output without members, and one with a
// length that is none, are read again by whoever runs the reduce over them.
func TestOrchestratorsStartOnWhatIsStored(t *testing.T) {
	docs, order := enginetest.Bills()
	for name, change := range map[string]func(*storagev1.Result){
		"no members": enginetest.Says(t, func(m *storagev1.Output) { m.Entries[0].Members = nil }),
		"a length that is none": func(r *storagev1.Result) {
			r.Inline, r.Chunks, r.Length = nil, 1, math.MaxInt64
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := enginetest.NewCluster(t)
			n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
			held := make(chan struct{})
			c.WorkerFor("rules", holder{enginetest.ByRules(), held}, worker.Config{Slots: 1}, n)
			spec := enginetest.Extracting(t, enginetest.Billed)
			spec.Provider, spec.MaxAttempts = "rules", 1
			job, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, order...))
			if err != nil {
				t.Fatal(err)
			}
			n.Until(job.ID, func(j *mapreduce.Job) bool { return j.CompletedUnits == 1 })
			for id, u := range n.Units(job.ID) {
				if u.State == mapreduce.UnitComplete {
					n.Alter(t, c, job.ID, id, change)
				}
			}
			close(held)
			end := n.WantEnd(job.ID, mapreduce.JobFailed)
			if !strings.Contains(end.Error, "final") && !strings.Contains(end.Error, "level 1") {
				t.Errorf("the job failed with %q, want the reduce to", end.Error)
			}
			if len(n.Findings()) == 0 {
				t.Error("doctor finds nothing")
			}
		})
	}
}

// A holder runs one map unit, and all others once it may.
type holder struct {
	agent.Agent
	may <-chan struct{}
}

func (h holder) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if task.Unit != "a" {
		<-h.may
	}
	return h.Agent.Run(ctx, task, calls)
}
