package content_test

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
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// foundTexts returns the texts of the evidence of a unit.
func foundTexts(w *jobstest.World, id mapreduce.JobID, unit string) (all []string) {
	w.Helper()
	j := w.Nodes[0]
	items, err := j.Content.Evidence(w.Ctx, id, w.Unit(id, unit))
	w.Must(err)
	for i, e := range items {
		var text strings.Builder
		w.Must(j.Content.EvidenceText(w.Ctx, id, mapreduce.UnitID(unit), i, &e, func(part []byte) error {
			text.Write(part)
			return nil
		}))
		if diff := cmp.Diff(jobstest.PageOf(text.String()), e); diff != "" {
			w.Errorf("item %d of %s (-want +got):\n%s", i, unit, diff)
		}
		all = append(all, text.String())
	}
	return all
}

// Items are added in order, by the session alone that holds the attempt, each once and
// whole, whatever becomes of the transactions that add them.
func TestEvidence(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(3))
	u := w.Claim(j, id, w.Session(j), 1)[0]
	large := strings.Repeat("0123456789abcdef", 3*content.MaxPutBytes/16) + "end"
	for range 2 { // again, as after an outcome that was not known
		w.Find(j, id, u, 0, "a", large)
	}
	w.Find(j, id, u, 1, large, "b")
	want := []string{"a", large, "b"}
	if diff := cmp.Diff(want, foundTexts(w, id, string(u.ID))); diff != "" {
		t.Error("the evidence is not what was put")
	}
	other, stale, otherPlace := jobstest.Found(id, u, 3, "c"), jobstest.Found(id, u, 3, "c"), jobstest.Found(id, u, 0, "a")
	other.Session = "another"
	stale.Attempt++
	otherPlace.Item.URI += "?again"
	otherPlace.Item.DescribeText([]byte("a"))
	later := jobstest.Found(id, u, 0, "a")
	later.Item.Retrieved = later.Item.Retrieved.Add(time.Hour)
	for name, p := range map[string]*content.EvidencePut{
		"another session": other, "another attempt": stale, "of another place": otherPlace, "read later": later,
		"a gap": jobstest.Found(id, u, 4, "c"), "another text": jobstest.Found(id, u, 1, "c"),
		"no unit": jobstest.Found(id, &records.Unit{ID: "nobody", Session: u.Session, Attempt: 1}, 0, "c"),
	} {
		text := []byte("c")
		if p == otherPlace || p == later {
			text = []byte("a")
		}
		if err := j.Content.PutEvidence(w.Ctx, p, text); !errors.Is(err, errs.Precondition) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.Report(j, jobstest.Returned(id, u))
	if err := j.Content.PutEvidence(w.Ctx, jobstest.Found(id, u, 3, "c"), []byte("c")); !errors.Is(err, errs.Precondition) {
		t.Errorf("after its report: %v", err)
	}
	if diff := cmp.Diff(want, foundTexts(w, id, string(u.ID))); diff != "" {
		t.Error("the evidence changed by puts that were refused")
	}
	w.Healthy()
}

