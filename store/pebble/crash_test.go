package pebble_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
)

// A crash is what a power loss at one moment leaves on the disk, and what had
// been acknowledged by then.
type crash struct {
	disk         *vfs.MemFS
	acknowledged map[string]store.Versionstamp
}

// A lab lets the power fail at moments of its choice while transactions are
// committed, each moment just before something is synced or a file is made,
// renamed or removed.
type lab struct {
	disk *vfs.MemFS

	mu           sync.Mutex
	random       *rand.Rand                    // guarded by mu
	acknowledged map[string]store.Versionstamp // guarded by mu
	crashes      []crash                       // guarded by mu
}

func newLab(seed uint64) *lab {
	return &lab{
		disk:         vfs.NewCrashableMem(),
		random:       rand.New(rand.NewPCG(seed, 0)),
		acknowledged: make(map[string]store.Versionstamp),
	}
}

// fs is the disk that the store is opened on.
func (l *lab) fs() vfs.FS {
	return hookFS{
		FS:           l.disk,
		beforeSync:   func(string) error { l.maybeCrash(10); return nil },
		beforeChange: func() { l.maybeCrash(20) },
	}
}

// maybeCrash crashes at the first so many moments, and at some of the later.
func (l *lab) maybeCrash(first int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.random.IntN(20) == 0 || len(l.crashes) < first {
		l.crash()
	}
}

// crash copies first what is acknowledged and then the disk, so that the disk is
// the newer. Of what was not synced, a random part is lost.
func (l *lab) crash() {
	acknowledged := maps.Clone(l.acknowledged)
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * l.random.IntN(3), RNG: l.random}
	l.crashes = append(l.crashes, crash{disk: l.disk.CrashClone(cfg), acknowledged: acknowledged})
}

func (l *lab) acknowledge(name string, stamp store.Versionstamp) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged[name] = stamp
}

// run opens the store several times and each time commits transactions from
// several goroutines.
func (l *lab) run(t *testing.T) {
	fs := l.fs()
	for session := range 3 {
		s, err := pebble.Open("data", pebble.Config{FS: fs, MemTableSize: 32 << 10})
		if err != nil {
			t.Fatal(err)
		}
		var lanes sync.WaitGroup
		for lane := range 4 {
			lanes.Go(func() {
				for i := range 8 {
					if err := l.commit(t, s, fmt.Sprintf("%d.%d.%d", session, lane, i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		lanes.Wait()
		mustClose(t, s)
	}
}

// commit writes its name in three places, and replaces and clears what others
// wrote.
func (l *lab) commit(t *testing.T, s store.Store, name string) error {
	tx, err := s.Begin(t.Context())
	if err != nil {
		return err
	}
	filler := bytes.Repeat([]byte("f"), 1500)
	tx.Set([]byte("a/"+name), filler)
	tx.SetVersionstampedKey([]byte("log/0123456789/"+name), len("log/"), filler)
	tx.ClearRange(store.Prefixed([]byte("last/")))
	tx.Set([]byte("last/"+name), nil)
	tx.Add([]byte("count"), 1)
	if err := tx.Commit(t.Context()); err != nil {
		return err
	}
	stamp, err := tx.Versionstamp()
	l.acknowledge(name, stamp)
	return err
}

// check opens what a crash left.
func (c crash) check(t *testing.T) {
	s := open(t, pebble.Config{FS: c.disk})
	logged, last := make(map[string]store.Versionstamp), ""
	var newest store.Versionstamp
	all := contents(t, s)
	for key := range all {
		if rest, ok := bytes.CutPrefix([]byte(key), []byte("log/")); ok {
			stamp, name := store.Versionstamp(rest[:10]), string(rest[11:])
			logged[name] = stamp
			if bytes.Compare(stamp[:], newest[:]) > 0 {
				newest, last = stamp, name
			}
		}
	}
	for name, stamp := range c.acknowledged {
		if logged[name] != stamp {
			t.Errorf("%s was acknowledged as %x and is stored as %x", name, stamp, logged[name])
		}
	}
	if d := cmp.Diff(expected(all, logged, last), all); d != "" {
		t.Errorf("transactions are not whole (-want +got):\n%s", d)
	}
	if stamp := write(t, s, func(tx store.Tx) { tx.Set([]byte("after"), nil) }); bytes.Compare(stamp[:], newest[:]) <= 0 {
		t.Errorf("stamp %x after the crash, %x before it", stamp, newest)
	}
}

// expected is what a store holds when just the logged transactions were
// committed. The log itself is taken from all.
func expected(all map[string]string, logged map[string]store.Versionstamp, last string) map[string]string {
	want := make(map[string]string)
	for name, stamp := range logged {
		key := "log/" + string(stamp[:]) + "/" + name
		want[key] = all[key]
		want["a/"+name] = all[key]
	}
	if len(logged) > 0 {
		want["last/"+last] = ""
		want["count"] = string([]byte{byte(len(logged)), 0, 0, 0, 0, 0, 0, 0})
	}
	return want
}

func TestPowerLoss(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	crashes, acknowledged := 0, 0
	for seed := range uint64(20) {
		l := newLab(seed)
		l.run(t)
		for i, c := range l.crashes {
			t.Run(fmt.Sprintf("seed %d crash %d", seed, i), c.check)
			crashes++
			acknowledged += len(c.acknowledged)
		}
	}
	if crashes < 200 || acknowledged < 1000 {
		t.Errorf("only %d crashes with %d acknowledged commits: the lab is not at work", crashes, acknowledged)
	}
}

// The power fails again and again, each time the store goes on from what is
// left, and all that was ever acknowledged stays.
func TestPowerLossAgainAndAgain(t *testing.T) {
	disk := vfs.NewCrashableMem()
	random := rand.New(rand.NewPCG(1, 1))
	want := make(map[string]string)
	var newest store.Versionstamp
	for round := range 30 {
		s, err := pebble.Open("data", pebble.Config{FS: disk, MemTableSize: 32 << 10})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, contents(t, s)); d != "" {
			t.Fatalf("round %d (-want +got):\n%s", round, d)
		}
		for i := range random.IntN(20) {
			key := fmt.Sprintf("%d/%d", round, i)
			stamp := write(t, s, func(tx store.Tx) { tx.Set([]byte(key), nil) })
			if bytes.Compare(stamp[:], newest[:]) <= 0 {
				t.Fatalf("stamp %x after %x", stamp, newest)
			}
			newest, want[key] = stamp, ""
		}
		after := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * random.IntN(3), RNG: random})
		mustClose(t, s)
		disk = after
	}
	if len(want) < 100 {
		t.Errorf("only %d commits", len(want))
	}
}
