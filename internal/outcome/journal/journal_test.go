package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/journal"
)

// A disk is the journal of a unit as it is stored, and what its latest attempt sees.
type disk struct {
	*journal.Journal
	stored  [][]byte
	attempt int
	strayed []string
	forgot  []string
	slow    bool // nothing is stored before somebody waits for it
	dead    bool // nothing is stored any more
}

// open begins the next attempt.
func (d *disk) open(t interface{ Fatal(...any) }) {
	d.attempt++
	var data []byte
	for _, raw := range d.stored {
		data = journal.AppendEntry(data, raw)
	}
	j, err := journal.Open(data, len(d.stored), d.attempt, diskAttempt{d, d.attempt})
	if err != nil {
		t.Fatal(err)
	}
	d.Journal = j
}

// A diskAttempt is the owner of the journal of one attempt.
type diskAttempt struct {
	*disk
	attempt int
}

func (a diskAttempt) Offer(now bool) { a.store(a.attempt, now) }

func (a diskAttempt) Strayed(key string, next journal.Entry, left int) {
	a.strayed = append(a.strayed, fmt.Sprintf("%s for %s, %d left", key, next.Key, left))
}

func (a diskAttempt) Forgot(key string, why error) {
	a.forgot = append(a.forgot, key+": "+why.Error())
}

// store stores what an attempt offers.
func (d *disk) store(attempt int, now bool) {
	if d.slow && !now || d.dead {
		return
	}
	for {
		first, data, n := d.Next(d.Len())
		if n == 0 {
			return
		}
		entries, err := journal.Split(data)
		if err != nil || first != len(d.stored) || attempt != d.attempt || len(data) > protocol.MaxJournalAppend {
			panic(fmt.Sprintf("%d entries from %d on, behind %d: %v", len(entries), first, len(d.stored), err))
		}
		for _, raw := range entries {
			d.stored = append(d.stored, bytes.Clone(raw))
		}
		d.Acknowledge(n)
	}
}

// doing returns a function that notes that it was run.
func doing(did *[]string, key string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		*did = append(*did, key)
		return []byte("of " + key), nil
	}
}

// What was done is not done again, in this attempt or another, whatever the order in
// which it is asked for; an error is not remembered.
func TestDo(t *testing.T) {
	d := &disk{}
	d.open(t)
	var did []string
	ask := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			got, err := d.Do(t.Context(), key, doing(&did, key))
			if err != nil || string(got) != "of "+key {
				t.Fatalf("%s came to %q, %v", key, got, err)
			}
		}
	}
	ask("a", "b", "a")
	broken := errors.New("broken")
	if _, err := d.Do(t.Context(), "c", func(context.Context) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("c: %v", err)
	}
	ask("d")
	d.open(t)
	ask("a", "b", "c", "d", "e")
	if _, ok := d.Recall("f"); ok {
		t.Error("what nobody did is recalled")
	}
	if diff := cmp.Diff([]string{"a", "b", "d", "c", "e"}, did); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c for d, 1 left"}, d.strayed); diff != "" {
		t.Errorf("strayed (-want +got):\n%s", diff)
	}
	d.open(t)
	ask("other", "a", "another")
	if diff := cmp.Diff([]string{"c for d, 1 left", "other for a, 5 left"}, d.strayed); diff != "" {
		t.Errorf("strayed (-want +got):\n%s", diff)
	}
	for _, key := range []string{"", strings.Repeat("k", protocol.MaxJournalKey+1)} {
		if _, err := d.Do(t.Context(), key, doing(&did, key)); err == nil {
			t.Errorf("a key of %d bytes was taken", len(key))
		}
	}
}

// What others do is waited for, and not done beside them.
func TestDoAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal.Journal
		var runs atomic.Int64
		finish := make(chan struct{})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				got, err := j.Do(t.Context(), "a", func(context.Context) ([]byte, error) {
					runs.Add(1)
					<-finish
					return []byte("x"), nil
				})
				if err != nil || string(got) != "x" {
					t.Errorf("a came to %q, %v", got, err)
				}
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		synctest.Wait()
		cancel()
		if _, err := j.Do(ctx, "a", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("while another does it: %v", err)
		}
		close(finish)
		all.Wait()
		if runs.Load() != 1 {
			t.Errorf("it was done %d times", runs.Load())
		}
	})
}

