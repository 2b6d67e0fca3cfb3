package content_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
)

// An answer is what answer returns, as text.
func answer(w *jobstest.World, t mapreduce.TenantID, question string, since time.Time) string {
	w.Helper()
	data, err := w.Look.Answers.Get(w.Ctx, t, jobstest.KeyOf(question), since)
	w.Must(err)
	return string(data)
}

func TestAnswersAreKeptByTenant(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	long := string(bytes.Repeat([]byte("0123456789abcdef"), protocol.MaxAnswer/16))
	always := time.Time{}
	w.Keep("a", "q", "of a", always)
	w.Keep("b", "q", long, always)
	w.Keep("a", "q", "another", always) // the first stands
	for _, tt := range []struct {
		tenant         mapreduce.TenantID
		question, want string
	}{
		{"a", "q", "of a"},
		{"b", "q", long},
		{"", "q", ""},
		{"a", "other", ""},
	} {
		if got := answer(w, tt.tenant, tt.question, always); got != tt.want {
			t.Errorf("%q was answered %d bytes to %q, want %d", tt.tenant, len(got), tt.question, len(tt.want))
		}
	}
	for _, n := range []int{0, protocol.MaxAnswer + 1} {
		if err := w.Look.Answers.Keep(w.Ctx, "a", jobstest.KeyOf("x"), make([]byte, n), always); err == nil {
			t.Errorf("an answer of %d bytes was kept", n)
		}
	}
	if wrong := w.Sound(); wrong != nil {
		t.Errorf("%q", wrong)
	}
	w.Must(w.Look.Answers.Clear(w.Ctx, "b"))
	if got := answer(w, "b", "q", always); got != "" || answer(w, "a", "q", always) != "of a" {
		t.Error("not just the answers of b were forgotten")
	}
	tenants, err := w.Look.Answers.Tenants(w.Ctx)
	if diff := cmp.Diff([]mapreduce.TenantID{"a"}, tenants); diff != "" || err != nil {
		t.Errorf("tenants: -want +got:\n%s%v", diff, err)
	}
}

func TestAnswersGrowOld(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	w.Keep("a", "q", "old", time.Time{})
	later := w.Clock()
	if got := answer(w, "a", "q", later); got != "" {
		t.Errorf("%q was given, which is too old", got)
	}
	w.Keep("a", "q", "new", later)
	if got := answer(w, "a", "q", later); got != "new" {
		t.Errorf("%q was given, want the one that was kept since", got)
	}
	c, err := w.Look.Answers.Stats(w.Ctx, "a")
	if err != nil || c.Answers != 1 || c.Bytes != 3 || !c.Oldest.After(later) {
		t.Errorf("%+v, %v; want the new one alone", c, err)
	}
}

// The oldest answers go when there are too many, and no others.
func TestAnswersAreTrimmed(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	const n = 250
	var half time.Time
	for i := range n {
		if i == n/2 {
			half = w.Clock()
		}
		w.Keep("a", fmt.Sprint(i), "0123456789", time.Time{})
	}
	w.Keep("b", "q", "another tenant's", time.Time{})
	for _, tt := range []struct {
		name  string
		most  int64
		since time.Time
		left  int
	}{
		{"nothing", n * 10, time.Time{}, n},
		{"one, in part too much", n*10 - 1, time.Time{}, n - 1},
		{"those of the first half", n * 10, half, n / 2},
		{"all but three", 39, half, 3},
	} {
		w.Must(w.Look.Answers.Trim(w.Ctx, "a", tt.most, tt.since))
		c, err := w.Look.Answers.Stats(w.Ctx, "a")
		if err != nil || c.Answers != int64(tt.left) || c.Bytes != int64(10*tt.left) {
			t.Errorf("%s: %+v is left (%v), want %d", tt.name, c, err, tt.left)
		}
		for i := range n {
			if got, want := answer(w, "a", fmt.Sprint(i), time.Time{}) != "", i >= n-tt.left; got != want {
				t.Errorf("%s: answer %d of %d is there: %t", tt.name, i, n, got)
			}
		}
	}
	if answer(w, "b", "q", time.Time{}) == "" {
		t.Error("another tenant's is gone")
	}
	if wrong := w.Sound(); wrong != nil {
		t.Errorf("%q", wrong)
	}
}

// What is not what was kept is given to nobody, and found by a check.
func TestDamagedAnswers(t *testing.T) {
	for name, damage := range map[string]func(w *jobstest.World, tx store.Tx){
		"changed": func(w *jobstest.World, tx store.Tx) {
			tx.Set(w.Space.Tenant("a").AnswerChunk(jobstest.KeyOf("q"), 0), []byte("answeR"))
		},
		"longer": func(w *jobstest.World, tx store.Tx) {
			tx.Set(w.Space.Tenant("a").AnswerChunk(jobstest.KeyOf("q"), 1), []byte("!"))
		},
		"gone": func(w *jobstest.World, tx store.Tx) {
			tx.Clear(w.Space.Tenant("a").AnswerChunk(jobstest.KeyOf("q"), 0))
		},
		"of another question": func(w *jobstest.World, tx store.Tx) {
			tx.Set(w.Space.Tenant("a").Answer(jobstest.KeyOf("q")), w.Get(w.Space.Tenant("a").Answer(jobstest.KeyOf("other"))))
			tx.Set(w.Space.Tenant("a").AnswerChunk(jobstest.KeyOf("q"), 0), []byte("wrong!"))
		},
		"unlisted": func(w *jobstest.World, tx store.Tx) { tx.ClearRange(w.Space.Tenant("a").AllAged()) },
		"headless": func(w *jobstest.World, tx store.Tx) { tx.Clear(w.Space.Tenant("a").Answer(jobstest.KeyOf("q"))) },
	} {
		t.Run(name, func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 1)
			w.Keep("a", "q", "answer", time.Time{})
			w.Keep("a", "other", "wrong!", time.Time{})
			db := store.NewDB(w.Store, store.Config{})
			w.Must(db.Update(w.Ctx, func(tx store.Tx) error { damage(w, tx); return nil }))
			if len(w.Sound()) == 0 {
				t.Error("a check finds nothing wrong")
			}
			if got := answer(w, "a", "q", time.Time{}); got != "" && got != "answer" {
				t.Errorf("%q was given", got)
			}
			w.Keep("a", "q", "anew", time.Time{})
			if got := answer(w, "a", "q", time.Time{}); got != "anew" && name != "unlisted" {
				t.Errorf("%q is given once it was asked anew", got)
			}
		})
	}
}