// Evidence is there in the next attempts, and stays with the unit when it has ended.
func TestEvidenceOfAttempts(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(3))
	first := w.Claim(j, id, w.Session(j), 1)[0]
	w.Find(j, id, first, 0, "a")
	w.Report(j, jobstest.Returned(id, first))
	second := w.Claim(j, id, w.Session(j), 1)[0]
	if err := j.Content.PutEvidence(w.Ctx, jobstest.Found(id, first, 1, "late"), []byte("late")); !errors.Is(err, errs.Precondition) {
		t.Errorf("evidence of an attempt that another has followed: %v", err)
	}
	w.Find(j, id, second, 1, "b")
	w.Report(j, jobstest.Errored(id, second, protocol.PermanentUnit))
	w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "for a while"))
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	third := w.Claim(j, id, w.Session(j), 1)[0]
	w.Find(j, id, third, 2, "c")
	w.Report(j, jobstest.Done(id, third))
	if diff := cmp.Diff([]string{"a", "b", "c"}, foundTexts(w, id, string(third.ID))); diff != "" {
		t.Errorf("evidence of a unit that is complete (-want +got):\n%s", diff)
	}
	w.Healthy()
	last := w.Claim(j, id, w.Session(j), 1)[0]
	w.Find(j, id, last, 0, "d")
	w.Must(j.Lifecycle.Cancel(w.Ctx, id))
	_, _, err := j.Lifecycle.SweepCancelled(w.Ctx, id, nil)
	w.Must(err)
	if got := foundTexts(w, id, string(last.ID)); got != nil {
		t.Errorf("a unit that was cancelled has evidence %q", got)
	}
	w.Healthy()
	w.Must(j.Lifecycle.Delete(w.Ctx, id))
	for _, kv := range w.All() {
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
func partly(w *jobstest.World, id mapreduce.JobID, u *records.Unit, number int, text string) {
	w.Helper()
	dying := jobs.New(store.NewDB(&mortal{w.Store, 2}, store.Config{}), w.Space, "dying", w.Clock)
	if err := dying.Content.PutEvidence(w.Ctx, jobstest.Found(id, u, number, text), []byte(text)); err == nil {
		w.Fatalf("all of the text is stored")
	}
	if now := w.Unit(id, string(u.ID)).Evidence; now == nil || now.Next == nil || now.Next.Stored != 2*content.MaxPutBytes {
		w.Fatalf("stored is %+v, and not two parts", now)
	}
}

// What is left of evidence that was not put whole goes, whatever follows.
func TestEvidenceInParts(t *testing.T) {
	for name, follow := range map[string]func(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit){
		"the same": func(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit) { w.Find(j, id, u, 1, huge) },
		"another":  func(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit) { w.Find(j, id, u, 1, "b") },
		"the end": func(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit) {
			w.Report(j, jobstest.Done(id, u))
		},
		"a failure": func(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit) {
			w.Report(j, jobstest.Errored(id, u, protocol.PermanentUnit))
		},
		"a new try": func(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit) {
			w.Report(j, jobstest.Errored(id, u, protocol.Retryable))
		},
		"its return": func(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit) {
			w.Report(j, jobstest.Returned(id, u))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 1)
			j := w.Nodes[0]
			id := w.Submit(j, jobstest.Spec(), jobstest.Texts(1))
			u := w.Claim(j, id, w.Session(j), 1)[0]
			w.Find(j, id, u, 0, "a")
			partly(w, id, u, 1, huge)
			w.Healthy()
			follow(w, j, id, u)
			if now := w.Unit(id, string(u.ID)).Evidence; now.Next != nil {
				t.Error("a part is left")
			}
			want := []string{"a"}
			switch name {
			case "the same":
				want = append(want, huge)
			case "another":
				want = append(want, "b")
			}
			if diff := cmp.Diff(want, foundTexts(w, id, string(u.ID))); diff != "" {
				t.Error("the evidence is not what was put")
			}
			w.Healthy()
		})
	}
}

var huge = strings.Repeat("0123456789abcdef", 7*content.MaxPutBytes/16)

// A unit has so much evidence and no more.
func TestEvidenceBounds(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(2))
	units := w.Claim(j, id, w.Session(j), 2)
	for n := range mapreduce.MaxEvidenceItems {
		w.Find(j, id, units[0], n, fmt.Sprintf("page %d", n))
	}
	if err := j.Content.PutEvidence(w.Ctx, jobstest.Found(id, units[0], mapreduce.MaxEvidenceItems, "x"), []byte("x")); !errors.Is(err, errs.Invalid) {
		t.Errorf("one item more: %v", err)
	}
	most := strings.Repeat("x", mapreduce.MaxEvidenceText)
	for n := range mapreduce.MaxEvidenceBytes / mapreduce.MaxEvidenceText {
		w.Find(j, id, units[1], n, most)
	}
	if err := j.Content.PutEvidence(w.Ctx, jobstest.Found(id, units[1], mapreduce.MaxEvidenceBytes/mapreduce.MaxEvidenceText, "x"), []byte("x")); !errors.Is(err, errs.Invalid) {
		t.Errorf("one byte more: %v", err)
	}
	if got := w.Unit(id, string(units[1].ID)).Evidence.Bytes; got != mapreduce.MaxEvidenceBytes {
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
