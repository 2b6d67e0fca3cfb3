package check_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
)

// A tornStore is one whose pairs in a range cannot be read.
type tornStore struct {
	store.Store
	torn store.Range
}

func (s tornStore) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := s.Store.Begin(ctx)
	return tornTx{tx, tornReader{tx, s.torn}}, err
}

type tornTx struct {
	store.Tx
	torn tornReader
}

func (t tornTx) Get(ctx context.Context, key []byte) ([]byte, error) { return t.torn.Get(ctx, key) }

func (t tornTx) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return t.torn.GetAll(ctx, keys)
}

func (t tornTx) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return t.torn.GetRange(ctx, r, o)
}

func (t tornTx) Snapshot() store.Reader { return tornReader{t.Tx.Snapshot(), t.torn.torn} }

type tornReader struct {
	store.Reader
	torn store.Range
}

func (r tornReader) check(key []byte) error {
	if bytes.Compare(r.torn.Begin, key) <= 0 && bytes.Compare(key, r.torn.End) < 0 {
		return fmt.Errorf("%w: block 7 of 000001.sst", store.ErrCorrupt)
	}
	return nil
}

func (r tornReader) Get(ctx context.Context, key []byte) ([]byte, error) {
	if err := r.check(key); err != nil {
		return nil, err
	}
	return r.Reader.Get(ctx, key)
}

func (r tornReader) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	for _, key := range keys {
		if err := r.check(key); err != nil {
			return nil, err
		}
	}
	return r.Reader.GetAll(ctx, keys)
}

func (r tornReader) GetRange(ctx context.Context, in store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	pairs, more, err := r.Reader.GetRange(ctx, in, o)
	for _, kv := range pairs {
		if err := r.check(kv.Key); err != nil {
			return nil, false, err
		}
	}
	return pairs, more, err
}

// examine checks the store of w, of which a part cannot be read.
func examine(w *jobstest.World, torn store.Range) (wrong, info []mapreduce.Finding) {
	w.Helper()
	j := jobs.New(store.NewDB(tornStore{w.Store, torn}, store.Config{}), w.Space, "doctor", time.Now)
	w.Must(j.Check.Run(w.Ctx, func(f mapreduce.Finding) error {
		if f.Severity == mapreduce.Wrong {
			wrong = append(wrong, f)
		} else {
			info = append(info, f)
		}
		return nil
	}))
	return wrong, info
}

// Whatever pair of a healthy store cannot be read, alone or with others behind
// it, the check gets to its end and finds nothing else wrong.
func TestCheckGoesOnWhereDamageEnds(t *testing.T) {
	testenv.SlowOnFDB(t)

	m := jobstest.NewMixture(t)
	all := m.All()
	for i, kv := range all {
		for _, n := range []int{1, 7} {
			torn := store.Range{Begin: kv.Key, End: store.Single(all[min(i+n, len(all))-1].Key).End}
			wrong, info := examine(m.World, torn)
			for _, f := range wrong {
				if !strings.Contains(f.Message, "cannot be read") {
					t.Errorf("without %q and %d more: %s: %s", kv.Key, n-1, f.Key, f.Message)
				}
			}
			if len(info) == 0 {
				t.Errorf("without %q and %d more: not a line at the end", kv.Key, n-1)
			}
		}
	}
}

