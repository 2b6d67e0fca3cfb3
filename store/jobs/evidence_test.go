package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// pageOf is a text as evidence of a place that is named by the beginning of the text.
func pageOf(text string) mapreduce.Evidence {
	e := mapreduce.Evidence{
		URI: "https://example.org/" + text[:min(len(text), 20)], Title: "Page", Tool: "fetch", Media: "text/html",
		Retrieved: time.Unix(1_700_000_000, 0).UTC(), Metadata: map[string]string{"a": "1", "b": "2", "c": "3"},
	}
	e.DescribeText([]byte(text))
	return e
}

// found is a put of evidence by the session that holds a unit.
func found(id mapreduce.JobID, u *records.Unit, number int, text string) *content.EvidencePut {
	return &content.EvidencePut{
		Held:    mapreduce.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)},
		Session: u.Session, Number: number, Item: pageOf(text),
	}
}

// find adds texts to the evidence of a unit.
func (w *world) find(j *jobs.Jobs, id mapreduce.JobID, u *records.Unit, first int, texts ...string) {
	w.Helper()
	for i, text := range texts {
		w.must(j.Content.PutEvidence(w.ctx, found(id, u, first+i, text), []byte(text)))
	}
}

// foundTexts returns the texts of the evidence of a unit.
func (w *world) foundTexts(id mapreduce.JobID, unit string) (all []string) {
	w.Helper()
	j := w.nodes[0]
	items, err := j.Content.Evidence(w.ctx, id, w.unit(id, unit))
	w.must(err)
	for i, e := range items {
		var text strings.Builder
		w.must(j.Content.EvidenceText(w.ctx, id, mapreduce.UnitID(unit), i, &e, func(part []byte) error {
			text.Write(part)
			return nil
		}))
		if diff := cmp.Diff(pageOf(text.String()), e); diff != "" {
			w.Errorf("item %d of %s (-want +got):\n%s", i, unit, diff)
		}
		all = append(all, text.String())
	}
	return all
}

// Items are added in order, by the session alone that holds the attempt, each once and
// whole, whatever becomes of the transactions that add them.
func TestEvidence(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(3))
	u := w.claim(j, id, w.session(j), 1)[0]
	large := strings.Repeat("0123456789abcdef", 3*content.MaxPutBytes/16) + "end"
	for range 2 { // again, as after an outcome that was not known
		w.find(j, id, u, 0, "a", large)
	}
	w.find(j, id, u, 1, large, "b")
	want := []string{"a", large, "b"}
	if diff := cmp.Diff(want, w.foundTexts(id, string(u.ID))); diff != "" {
		t.Error("the evidence is not what was put")
	}
	other, stale, otherPlace := found(id, u, 3, "c"), found(id, u, 3, "c"), found(id, u, 0, "a")
	other.Session = "another"
	stale.Attempt++
	otherPlace.Item.URI += "?again"
	otherPlace.Item.DescribeText([]byte("a"))
	later := found(id, u, 0, "a")
	later.Item.Retrieved = later.Item.Retrieved.Add(time.Hour)
	for name, p := range map[string]*content.EvidencePut{
		"another session": other, "another attempt": stale, "of another place": otherPlace, "read later": later,
		"a gap": found(id, u, 4, "c"), "another text": found(id, u, 1, "c"),
		"no unit": found(id, &records.Unit{ID: "nobody", Session: u.Session, Attempt: 1}, 0, "c"),
	} {
		text := []byte("c")
		if p == otherPlace || p == later {
			text = []byte("a")
		}
		if err := j.Content.PutEvidence(w.ctx, p, text); !errors.Is(err, errs.Precondition) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.report(j, returned(id, u))
	if err := j.Content.PutEvidence(w.ctx, found(id, u, 3, "c"), []byte("c")); !errors.Is(err, errs.Precondition) {
		t.Errorf("after its report: %v", err)
	}
	if diff := cmp.Diff(want, w.foundTexts(id, string(u.ID))); diff != "" {
		t.Error("the evidence changed by puts that were refused")
	}
	w.healthy()
}

// Evidence is there in the next attempts, and stays with the unit when it has ended.
func TestEvidenceOfAttempts(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(3))
	first := w.claim(j, id, w.session(j), 1)[0]
	w.find(j, id, first, 0, "a")
	w.report(j, returned(id, first))
	second := w.claim(j, id, w.session(j), 1)[0]
	if err := j.Content.PutEvidence(w.ctx, found(id, first, 1, "late"), []byte("late")); !errors.Is(err, errs.Precondition) {
		t.Errorf("evidence of an attempt that another has followed: %v", err)
	}
	w.find(j, id, second, 1, "b")
	w.report(j, errored(id, second, mapreduce.PermanentUnit))
	w.must(j.Lifecycle.Pause(w.ctx, id, records.AnyEpoch, "for a while"))
	w.must(j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
	third := w.claim(j, id, w.session(j), 1)[0]
	w.find(j, id, third, 2, "c")
	w.report(j, done(id, third))
	if diff := cmp.Diff([]string{"a", "b", "c"}, w.foundTexts(id, string(third.ID))); diff != "" {
		t.Errorf("evidence of a unit that is complete (-want +got):\n%s", diff)
	}
	w.healthy()
	last := w.claim(j, id, w.session(j), 1)[0]
	w.find(j, id, last, 0, "d")
	w.must(j.Lifecycle.Cancel(w.ctx, id))
	_, _, err := j.Lifecycle.SweepCancelled(w.ctx, id, nil)
	w.must(err)
	if got := w.foundTexts(id, string(last.ID)); got != nil {
		t.Errorf("a unit that was cancelled has evidence %q", got)
	}
	w.healthy()
	w.must(j.Lifecycle.Delete(w.ctx, id))
	for _, kv := range w.all() {
		if strings.Contains(string(kv.Key), string(id)) {
			t.Errorf("a job that was deleted left key %x", kv.Key)
		}
	}
}

