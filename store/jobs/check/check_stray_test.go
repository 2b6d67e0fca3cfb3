package check_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/keys"
)

// Entries of a job that should not be there go with it, as their findings say.
func TestStrayEntriesGoWithTheirJob(t *testing.T) {
	m := jobstest.NewMixture(t)
	plans, queues, outputs := m.Space.Plans(m.End), m.Space.Queues(m.End), m.Space.Outputs(m.End)
	plan, err := proto.Marshal(&storagev1.Plan{Level: 7, Plan: &storagev1.Level{Units: 3}, Planned: 1})
	m.Must(err)
	picks, err := proto.Marshal(&storagev1.Picks{First: 5})
	m.Must(err)
	strays := map[string]string{ // what is found of each
		string(queues.Ready(0, keys.ClassNew, 99)):     "nobody",
		string(queues.Woken("nobody")):                 "nobody",
		string(queues.Wait(9, 9)):                      "no reduce of level 9",
		string(outputs.ResultChunk("nobody", 1, 0)):    "the chunk is of unit",
		string(outputs.ResultChunk("doc-00000", 9, 0)): "nobody will read this chunk",
		string(outputs.JournalChunk("nobody", 0, 0)):   "the entry is of the journal of unit",
		string(outputs.EvidenceChunk("nobody", 0, 0)):  "the evidence is of unit",
		string(plans.Cursor(7)):                        "the cursor is at",
		string(plans.Picks(9, 9, 5)):                   "are of no unit",
	}
	m.Write(func(tx store.Tx) {
		for key := range strays {
			tx.Set([]byte(key), []byte("nobody"))
		}
		tx.Set(queues.Wait(9, 9), make([]byte, 8))
		tx.Set(plans.Cursor(7), plan)
		tx.Set(plans.Picks(9, 9, 5), picks)
	})
	found := m.Findings()
	for _, want := range strays {
		if !has(found, want, "`coditect mapreduce delete` of the job removes it") {
			t.Errorf("no finding has %q, and says what to do:\n%+v", want, found)
		}
	}
	m.Must(m.Nodes[0].Lifecycle.Delete(m.Ctx, m.End))
	m.Healthy()
}

// A job that a damaged list says is to be deleted is kept.
func TestStrayExpiryOfAJob(t *testing.T) {
	m := jobstest.NewMixture(t)
	m.Write(func(tx store.Tx) { tx.Set(m.Space.Expiry().Job(5, m.End), nil) })
	if found := m.Findings(); !has(found, "listed as one that is kept until that time, and is not", "passes over it") {
		t.Errorf("no finding says so:\n%+v", found)
	}
	old, err := m.Nodes[0].Lifecycle.Expired(m.Ctx)
	if err != nil || len(old) != 0 {
		t.Errorf("to be deleted: %v, %v", old, err)
	}
}

// has reports whether a finding has all texts.
func has(found []mapreduce.Finding, texts ...string) bool {
	for _, f := range found {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(f.Message, text)
		}
		if all {
			return true
		}
	}
	return false
}

// Entries of jobs that are not there do what their findings say.
func TestStrayEntriesOfNoJob(t *testing.T) {
	for name, tt := range map[string]struct {
		key   func(s *keys.Space) []byte
		want  string
		fails bool // to list jobs
	}{
		"list":    {func(s *keys.Space) []byte { return s.Recent(5, "nobody") }, "`coditect mapreduce list` fails or shows it twice; no command corrects that: restore the store from a backup", true},
		"ended":   {func(s *keys.Space) []byte { return s.Tenant("").Ended(5, "nobody") }, "passes over it", false},
		"expires": {func(s *keys.Space) []byte { return s.Expiry().Job(5, "nobody") }, "passes over it", false},
		"left":    {func(s *keys.Space) []byte { return s.Job("nobody").Skipped(1) }, "nothing reads them", false},
		"unknown": {func(s *keys.Space) []byte { return append(s.Everything().Begin, 0x02, 'z', 0) }, "there is nothing to do", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := jobstest.NewMixture(t)
			m.Write(func(tx store.Tx) { tx.Set(tt.key(m.Space), nil) })
			if found := m.Findings(); !has(found, tt.want) {
				t.Errorf("no finding has %q:\n%+v", tt.want, found)
			}
			_, err := m.Look.View.List(m.Ctx, mapreduce.ListJobsQuery{PageSize: 100})
			if failed := errs.KindOf(err) == errs.NotFound && err != nil; failed != tt.fails || !failed && err != nil {
				t.Errorf("list: %v", err)
			}
			// All that ended is old, and what is not there does not keep the rest.
			m.Nodes[0].SetRules(func(mapreduce.TenantID) mapreduce.TenantRule { return mapreduce.TenantRule{Keep: time.Microsecond} })
			old, err := m.Nodes[0].Lifecycle.Expired(m.Ctx)
			m.Must(err)
			for _, e := range old {
				m.Must(m.Nodes[0].Lifecycle.DeleteExpired(m.Ctx, e))
			}
			if _, err := m.Nodes[0].View.Record(m.Ctx, m.End); errs.KindOf(err) != errs.NotFound {
				t.Errorf("the job that ended is there: %v", err)
			}
		})
	}
}
