package jobs_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
)

func keyOf(question string) []byte {
	sum := sha256.Sum256([]byte(question))
	return sum[:]
}

// An answer is what answer returns, as text.
func (w *world) answer(t mapreduce.TenantID, question string, since time.Time) string {
	w.Helper()
	data, err := w.look.Answers.Get(w.ctx, t, keyOf(question), since)
	w.must(err)
	return string(data)
}

func (w *world) keep(t mapreduce.TenantID, question, answer string, since time.Time) {
	w.Helper()
	w.must(w.look.Answers.Keep(w.ctx, t, keyOf(question), []byte(answer), since))
}

// sound reports what a check finds wrong.
func (w *world) sound() (wrong []string) {
	w.Helper()
	w.must(w.look.Check.Run(w.ctx, func(f mapreduce.Finding) error {
		if f.Severity == mapreduce.Wrong {
			wrong = append(wrong, f.Key+": "+f.Message)
		}
		return nil
	}))
	return wrong
}

func TestAnswersAreKeptByTenant(t *testing.T) {
	w := newWorld(t, open(t), 1)
	long := string(bytes.Repeat([]byte("0123456789abcdef"), mapreduce.MaxAnswer/16))
	always := time.Time{}
	w.keep("a", "q", "of a", always)
	w.keep("b", "q", long, always)
	w.keep("a", "q", "another", always) // the first stands
	for _, tt := range []struct {
		tenant         mapreduce.TenantID
		question, want string
	}{
		{"a", "q", "of a"},
		{"b", "q", long},
		{"", "q", ""},
		{"a", "other", ""},
	} {
		if got := w.answer(tt.tenant, tt.question, always); got != tt.want {
			t.Errorf("%q was answered %d bytes to %q, want %d", tt.tenant, len(got), tt.question, len(tt.want))
		}
	}
	for _, n := range []int{0, mapreduce.MaxAnswer + 1} {
		if err := w.look.Answers.Keep(w.ctx, "a", keyOf("x"), make([]byte, n), always); err == nil {
			t.Errorf("an answer of %d bytes was kept", n)
		}
	}
	if wrong := w.sound(); wrong != nil {
		t.Errorf("%q", wrong)
	}
	w.must(w.look.Answers.Clear(w.ctx, "b"))
	if got := w.answer("b", "q", always); got != "" || w.answer("a", "q", always) != "of a" {
		t.Error("not just the answers of b were forgotten")
	}
	tenants, err := w.look.Answers.Tenants(w.ctx)
	if diff := cmp.Diff([]mapreduce.TenantID{"a"}, tenants); diff != "" || err != nil {
		t.Errorf("tenants: -want +got:\n%s%v", diff, err)
	}
}

func TestAnswersGrowOld(t *testing.T) {
	w := newWorld(t, open(t), 1)
	w.keep("a", "q", "old", time.Time{})
	later := w.clock()
	if got := w.answer("a", "q", later); got != "" {
		t.Errorf("%q was given, which is too old", got)
	}
	w.keep("a", "q", "new", later)
	if got := w.answer("a", "q", later); got != "new" {
		t.Errorf("%q was given, want the one that was kept since", got)
	}
	c, err := w.look.Answers.Stats(w.ctx, "a")
	if err != nil || c.Answers != 1 || c.Bytes != 3 || !c.Oldest.After(later) {
		t.Errorf("%+v, %v; want the new one alone", c, err)
	}
}

// The oldest answers go when there are too many, and no others.
func TestAnswersAreTrimmed(t *testing.T) {
	w := newWorld(t, open(t), 1)
	const n = 250
	var half time.Time
	for i := range n {
		if i == n/2 {
			half = w.clock()
		}
		w.keep("a", fmt.Sprint(i), "0123456789", time.Time{})
	}
	w.keep("b", "q", "another tenant's", time.Time{})
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
		w.must(w.look.Answers.Trim(w.ctx, "a", tt.most, tt.since))
		c, err := w.look.Answers.Stats(w.ctx, "a")
		if err != nil || c.Answers != int64(tt.left) || c.Bytes != int64(10*tt.left) {
			t.Errorf("%s: %+v is left (%v), want %d", tt.name, c, err, tt.left)
		}
		for i := range n {
			if got, want := w.answer("a", fmt.Sprint(i), time.Time{}) != "", i >= n-tt.left; got != want {
				t.Errorf("%s: answer %d of %d is there: %t", tt.name, i, n, got)
			}
		}
	}
	if w.answer("b", "q", time.Time{}) == "" {
		t.Error("another tenant's is gone")
	}
	if wrong := w.sound(); wrong != nil {
		t.Errorf("%q", wrong)
	}
}

// What is not what was kept is given to nobody, and found by a check.
func TestDamagedAnswers(t *testing.T) {
	for name, damage := range map[string]func(w *world, tx store.Tx){
		"changed": func(w *world, tx store.Tx) { tx.Set(w.space.Tenant("a").AnswerChunk(keyOf("q"), 0), []byte("answeR")) },
		"longer":  func(w *world, tx store.Tx) { tx.Set(w.space.Tenant("a").AnswerChunk(keyOf("q"), 1), []byte("!")) },
		"gone":    func(w *world, tx store.Tx) { tx.Clear(w.space.Tenant("a").AnswerChunk(keyOf("q"), 0)) },
		"of another question": func(w *world, tx store.Tx) {
			tx.Set(w.space.Tenant("a").Answer(keyOf("q")), w.get(w.space.Tenant("a").Answer(keyOf("other"))))
			tx.Set(w.space.Tenant("a").AnswerChunk(keyOf("q"), 0), []byte("wrong!"))
		},
		"unlisted": func(w *world, tx store.Tx) { tx.ClearRange(w.space.Tenant("a").AllAged()) },
		"headless": func(w *world, tx store.Tx) { tx.Clear(w.space.Tenant("a").Answer(keyOf("q"))) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, open(t), 1)
			w.keep("a", "q", "answer", time.Time{})
			w.keep("a", "other", "wrong!", time.Time{})
			db := store.NewDB(w.store, store.Config{})
			w.must(db.Update(w.ctx, func(tx store.Tx) error { damage(w, tx); return nil }))
			if len(w.sound()) == 0 {
				t.Error("a check finds nothing wrong")
			}
			if got := w.answer("a", "q", time.Time{}); got != "" && got != "answer" {
				t.Errorf("%q was given", got)
			}
			w.keep("a", "q", "anew", time.Time{})
			if got := w.answer("a", "q", time.Time{}); got != "anew" && name != "unlisted" {
				t.Errorf("%q is given once it was asked anew", got)
			}
		})
	}
}
