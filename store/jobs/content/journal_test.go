package content_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// remembered returns the keys of a unit's journal, and the attempts that made them.
func remembered(w *jobstest.World, id mapreduce.JobID, unit string) (all []string) {
	w.Helper()
	u := w.Unit(id, unit)
	entries, err := w.Nodes[0].Content.Journal(w.Ctx, id, u)
	w.Must(err)
	for _, raw := range entries {
		var e storagev1.JournalEntry
		w.Must(proto.Unmarshal(raw, &e))
		all = append(all, fmt.Sprintf("%s %d", e.Key, e.Attempt))
	}
	return all
}

// Entries are added in order, by the session alone that holds the attempt, and each
// once, whatever becomes of the transaction that adds them.
func TestJournal(t *testing.T) {
	m := jobstest.NewMixture(t)
	j := m.Nodes[0]
	u := m.Claim(j, m.Mid, m.Binding, 1)[0]
	large, err := proto.Marshal(&storagev1.JournalEntry{Key: "large", Attempt: 1, Result: bytes.Repeat([]byte("x"), 3*store.ChunkSize)})
	m.Must(err)
	for range 2 { // again, as after an outcome that was not known
		m.Must(j.Content.AppendJournal(m.Ctx, jobstest.AppendOf(m.Mid, u, 0, jobstest.JournalEntry("a", 1), large)))
	}
	m.Must(j.Content.AppendJournal(m.Ctx, jobstest.AppendOf(m.Mid, u, 1, large, jobstest.JournalEntry("b", 1)))) // one of them is there
	want := []string{"a 1", "large 1", "b 1"}
	if diff := cmp.Diff(want, remembered(m.World, m.Mid, string(u.ID))); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	other, stale := jobstest.AppendOf(m.Mid, u, 3, jobstest.JournalEntry("c", 1)), jobstest.AppendOf(m.Mid, u, 3, jobstest.JournalEntry("c", 1))
	other.Session = "another"
	stale.Attempt++
	nobody := jobstest.AppendOf(m.Mid, &records.Unit{ID: "nobody", Session: u.Session, Attempt: 1}, 0, jobstest.JournalEntry("c", 1))
	for name, a := range map[string]*content.JournalAppend{
		"another session": other, "another attempt": stale, "no unit": nobody,
		"a gap":                    jobstest.AppendOf(m.Mid, u, 4, jobstest.JournalEntry("c", 1)),
		"another entry":            jobstest.AppendOf(m.Mid, u, 2, jobstest.JournalEntry("c", 1)),
		"another entry than large": jobstest.AppendOf(m.Mid, u, 1, large[:len(large)-1]),
		"another entry, and more":  jobstest.AppendOf(m.Mid, u, 2, jobstest.JournalEntry("c", 1), jobstest.JournalEntry("d", 1)),
	} {
		if err := j.Content.AppendJournal(m.Ctx, a); !errors.Is(err, errs.Precondition) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m.Report(j, jobstest.Returned(m.Mid, u))
	if err := j.Content.AppendJournal(m.Ctx, jobstest.AppendOf(m.Mid, u, 3, jobstest.JournalEntry("c", 1))); !errors.Is(err, errs.Precondition) {
		t.Errorf("after its report: %v", err)
	}
	if diff := cmp.Diff(want, remembered(m.World, m.Mid, string(u.ID))); diff != "" {
		t.Errorf("journal after appends that were refused (-want +got):\n%s", diff)
	}
	m.Healthy()
}

// A journal goes on in the next attempt, wherever that is, and is there as long as its
// unit may be tried again.
func TestJournalOfAttempts(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(3))
	first := w.Claim(j, id, w.Session(j), 1)[0]
	w.Remember(j, id, first, 0, "a")
	w.Report(j, jobstest.Returned(id, first))
	second := w.Claim(j, id, w.Session(j), 1)[0]
	if second.ID != first.ID {
		t.Fatalf("unit %s was claimed before %s, which came back", second.ID, first.ID)
	}
	if err := j.Content.AppendJournal(w.Ctx, jobstest.AppendOf(id, first, 1, jobstest.JournalEntry("late", 1))); !errors.Is(err, errs.Precondition) {
		t.Errorf("an append of an attempt that another has followed: %v", err)
	}
	w.Remember(j, id, second, 1, "b")
	w.Report(j, jobstest.Errored(id, second, protocol.PermanentUnit))
	want := []string{"a 1", "b 2"}
	if diff := cmp.Diff(want, remembered(w, id, string(first.ID))); diff != "" {
		t.Errorf("journal of a unit that has failed (-want +got):\n%s", diff)
	}
	w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "for a while"))
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	third := w.Claim(j, id, w.Session(j), 1)[0]
	if diff := cmp.Diff(want, remembered(w, id, string(third.ID))); diff != "" {
		t.Errorf("journal after a resume (-want +got):\n%s", diff)
	}
	w.Healthy()
	w.Report(j, jobstest.Done(id, third))
	if got := remembered(w, id, string(third.ID)); got != nil {
		t.Errorf("a unit that is complete remembers %v", got)
	}
	kept := w.Claim(j, id, w.Session(j), 1)[0]
	a := jobstest.AppendOf(id, kept, 0, jobstest.JournalEntry("a", 1))
	a.Kept = true
	w.Must(j.Content.AppendJournal(w.Ctx, a))
	w.Report(j, jobstest.Done(id, kept))
	if diff := cmp.Diff([]string{"a 1"}, remembered(w, id, string(kept.ID))); diff != "" {
		t.Errorf("journal that is kept (-want +got):\n%s", diff)
	}
	w.Healthy()
	last := w.Claim(j, id, w.Session(j), 1)[0]
	w.Remember(j, id, last, 0, "a")
	w.Must(j.Lifecycle.Cancel(w.Ctx, id))
	_, _, err := j.Lifecycle.SweepCancelled(w.Ctx, id, nil)
	w.Must(err)
	if got := remembered(w, id, string(last.ID)); got != nil {
		t.Errorf("a unit that was cancelled remembers %v", got)
	}
	w.Healthy()
}