// Damage hides no other fault: what lies before it and behind it is checked.
func TestCheckFindsFaultsAroundDamage(t *testing.T) {
	m := jobstest.NewMixture(t)
	var units [][]byte
	for _, kv := range m.All() {
		if r := m.Space.Job(m.Mid).Units(); bytes.Compare(r.Begin, kv.Key) <= 0 && bytes.Compare(kv.Key, r.End) < 0 {
			units = append(units, kv.Key)
		}
	}
	first, torn, last := units[0], units[len(units)/2], units[len(units)-1]
	for _, key := range [][]byte{first, last} {
		m.Write(jobstest.Edit(m, key, new(storagev1.Unit), func(u *storagev1.Unit) { u.TokensIn = -5 }))
	}
	wrong, info := examine(m.World, store.Single(torn))
	negative, unread := 0, 0
	for _, f := range wrong {
		if strings.Contains(f.Message, "none can be negative") {
			negative++
		}
		if strings.Contains(f.Message, "cannot be read") && f.Job == m.Mid {
			unread++
		}
	}
	if negative != 2 || unread == 0 {
		t.Errorf("%d of 2 faults around the damage and %d lines about it: %+v", negative, unread, wrong)
	}
	done := 0
	for _, f := range info {
		if f.Job == m.End || f.Job == m.Mid {
			done++
		}
	}
	if done != 2 {
		t.Errorf("%d of 2 jobs were checked: %+v", done, info)
	}
}

// A job whose record cannot be read is named, and the others are checked.
func TestCheckWithoutAJobsRecord(t *testing.T) {
	m := jobstest.NewMixture(t)
	wrong, info := examine(m.World, store.Single(m.Space.Job(m.End).Record()))
	named, checked := false, false
	for _, f := range wrong {
		named = named || strings.Contains(f.Key+string(f.Job)+f.Message, string(m.End))
	}
	for _, f := range info {
		checked = checked || f.Job == m.Mid
	}
	if !named || !checked {
		t.Errorf("the job is named: %t, the other is checked: %t: %+v", named, checked, wrong)
	}
}

// A result that cannot be read is told by its unit.
func TestCheckNamesTheUnitOfADamagedResult(t *testing.T) {
	m := jobstest.NewMixture(t)
	wrong, _ := examine(m.World, m.Space.Outputs(m.Mid).Result(m.Large.ID, m.Large.Attempt))
	for _, f := range wrong {
		if f.Job == m.Mid && strings.Contains(f.Message, "text, result, journal or evidence of unit "+string(m.Large.ID)+" cannot be read") {
			return
		}
	}
	t.Errorf("unit %s is not named: %+v", m.Large.ID, wrong)
}

// An error of damage names the key under which one has to look.
func TestErrorsOfDamageNameTheKey(t *testing.T) {
	m := jobstest.NewMixture(t)
	r := m.Space.Outputs(m.Mid).Result(m.Large.ID, m.Large.Attempt)
	m.Write(func(tx store.Tx) {
		chunk := m.First(r)
		chunk.Value[0]++
		tx.Set(chunk.Key, chunk.Value)
	})
	_, err := m.Nodes[0].Content.Output(m.Ctx, m.Mid, m.Unit(m.Mid, string(m.Large.ID)))
	if want := fmt.Sprintf("key %x", r.Begin); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want damage at %s", err, want)
	}
}

// A verifiedStore is a store that has found two damaged files.
type verifiedStore struct{ store.Store }

func (s verifiedStore) Verify(_ context.Context, found func(store.Damage) error) (int, error) {
	for _, name := range []string{"000007.sst", "000009.sst"} {
		d := store.Damage{File: name, Keys: store.Range{Begin: []byte("\x02a\x00"), End: []byte("\x02b\x00")}, Err: store.ErrCorrupt}
		if err := found(d); err != nil {
			return 0, err
		}
	}
	return 12, nil
}

func TestCheckNamesDamagedFiles(t *testing.T) {
	m := jobstest.NewMixture(t)
	j := jobs.New(store.NewDB(verifiedStore{m.Store}, store.Config{}), m.Space, "doctor", time.Now)
	var lines []string
	m.Must(j.Check.Run(m.Ctx, func(f mapreduce.Finding) error {
		lines = append(lines, f.Key+": "+f.Message)
		return nil
	}))
	text := strings.Join(lines, "\n")
	for _, want := range []string{"000007.sst: the file is damaged", "000009.sst: the file is damaged", `"a"`, "12 files of the store checked, 2 damaged"} {
		if !strings.Contains(text, want) {
			t.Errorf("no line has %q:\n%s", want, text)
		}
	}
}
