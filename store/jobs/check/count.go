package check

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
)

// A weight is how many keys there are, and how long they and their values are.
type weight struct{ keys, bytes int64 }

// Count reads every key of the store, and calls found with a line of Severity Info for each
// kind of key, and one for all of them. It reads in short transactions, so what comes and goes
// meanwhile is counted or not.
func (st *Store) Count(ctx context.Context, found func(mapreduce.Finding) error) error {
	w := walk.New(st.db, found)
	kinds, page := make(map[string]weight), make(map[string]weight)

	visit := func(_ *walk.Look, pairs []store.KeyValue) error {
		// A page that is read again begins anew.
		clear(page)
		for _, kv := range pairs {
			name, _, err := w.Keys.Last(kv.Key)
			if err != nil {
				name = "unknown"
			}
			page[name] = page[name].plus(weight{1, int64(len(kv.Key) + len(kv.Value))})
		}
		return nil
	}
	done := func() error {
		for name, n := range page {
			kinds[name] = kinds[name].plus(n)
		}
		return nil
	}
	if err := w.WalkRange(ctx, "", w.Keys.Everything(), walk.PageOptions(), visit, done); err != nil {
		return err
	}

	var all weight
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		all = all.plus(kinds[name])
		if err := w.Emit(mapreduce.Finding{Message: fmt.Sprintf("kind %q: %v", name, kinds[name])}); err != nil {
			return err
		}
	}
	return w.Emit(mapreduce.Finding{Message: fmt.Sprintf("all kinds: %v", all)})
}

func (w weight) plus(other weight) weight {
	return weight{w.keys + other.keys, w.bytes + other.bytes}
}

// String returns what people and programs read of it: "3 keys of 120 bytes".
func (w weight) String() string {
	return plural.Count(int(w.keys), "key") + " of " + plural.Count(int(w.bytes), "byte")
}