// A journal has bounds, and what is beyond is refused, not cut.
func TestJournalBounds(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(2))
	us := w.Claim(j, id, w.Session(j), 2)
	chunk := bytes.Repeat([]byte("x"), protocol.MaxJournalEntry)
	n := 0
	for ; n < protocol.MaxJournalBytes/len(chunk); n++ {
		w.Must(j.Content.AppendJournal(w.Ctx, jobstest.AppendOf(id, us[0], n, chunk)))
	}
	if err := j.Content.AppendJournal(w.Ctx, jobstest.AppendOf(id, us[0], n, []byte("x"))); !errors.Is(err, errs.Invalid) {
		t.Errorf("a byte more than fits: %v", err)
	}
	var some [][]byte
	for i := range protocol.MaxJournalEntries {
		some = append(some, fmt.Append(nil, i))
		if len(some) == 1024 {
			w.Must(j.Content.AppendJournal(w.Ctx, jobstest.AppendOf(id, us[1], i-1023, some...)))
			some = nil
		}
	}
	if err := j.Content.AppendJournal(w.Ctx, jobstest.AppendOf(id, us[1], protocol.MaxJournalEntries, []byte("x"))); !errors.Is(err, errs.Invalid) {
		t.Errorf("an entry more than fits: %v", err)
	}
	entries, err := j.Content.Journal(w.Ctx, id, w.Unit(id, string(us[1].ID)))
	if err != nil || len(entries) != protocol.MaxJournalEntries || string(entries[4095]) != "4095" {
		t.Errorf("%d entries and %v", len(entries), err)
	}
	if err := j.Content.AppendJournal(w.Ctx, jobstest.AppendOf(id, us[1], 0, nil)); !errors.Is(err, errs.Precondition) {
		t.Errorf("an empty entry: %v", err)
	}
}

// The journal of a unit goes with it when its job is cancelled, whoever is first to learn
// of that: a report, or the loss of its worker.
func TestJournalOfUnitsOfACancelledJob(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(2))
	s := w.Session(j)
	us := w.Claim(j, id, s, 2)
	w.Remember(j, id, us[0], 0, "a")
	w.Remember(j, id, us[1], 0, "a")
	w.Must(j.Lifecycle.Cancel(w.Ctx, id))
	w.Report(j, jobstest.Returned(id, us[0]))
	_, err := j.Sessions.Expire(w.Ctx, s.ID, j.Node(), s.Epoch, nil)
	w.Must(err)
	for _, u := range us {
		if got := remembered(w, id, string(u.ID)); got != nil {
			t.Errorf("unit %s was cancelled, and remembers %v", string(u.ID), got)
		}
	}
	w.Healthy()
}

// The journals of a level go with it, when a resume drops it to be planned again.
func TestJournalsOfALevelThatIsDropped(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(9))
	s := w.Session(j)
	w.Report(j, jobstest.Errored(id, w.Claim(j, id, s, 1)[0], protocol.PermanentUnit))
	w.MapAll(j, id)
	w.Advance(j, id)
	reduce := w.Claim(j, id, s, 1)[0]
	w.Remember(j, id, reduce, 0, "a")
	w.Report(j, jobstest.Returned(id, reduce))
	w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "for a while"))
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	if u := w.Unit(id, string(reduce.ID)); reduce.Level < 1 || u != nil {
		t.Fatalf("the level of %v was not dropped: %v", reduce, u)
	}
	w.Healthy()
}