// A mortal store is gone after some transactions.
type mortal struct {
	store.Store
	left int
}

func (m *mortal) Begin(ctx context.Context) (store.Tx, error) {
	if m.left--; m.left < 0 {
		return nil, store.ErrClosed
	}
	return m.Store.Begin(ctx)
}

// partly puts the first two parts of a text.
func (w *world) partly(id mapreduce.JobID, u *records.Unit, number int, text string) {
	w.Helper()
	dying := jobs.New(store.NewDB(&mortal{w.store, 2}, store.Config{}), w.space, "dying", w.clock)
	if err := dying.Content.PutEvidence(w.ctx, found(id, u, number, text), []byte(text)); err == nil {
		w.Fatalf("all of the text is stored")
	}
	if now := w.unit(id, string(u.ID)).Evidence; now == nil || now.Next == nil || now.Next.Stored != 2*content.MaxPutBytes {
		w.Fatalf("stored is %+v, and not two parts", now)
	}
}

// What is left of evidence that was not put whole goes, whatever follows.
func TestEvidenceInParts(t *testing.T) {
	for name, follow := range map[string]func(w *world, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit){
		"the same": func(w *world, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit) { w.find(j, id, u, 1, huge) },
		"another":  func(w *world, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit) { w.find(j, id, u, 1, "b") },
		"the end":  func(w *world, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit) { w.report(j, done(id, u)) },
		"a failure": func(w *world, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit) {
			w.report(j, errored(id, u, mapreduce.PermanentUnit))
		},
		"a new try": func(w *world, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit) {
			w.report(j, errored(id, u, mapreduce.Retryable))
		},
		"its return": func(w *world, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit) { w.report(j, returned(id, u)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, open(t), 1)
			j := w.nodes[0]
			id := w.submit(j, spec(), texts(1))
			u := w.claim(j, id, w.session(j), 1)[0]
			w.find(j, id, u, 0, "a")
			w.partly(id, u, 1, huge)
			w.healthy()
			follow(w, j, id, u)
			if now := w.unit(id, string(u.ID)).Evidence; now.Next != nil {
				t.Error("a part is left")
			}
			want := []string{"a"}
			switch name {
			case "the same":
				want = append(want, huge)
			case "another":
				want = append(want, "b")
			}
			if diff := cmp.Diff(want, w.foundTexts(id, string(u.ID))); diff != "" {
				t.Error("the evidence is not what was put")
			}
			w.healthy()
		})
	}
}

var huge = strings.Repeat("0123456789abcdef", 7*content.MaxPutBytes/16)

// A unit has so much evidence and no more.
func TestEvidenceBounds(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(2))
	units := w.claim(j, id, w.session(j), 2)
	for n := range mapreduce.MaxEvidenceItems {
		w.find(j, id, units[0], n, fmt.Sprintf("page %d", n))
	}
	if err := j.Content.PutEvidence(w.ctx, found(id, units[0], mapreduce.MaxEvidenceItems, "x"), []byte("x")); !errors.Is(err, errs.Invalid) {
		t.Errorf("one item more: %v", err)
	}
	most := strings.Repeat("x", mapreduce.MaxEvidenceText)
	for n := range mapreduce.MaxEvidenceBytes / mapreduce.MaxEvidenceText {
		w.find(j, id, units[1], n, most)
	}
	if err := j.Content.PutEvidence(w.ctx, found(id, units[1], mapreduce.MaxEvidenceBytes/mapreduce.MaxEvidenceText, "x"), []byte("x")); !errors.Is(err, errs.Invalid) {
		t.Errorf("one byte more: %v", err)
	}
	if got := w.unit(id, string(units[1].ID)).Evidence.Bytes; got != mapreduce.MaxEvidenceBytes {
		t.Errorf("%d bytes are counted", got)
	}
}

// Evidence goes with the level of its units, and no other.
func TestEvidenceOfLevels(t *testing.T) {
	space := keys.New()
	for _, tt := range []struct {
		prefix, unit string
		within       bool
	}{{"look_", "look_0", true}, {"look_", "look_12", true}, {"look_", "look_L1_0", false}, {"look_", "lool_0", false}} {
		r, k := space.Outputs("j").NumberedEvidence(tt.prefix), space.Outputs("j").EvidenceChunk(mapreduce.UnitID(tt.unit), 3, 4)
		if got := string(r.Begin) <= string(k) && string(k) < string(r.End); got != tt.within {
			t.Errorf("evidence of %s goes with units %s0 …: %t", tt.unit, tt.prefix, got)
		}
	}
}
