package jobs_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/tuple"
)

func installation(s store.Store, prefix ...string) *jobs.Jobs {
	return jobs.New(store.NewDB(s, store.Config{}), keys.New(prefix...), "node", time.Now)
}

// put writes a pair behind everyone's back.
func put(t *testing.T, s store.Store, key []byte, value string) {
	t.Helper()
	err := store.NewDB(s, store.Config{}).Update(t.Context(), func(tx store.Tx) error {
		tx.Set(key, []byte(value))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// contents returns everything in a store.
func contents(t *testing.T, s store.Store) (all []store.KeyValue) {
	t.Helper()
	err := store.NewDB(s, store.Config{}).View(t.Context(), func(tx store.Tx) (err error) {
		all, _, err = tx.GetRange(t.Context(), store.Range{End: []byte{0xff}}, store.RangeOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestInstallation(t *testing.T) {
	format := keys.New("prod").Format()
	for _, c := range []struct {
		name   string
		before func(t *testing.T, s store.Store)
		want   error
		says   string
	}{
		{"an empty store", func(*testing.T, store.Store) {}, nil, ""},
		{"keys of others beside the prefix", func(t *testing.T, s store.Store) {
			put(t, s, tuple.AppendString(nil, "other"), "")
			put(t, s, []byte("\x00"), "")
			put(t, s, tuple.AppendString(tuple.AppendString(nil, "production"), "x"), "")
			put(t, s, keys.New().Format(), "whatever")
		}, nil, ""},
		{"keys of others below the prefix", func(t *testing.T, s store.Store) {
			put(t, s, tuple.AppendString(tuple.AppendString(nil, "prod"), "orders"), "")
		}, store.ErrForeign, "orders"},
		{"another text", func(t *testing.T, s store.Store) { put(t, s, format, "something else") }, store.ErrForeign, "something else"},
		{"a text that was cut off", func(t *testing.T, s store.Store) {
			put(t, s, format, "coditect mapreduce layout 2 install")
		}, store.ErrForeign, "layout 2"},
		{"a newer version", func(t *testing.T, s store.Store) {
			put(t, s, format, "coditect mapreduce layout 3 whatever it is that stands here\n")
		}, store.ErrNewer, "number 3"},
		{"an older version", func(t *testing.T, s store.Store) {
			put(t, s, format, "coditect mapreduce layout 1 installation \"a name\"\n")
		}, store.ErrOlder, "read its jobs with the version that wrote them"},
		{"the same installation", func(t *testing.T, s store.Store) {
			if err := installation(s, "prod").Install(t.Context(), "a name"); err != nil {
				t.Fatal(err)
			}
		}, nil, ""},
		{"another installation", func(t *testing.T, s store.Store) {
			if err := installation(s, "prod").Install(t.Context(), "another"); err != nil {
				t.Fatal(err)
			}
		}, store.ErrForeign, `"another"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := jobstest.Open(t)
			c.before(t, s)
			j, before := installation(s, "prod"), contents(t, s)
			inspected := j.Inspect(t.Context(), "a name")
			if diff := cmp.Diff(before, contents(t, s)); diff != "" {
				t.Errorf("looking has changed the store (-before +after):\n%s", diff)
			}
			installed := j.Install(t.Context(), "a name")
			for _, err := range []error{inspected, installed} {
				if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %v, want %v with %q", err, c.want, c.says)
				}
			}
			if c.want == nil {
				before = append(before, store.KeyValue{Key: format})
			}
			if diff := cmp.Diff(keysOf(before), keysOf(contents(t, s))); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			if again := j.Install(t.Context(), "a name"); !errors.Is(again, c.want) {
				t.Errorf("the second time: %v", again)
			}
		})
	}
}

// keysOf returns the set of keys.
func keysOf(pairs []store.KeyValue) map[string]bool {
	set := make(map[string]bool)
	for _, kv := range pairs {
		set[string(kv.Key)] = true
	}
	return set
}

// Of installations that begin at once on an empty prefix, one has it.
func TestInstallationsAtOnce(t *testing.T) {
	testenv.Raced(t)

	s := jobstest.Open(t)
	names := []string{"a", "b", "c", "d"}
	got := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { got[i] = installation(s).Install(t.Context(), name) })
	}
	all.Wait()
	won := 0
	for i, err := range got {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, store.ErrForeign):
			t.Errorf("%s: %v", names[i], err)
		}
	}
	if won != 1 {
		t.Errorf("%d installations have the prefix: %v", won, got)
	}
}
