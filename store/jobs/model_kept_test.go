package jobs_test

import (
	"crypto/sha256"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// What attempts keep: the journals and the evidence of units.

func (m *machine) keep(t *rapid.T) {
	if len(m.issued) == 0 {
		m.claim(t) // so that there is something
		return
	}
	i := rapid.SampledFrom(m.issued).Draw(t, "attempt")
	data := []byte("chunk")
	sum := sha256.Sum256(data)
	err := m.node(t).Content.StorePut(m.Ctx, jobstest.PutOf(i.job, i.unit, data, sum[:]), 0, data)
	if errs.KindOf(err) != errs.Precondition { // the attempt is over, or another session's
		m.Must(err)
	}
}

// append adds entries to a journal: those that come next, or some that are there, or
// others in their place, or behind a gap; for whoever holds the attempt, or somebody else.
func (m *machine) append(t *rapid.T) {
	if len(m.issued) == 0 {
		m.claim(t) // so that there is something
		return
	}
	i := rapid.SampledFrom(m.issued).Draw(t, "attempt")
	a := &content.JournalAppend{Held: i.held(), Session: i.session}
	if rapid.IntRange(0, 9).Draw(t, "stranger") == 0 {
		a.Session = "a stranger"
	}
	var had []string
	u, k := new(munit), m.jobs[i.job]
	if k != nil && k.units[string(i.unit.ID)] != nil {
		u, a.Kept = k.units[string(i.unit.ID)], k.keeps
		had = strings.SplitAfter(u.journal, lineEnd)
		had = had[:len(had)-1]
	}
	a.First = rapid.IntRange(max(0, len(had)-2), len(had)+1).Draw(t, "first")
	ok := u.owner != "" && u.owner == a.Session && u.attempt == i.unit.Attempt && !u.state.Ended() && a.First <= len(had)
	now := slices.Clone(had)
	for n := range rapid.IntRange(1, 3).Draw(t, "entries") {
		entry := jobstest.JournalEntry(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"), a.Attempt)
		if at := a.First + n; at < len(had) && rapid.Bool().Draw(t, "the same") {
			entry = []byte(strings.TrimSuffix(had[at], lineEnd))
		}
		a.Entries = append(a.Entries, entry)
		if at := a.First + n; at < len(had) {
			ok = ok && had[at] == string(entry)+lineEnd
		} else {
			now = append(now, string(entry)+lineEnd)
		}
	}
	err := m.node(t).Content.AppendJournal(m.Ctx, a)
	if ok {
		m.Must(err)
		u.journal = strings.Join(now, "")
		return
	}
	if errs.KindOf(err) != errs.Precondition || err == nil {
		t.Fatalf("entries %q from %d on of session %s for %+v: %v", a.Entries, a.First, a.Session, u, err)
	}
}

// findMore puts evidence: the next item, or one that is there, or another in its place, or
// behind a gap; for whoever holds the attempt, or somebody else.
func (m *machine) findMore(t *rapid.T) {
	if len(m.issued) == 0 {
		m.claim(t) // so that there is something
		return
	}
	i := rapid.SampledFrom(m.issued).Draw(t, "attempt")
	u, k := new(munit), m.jobs[i.job]
	if k != nil && k.units[string(i.unit.ID)] != nil {
		u = k.units[string(i.unit.ID)]
	}
	had := strings.SplitAfter(u.found, lineEnd)
	had = had[:len(had)-1]
	text, number := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "text"), rapid.IntRange(max(0, len(had)-2), len(had)+1).Draw(t, "number")
	p := jobstest.Found(i.job, i.unit, number, text)
	if p.Session = i.session; rapid.IntRange(0, 9).Draw(t, "stranger") == 0 {
		p.Session = "a stranger"
	}
	ok := u.owner != "" && u.owner == p.Session && u.attempt == i.unit.Attempt && !u.state.Ended() &&
		(number == len(had) || number < len(had) && had[number] == text+lineEnd)
	err := m.node(t).Content.PutEvidence(m.Ctx, p, []byte(text))
	switch {
	case ok && number == len(had):
		u.found += text + lineEnd
		m.Must(err)
	case ok:
		m.Must(err)
	case err == nil || errs.KindOf(err) != errs.Precondition:
		t.Fatalf("item %d, %q, of session %s for %+v: %v", number, text, p.Session, u, err)
	}
}

// foundOf returns the evidence of a stored unit as the model has it.
func (m *machine) foundOf(id mapreduce.JobID, u *records.Unit) (all string) {
	items, err := m.Look.Content.Evidence(m.Ctx, id, u)
	m.Must(err)
	for n, e := range items {
		m.Must(m.Look.Content.EvidenceText(m.Ctx, id, u.ID, n, &e, func(part []byte) error {
			all += string(part)
			return nil
		}))
		all += lineEnd
	}
	return all
}

// lineEnd ends an entry in the model. No encoded entry has it.
const lineEnd = "\xff"

// journalOf returns the journal of a stored unit as the model has it.
func (m *machine) journalOf(id mapreduce.JobID, u *records.Unit) (all string) {
	entries, err := m.Look.Content.Journal(m.Ctx, id, u)
	m.Must(err)
	for _, e := range entries {
		all += string(e) + lineEnd
	}
	return all
}
