package jobs_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// journalEntry is an entry as it is stored.
func journalEntry(key string, attempt int) []byte {
	raw, err := proto.Marshal(&storagev1.JournalEntry{Key: key, Attempt: int64(attempt)})
	if err != nil {
		panic(err)
	}
	return raw
}

// appendOf is an append by the session that holds a unit.
func appendOf(id mapreduce.JobID, u *records.Unit, first int, entries ...[]byte) *content.JournalAppend {
	return &content.JournalAppend{
		Held:    mapreduce.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)},
		Session: u.Session, First: first, Entries: entries,
	}
}

// remember adds an entry for each key to the journal of a unit.
func (w *world) remember(j *jobs.Jobs, id mapreduce.JobID, u *records.Unit, first int, keys ...string) {
	w.Helper()
	a := appendOf(id, u, first)
	for _, k := range keys {
		a.Entries = append(a.Entries, journalEntry(k, a.Attempt))
	}
	w.must(j.Content.AppendJournal(w.ctx, a))
}

// remembered returns the keys of a unit's journal, and the attempts that made them.
func (w *world) remembered(id mapreduce.JobID, unit string) (all []string) {
	w.Helper()
	u := w.unit(id, unit)
	entries, err := w.nodes[0].Content.Journal(w.ctx, id, u)
	w.must(err)
	for _, raw := range entries {
		var e storagev1.JournalEntry
		w.must(proto.Unmarshal(raw, &e))
		all = append(all, fmt.Sprintf("%s %d", e.Key, e.Attempt))
	}
	return all
}

// Entries are added in order, by the session alone that holds the attempt, and each
// once, whatever becomes of the transaction that adds them.
func TestJournal(t *testing.T) {
	m := newMixture(t)
	j := m.nodes[0]
	u := m.claim(j, m.mid, m.binding, 1)[0]
	large, err := proto.Marshal(&storagev1.JournalEntry{Key: "large", Attempt: 1, Result: bytes.Repeat([]byte("x"), 3*store.ChunkSize)})
	m.must(err)
	for range 2 { // again, as after an outcome that was not known
		m.must(j.Content.AppendJournal(m.ctx, appendOf(m.mid, u, 0, journalEntry("a", 1), large)))
	}
	m.must(j.Content.AppendJournal(m.ctx, appendOf(m.mid, u, 1, large, journalEntry("b", 1)))) // one of them is there
	want := []string{"a 1", "large 1", "b 1"}
	if diff := cmp.Diff(want, m.remembered(m.mid, string(u.ID))); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	other, stale := appendOf(m.mid, u, 3, journalEntry("c", 1)), appendOf(m.mid, u, 3, journalEntry("c", 1))
	other.Session = "another"
	stale.Attempt++
	nobody := appendOf(m.mid, &records.Unit{ID: "nobody", Session: u.Session, Attempt: 1}, 0, journalEntry("c", 1))
	for name, a := range map[string]*content.JournalAppend{
		"another session": other, "another attempt": stale, "no unit": nobody,
		"a gap":                    appendOf(m.mid, u, 4, journalEntry("c", 1)),
		"another entry":            appendOf(m.mid, u, 2, journalEntry("c", 1)),
		"another entry than large": appendOf(m.mid, u, 1, large[:len(large)-1]),
		"another entry, and more":  appendOf(m.mid, u, 2, journalEntry("c", 1), journalEntry("d", 1)),
	} {
		if err := j.Content.AppendJournal(m.ctx, a); !errors.Is(err, errs.Precondition) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m.report(j, returned(m.mid, u))
	if err := j.Content.AppendJournal(m.ctx, appendOf(m.mid, u, 3, journalEntry("c", 1))); !errors.Is(err, errs.Precondition) {
		t.Errorf("after its report: %v", err)
	}
	if diff := cmp.Diff(want, m.remembered(m.mid, string(u.ID))); diff != "" {
		t.Errorf("journal after appends that were refused (-want +got):\n%s", diff)
	}
	m.healthy()
}

// A journal goes on in the next attempt, wherever that is, and is there as long as its
// unit may be tried again.
func TestJournalOfAttempts(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(3))
	first := w.claim(j, id, w.session(j), 1)[0]
	w.remember(j, id, first, 0, "a")
	w.report(j, returned(id, first))
	second := w.claim(j, id, w.session(j), 1)[0]
	if second.ID != first.ID {
		t.Fatalf("unit %s was claimed before %s, which came back", second.ID, first.ID)
	}
	if err := j.Content.AppendJournal(w.ctx, appendOf(id, first, 1, journalEntry("late", 1))); !errors.Is(err, errs.Precondition) {
		t.Errorf("an append of an attempt that another has followed: %v", err)
	}
	w.remember(j, id, second, 1, "b")
	w.report(j, errored(id, second, mapreduce.PermanentUnit))
	want := []string{"a 1", "b 2"}
	if diff := cmp.Diff(want, w.remembered(id, string(first.ID))); diff != "" {
		t.Errorf("journal of a unit that has failed (-want +got):\n%s", diff)
	}
	w.must(j.Lifecycle.Pause(w.ctx, id, records.AnyEpoch, "for a while"))
	w.must(j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
	third := w.claim(j, id, w.session(j), 1)[0]
	if diff := cmp.Diff(want, w.remembered(id, string(third.ID))); diff != "" {
		t.Errorf("journal after a resume (-want +got):\n%s", diff)
	}
	w.healthy()
	w.report(j, done(id, third))
	if got := w.remembered(id, string(third.ID)); got != nil {
		t.Errorf("a unit that is complete remembers %v", got)
	}
	kept := w.claim(j, id, w.session(j), 1)[0]
	a := appendOf(id, kept, 0, journalEntry("a", 1))
	a.Kept = true
	w.must(j.Content.AppendJournal(w.ctx, a))
	w.report(j, done(id, kept))
	if diff := cmp.Diff([]string{"a 1"}, w.remembered(id, string(kept.ID))); diff != "" {
		t.Errorf("journal that is kept (-want +got):\n%s", diff)
	}
	w.healthy()
	last := w.claim(j, id, w.session(j), 1)[0]
	w.remember(j, id, last, 0, "a")
	w.must(j.Lifecycle.Cancel(w.ctx, id))
	_, _, err := j.Lifecycle.SweepCancelled(w.ctx, id, nil)
	w.must(err)
	if got := w.remembered(id, string(last.ID)); got != nil {
		t.Errorf("a unit that was cancelled remembers %v", got)
	}
	w.healthy()
}

// A journal has bounds, and what is beyond is refused, not cut.
func TestJournalBounds(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(2))
	us := w.claim(j, id, w.session(j), 2)
	chunk := bytes.Repeat([]byte("x"), mapreduce.MaxJournalEntry)
	n := 0
	for ; n < mapreduce.MaxJournalBytes/len(chunk); n++ {
		w.must(j.Content.AppendJournal(w.ctx, appendOf(id, us[0], n, chunk)))
	}
	if err := j.Content.AppendJournal(w.ctx, appendOf(id, us[0], n, []byte("x"))); !errors.Is(err, errs.Invalid) {
		t.Errorf("a byte more than fits: %v", err)
	}
	var some [][]byte
	for i := range mapreduce.MaxJournalEntries {
		some = append(some, fmt.Append(nil, i))
		if len(some) == 1024 {
			w.must(j.Content.AppendJournal(w.ctx, appendOf(id, us[1], i-1023, some...)))
			some = nil
		}
	}
	if err := j.Content.AppendJournal(w.ctx, appendOf(id, us[1], mapreduce.MaxJournalEntries, []byte("x"))); !errors.Is(err, errs.Invalid) {
		t.Errorf("an entry more than fits: %v", err)
	}
	entries, err := j.Content.Journal(w.ctx, id, w.unit(id, string(us[1].ID)))
	if err != nil || len(entries) != mapreduce.MaxJournalEntries || string(entries[4095]) != "4095" {
		t.Errorf("%d entries and %v", len(entries), err)
	}
	if err := j.Content.AppendJournal(w.ctx, appendOf(id, us[1], 0, nil)); !errors.Is(err, errs.Precondition) {
		t.Errorf("an empty entry: %v", err)
	}
}

