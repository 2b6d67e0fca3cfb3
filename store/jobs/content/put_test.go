package content_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
)

// A put is stored by the session alone that holds the attempt, in order, and each
// part once, whatever becomes of the transaction that stores it.
func TestPut(t *testing.T) {
	m := jobstest.NewMixture(t)
	j := m.Nodes[0]
	u := m.Claim(j, m.Mid, m.Binding, 1)[0]
	data := bytes.Repeat([]byte("0123456789abcdef"), content.MaxPutBytes/8)
	sum := sha256.Sum256(data)
	put := jobstest.PutOf(m.Mid, u, data, sum[:])
	other := *put
	other.Session = "another"
	stale := *put
	stale.Attempt++
	first := data[:content.MaxPutBytes]
	for name, p := range map[string]*content.Put{"another session": &other, "another attempt": &stale} {
		if _, err := j.Content.Stored(m.Ctx, p); !errors.Is(err, errs.Precondition) {
			t.Errorf("%s looks: %v", name, err)
		}
		if err := j.Content.StorePut(m.Ctx, p, 0, first); !errors.Is(err, errs.Precondition) {
			t.Errorf("%s stores: %v", name, err)
		}
	}
	for range 2 { // again, as after an outcome that was not known
		m.Must(j.Content.StorePut(m.Ctx, put, 0, first))
		if n, err := j.Content.Stored(m.Ctx, put); err != nil || n != content.MaxPutBytes {
			t.Errorf("%d bytes are stored, %v", n, err)
		}
	}
	if err := j.Content.StorePut(m.Ctx, put, 2*content.MaxPutBytes, first); !errors.Is(err, errs.Aborted) {
		t.Errorf("with a gap: %v", err)
	}
	var had []byte
	m.Must(j.Content.PutParts(m.Ctx, put, content.MaxPutBytes, func(part []byte) error { had = append(had, part...); return nil }))
	if !bytes.Equal(had, first) {
		t.Errorf("%d bytes are read back", len(had))
	}

	r := jobstest.Done(m.Mid, u)
	r.Output, r.Length, r.SHA256 = nil, int64(len(data)), sum[:]
	longer := append(bytes.Clone(data), "another output of the same attempt"...)
	longSum := sha256.Sum256(longer)
	another := jobstest.PutOf(m.Mid, u, longer, longSum[:])
	m.Must(j.Content.StorePut(m.Ctx, another, 0, longer[:content.MaxPutBytes]))
	if n, err := j.Content.Stored(m.Ctx, put); err != nil || n != 0 {
		t.Errorf("%d bytes are stored of an output that another took the place of, %v", n, err)
	}
	m.Put(j, m.Mid, u, data, sum[:])
	if err := j.Content.StorePut(m.Ctx, another, 0, longer[:content.MaxPutBytes]); !errors.Is(err, errs.Precondition) {
		t.Errorf("another output in the place of one that is stored whole: %v", err)
	}
	m.Report(j, r)
	now, err := j.View.Unit(m.Ctx, m.Mid, u.ID)
	m.Must(err)
	got, err := j.Content.Output(m.Ctx, m.Mid, now)
	if err != nil || !bytes.Equal(got, data) || now.Put != nil {
		t.Errorf("an output of %d bytes, %v", len(got), err)
	}
	if err := j.Content.StorePut(m.Ctx, put, 0, first); !errors.Is(err, errs.Precondition) {
		t.Errorf("after its report: %v", err)
	}
	m.Healthy()
}

// A report that names an output which is not stored whole is a failure, not a result.
func TestAReportWithoutItsOutput(t *testing.T) {
	m := jobstest.NewMixture(t)
	j := m.Nodes[0]
	u := m.Claim(j, m.Mid, m.Binding, 1)[0]
	data := bytes.Repeat([]byte("x"), content.MaxPutBytes+1)
	sum := sha256.Sum256(data)
	m.Must(j.Content.StorePut(m.Ctx, jobstest.PutOf(m.Mid, u, data, sum[:]), 0, data[:content.MaxPutBytes]))
	r := jobstest.Done(m.Mid, u)
	r.Output, r.Length, r.SHA256 = nil, int64(len(data)), sum[:]
	m.Report(j, r)
	now, err := j.View.Unit(m.Ctx, m.Mid, u.ID)
	m.Must(err)
	if now.State != mapreduce.Pending || now.Failures != 1 || now.Result != nil {
		t.Errorf("the unit is %v", now)
	}
	m.Healthy()
}

// What is damaged is told with its key, after no more than its length.
func TestDamagedParts(t *testing.T) {
	for name, damage := range map[string]func(m *jobstest.Mixture) func(tx store.Tx){
		"a chunk is gone": func(m *jobstest.Mixture) func(tx store.Tx) {
			return func(tx store.Tx) { tx.Clear(m.Space.Outputs(m.Mid).ResultChunk(m.Large.ID, 1, 1)) }
		},
		"one is too many": func(m *jobstest.Mixture) func(tx store.Tx) {
			return func(tx store.Tx) {
				tx.Set(m.Space.Outputs(m.Mid).ResultChunk(m.Large.ID, 1, 99), make([]byte, store.ChunkSize))
			}
		},
		"another chunk": func(m *jobstest.Mixture) func(tx store.Tx) {
			return func(tx store.Tx) {
				tx.Set(m.Space.Outputs(m.Mid).ResultChunk(m.Large.ID, 1, 0), make([]byte, store.ChunkSize))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := jobstest.NewMixture(t)
			u, err := m.Look.View.Unit(m.Ctx, m.Mid, m.Large.ID)
			m.Must(err)
			m.Must(store.NewDB(m.Store, store.Config{}).Update(m.Ctx, func(tx store.Tx) error { damage(m)(tx); return nil }))
			n := 0
			err = m.Look.Content.OutputParts(m.Ctx, m.Mid, u, func(part []byte) error { n += len(part); return nil })
			if !errors.Is(err, errs.DataLoss) || !errors.Is(err, store.ErrCorrupt) || int64(n) > u.Result.Length {
				t.Errorf("%d of %d bytes and %v", n, u.Result.Length, err)
			}
			if err != nil && !strings.Contains(err.Error(), "stored from key") {
				t.Errorf("%v names no key", err)
			}
		})
	}
}