// An attempt may die at any moment, with the last entries stored or not: nothing that is
// to be done once is done twice, nothing that was stored is done again, and what
// depends on a thing that is done once begins only when that is stored.
func TestDeaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &disk{slow: rapid.Bool().Draw(t, "slow")}
		done := make(map[string]int)
		stored := make(map[string]bool) // before an attempt began
		for attempt := range 6 {
			d.dead = false
			d.open(t)
			clear(stored)
			for _, raw := range d.stored {
				e, err := journal.Decode(raw)
				if err != nil {
					t.Fatal(err)
				}
				if !e.Begun {
					stored[e.Key] = true
				}
			}
			death := rapid.IntRange(0, 12).Draw(t, "steps until death")
			for i := range 6 {
				key := fmt.Sprint(i)
				once := i%3 == 2
				do := d.Do
				if once {
					do, key = d.DoOnce, key+" once"
				}
				ctx, die := context.WithCancel(context.Background())
				if d.dead = death == 2*i; d.dead {
					die() // before it is stored that it begins
				}
				got, err := do(ctx, key, func(context.Context) ([]byte, error) {
					if stored[key] {
						t.Fatalf("%s is done again", key)
					}
					if once && d.Waiting() > 0 {
						t.Fatalf("%s is begun before %d entries are stored", key, d.Waiting())
					}
					if done[key]++; once && done[key] > 1 {
						t.Fatalf("%s is done twice", key)
					}
					if d.dead = death == 2*i+1; d.dead {
						die() // before it is stored that it was done
					}
					return []byte(key), nil
				})
				die()
				switch {
				case d.dead:
				case once && errors.Is(err, journal.ErrInterrupted):
					if stored[key] {
						t.Fatalf("%s is stored, and said to be interrupted", key)
					}
				case once && d.Waiting() > 0:
					t.Fatalf("%s has come to an end, and %d entries are not stored", key, d.Waiting())
				case err != nil || string(got) != key:
					t.Fatalf("attempt %d: %s came to %q, %v", attempt, key, got, err)
				}
				if d.dead {
					if rapid.Bool().Draw(t, "stored without anybody knowing") {
						d.dead = false
						d.store(d.attempt, true)
					}
					break
				}
			}
		}
	})
}