// The journal of a unit goes with it when its job is cancelled, whoever is first to learn
// of that: a report, or the loss of its worker.
func TestJournalOfUnitsOfACancelledJob(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(2))
	s := w.session(j)
	us := w.claim(j, id, s, 2)
	w.remember(j, id, us[0], 0, "a")
	w.remember(j, id, us[1], 0, "a")
	w.must(j.Lifecycle.Cancel(w.ctx, id))
	w.report(j, returned(id, us[0]))
	_, err := j.Sessions.Expire(w.ctx, s.id, j.Node(), s.epoch, nil)
	w.must(err)
	for _, u := range us {
		if got := w.remembered(id, string(u.ID)); got != nil {
			t.Errorf("unit %s was cancelled, and remembers %v", string(u.ID), got)
		}
	}
	w.healthy()
}

// The journals of a level go with it, when a resume drops it to be planned again.
func TestJournalsOfALevelThatIsDropped(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(9))
	s := w.session(j)
	w.report(j, errored(id, w.claim(j, id, s, 1)[0], mapreduce.PermanentUnit))
	w.mapAll(j, id)
	w.advance(j, id)
	reduce := w.claim(j, id, s, 1)[0]
	w.remember(j, id, reduce, 0, "a")
	w.report(j, returned(id, reduce))
	w.must(j.Lifecycle.Pause(w.ctx, id, records.AnyEpoch, "for a while"))
	w.must(j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
	if u := w.unit(id, string(reduce.ID)); reduce.Level < 1 || u != nil {
		t.Fatalf("the level of %v was not dropped: %v", reduce, u)
	}
	w.healthy()
}