// What does not fit is not remembered; what must not be done twice is not begun then.
func TestFull(t *testing.T) {
	large := func(context.Context) ([]byte, error) { return make([]byte, protocol.MaxJournalEntry), nil }
	const most = protocol.MaxJournalEntry - 100
	fits := func(context.Context) ([]byte, error) { return make([]byte, most), nil }
	never := func(context.Context) ([]byte, error) {
		t.Error("it was begun")
		return nil, nil
	}
	t.Run("entry", func(t *testing.T) {
		d := &disk{}
		d.open(t)
		for range 2 {
			if got, err := d.Do(t.Context(), "a", large); err != nil || len(got) != protocol.MaxJournalEntry {
				t.Errorf("came to %d bytes, %v", len(got), err)
			}
		}
		if got, err := d.DoOnce(t.Context(), "b", large); err != nil || len(got) != protocol.MaxJournalEntry {
			t.Errorf("came to %d bytes, %v", len(got), err)
		}
		d.open(t)
		if _, err := d.DoOnce(t.Context(), "b", never); !errors.Is(err, journal.ErrInterrupted) {
			t.Errorf("what was done, and was too large to be remembered: %v", err)
		}
		if len(d.stored) != 1 || len(d.forgot) != 1 || !strings.Contains(d.forgot[0], "a: the journal of the unit is full for an entry of") {
			t.Errorf("%d entries are stored; forgot %q", len(d.stored), d.forgot)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		d := &disk{}
		d.open(t)
		for i := range protocol.MaxJournalBytes/protocol.MaxJournalEntry + 1 {
			if _, err := d.Do(t.Context(), fmt.Sprint(i), fits); err != nil {
				t.Fatal(err)
			}
		}
		if n := protocol.MaxJournalBytes / protocol.MaxJournalEntry; len(d.stored) != n || len(d.forgot) != 1 {
			t.Errorf("%d entries are stored, want %d; forgot %q", len(d.stored), n, d.forgot)
		}
	})
	t.Run("entries", func(t *testing.T) {
		d := &disk{slow: true}
		d.open(t)
		for i := range protocol.MaxJournalEntries {
			if _, err := d.Do(t.Context(), fmt.Sprint(i), func(context.Context) ([]byte, error) { return nil, nil }); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.DoOnce(t.Context(), "b", never); !errors.Is(err, journal.ErrFull) {
			t.Errorf("beyond the last entry: %v", err)
		}
		d.store(1, true)
		d.open(t)
		if _, ok := d.Recall("4095"); !ok || len(d.stored) != protocol.MaxJournalEntries {
			t.Errorf("%d entries are stored", len(d.stored))
		}
	})
}

// Whatever comes in place of a journal is refused, or can be used.
func FuzzOpen(f *testing.F) {
	raw, err := (&journal.Entry{Key: "k", Attempt: 1, Result: []byte("x")}).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(journal.AppendEntry(nil, raw), 1)
	f.Add([]byte{0}, 0)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 0)
	f.Fuzz(func(t *testing.T, data []byte, own int) {
		j, err := journal.Open(data, own, 1, nil)
		if err != nil {
			return
		}
		before := j.Len()
		if before != own {
			t.Errorf("%d entries of %d", before, own)
		}
		if _, err := j.Do(t.Context(), "a new key", func(context.Context) ([]byte, error) { return nil, nil }); err != nil {
			t.Error(err)
		}
	})
}

// FuzzEntries takes any bytes for entries of a journal: those that are taken are stored and
// read again as they were, and no more bytes are held than came.
func FuzzEntries(f *testing.F) {
	var data []byte
	for _, e := range []journal.Entry{
		{Key: "k", Attempt: 1, Begun: true},
		{Key: "k", Attempt: 1, Result: []byte("x")},
		{Key: strings.Repeat("ü", 100), Attempt: 1 << 40, Result: bytes.Repeat([]byte{0}, 300)},
	} {
		raw, err := e.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
		data = journal.AppendEntry(data, raw)
	}
	f.Add(data)
	f.Add([]byte{0x80, 0x00})
	f.Fuzz(func(t *testing.T, data []byte) {
		if e, err := journal.Decode(data); err == nil {
			checkEntry(t, e)
		}
		parts, err := journal.Split(data)
		if err != nil {
			return
		}
		var joined []byte
		held := 0
		for _, raw := range parts {
			joined, held = journal.AppendEntry(joined, raw), held+len(raw)
			if e, err := journal.Decode(raw); err == nil {
				checkEntry(t, e)
			}
		}
		if held > len(data) || len(joined) > len(data) {
			t.Fatalf("%d bytes came, and %d are held", len(data), held)
		}
		if again, err := journal.Split(joined); err != nil || !cmp.Equal(parts, again) {
			t.Errorf("entries that were taken apart are put together otherwise: %v", err)
		}
	})
}

// checkEntry checks that an entry that was read is stored as it is.
func checkEntry(t *testing.T, e journal.Entry) {
	t.Helper()
	if e.Key == "" || len(e.Key) > protocol.MaxJournalKey || e.Attempt < 1 || e.Begun && len(e.Result) > 0 {
		t.Fatalf("%+v is taken for an entry", e)
	}
	raw, err := e.Encode()
	if err != nil {
		t.Fatalf("%+v cannot be stored: %v", e, err)
	}
	again, err := journal.Decode(raw)
	if err != nil || again.Key != e.Key || again.Attempt != e.Attempt || again.Begun != e.Begun || !bytes.Equal(again.Result, e.Result) {
		t.Fatalf("%+v is read again as %+v, %v", e, again, err)
	}
}
