package rig

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
)

// batch is how many units a bare transaction finishes and claims: what 64 busy
// slots make of it in the service.
const batch = 64

// A bareStore store is written as the service writes it, transaction for transaction
// and key for key, with values of the same sizes, and by nothing else: no
// protobuf, no gRPC, no scheduling, no worker. It is the ceiling of what can be
// built on the store.
type bareStore struct {
	*store.DB
	space *keys.Space
	job   mapreduce.JobID

	pending, claimed, done, held, checkpoint []byte // values
}

func newBareStore(s store.Store, space *keys.Space, output int) *bareStore {
	source := &storagev1.Source{
		Sha256: randomBytes(0, 32), Length: TextBytes, End: TextBytes, CoreEnd: TextBytes, CharEnd: TextBytes, Chunks: 1,
	}
	u := &storagev1.Unit{
		UnitId: UnitName(0), DocumentId: UnitName(0), Kind: uint32(mapreduce.KindMap), Index: keys.MapIndex(500_000, 0),
		Status: uint32(mapreduce.Pending), Source: source, Queue: &storagev1.Queue{Class: keys.ClassNew, Seq: 1 << 40},
	}

	// The values are those of one unit as it goes from waiting to done.
	b := &bareStore{DB: store.NewDB(s, store.Config{}), space: space, job: "mr_20250101_aaaaaa"}
	b.pending = mustEncode(u)
	u.Attempt, u.Session, u.Claim, u.Node = 1, "w_ABCDEFGHIJKLMNOPQRSTUVWXYZ", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "node-12345-1"
	b.claimed = mustEncode(u)
	u.Session, u.Claim = "", ""
	u.Result = &storagev1.Result{Attempt: 1, Inline: randomBytes(0, output), Length: int64(output), Sha256: make([]byte, 32), Size: 512}
	b.done = mustEncode(u)

	held, ended := &storagev1.Held{}, &storagev1.Checkpoint{Node: "node-12345-1", TimestampMicros: 1 << 50}
	for range batch {
		held.Units = append(held.Units, &storagev1.HeldUnit{Job: string(b.job), Unit: u.UnitId, Attempt: 1})
		ended.CompletedUnits = append(ended.CompletedUnits, &storagev1.Outcome{Unit: u.UnitId, Attempt: 1, Sha256: make([]byte, 32)})
	}

	b.held, b.checkpoint = mustEncode(held), mustEncode(ended)
	return b
}

func mustEncode(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic("rig: " + err.Error()) // of messages made here
	}
	return b
}

// UnitName is the document, and the unit, of the n-th document of a job.
func UnitName(n int) string { return fmt.Sprintf("document-%07d.txt", n) }

func (b *bareStore) unitKey(n int) []byte {
	return b.space.Job(b.job).Unit(mapreduce.UnitID(UnitName(n)))
}

func (b *bareStore) readyKey(n int) []byte {
	return b.space.Queues(b.job).Ready(0, keys.ClassNew, keys.Seq(0, keys.MapIndex(int64(n), 0)))
}

// blobKey is the key of a unit's text, as scattered as its hash.
func (b *bareStore) blobKey(n int) []byte {
	return b.space.Job(b.job).BlobChunk(randomBytes(-int64(n), 32), 0)
}

// stageUnits writes n units as a submission does, and returns how long it took.
func (b *bareStore) stageUnits(ctx context.Context, n int) (time.Duration, error) {
	const step = 500
	start := time.Now()
	for from := 0; from < n; from += step {
		to := min(from+step, n)
		err := b.Update(ctx, func(tx store.Tx) error {
			// The transaction reads what that of a submission reads.
			if _, err := tx.Get(ctx, b.space.Job(b.job).Ingest()); err != nil {
				return err
			}

			ks := make([][]byte, 0, step)
			for i := from; i < to; i++ {
				ks = append(ks, b.unitKey(i))
			}

			span := store.Range{Begin: ks[0], End: b.unitKey(to)}
			if _, _, err := tx.GetRange(ctx, span, store.RangeOptions{Limit: 1}); err != nil {
				return err
			}

			for i := from; i < to; i++ {
				tx.Set(ks[i-from], b.pending)
				tx.Set(b.readyKey(i), []byte(UnitName(i)))
				tx.Set(b.space.Job(b.job).Order(0, keys.MapIndex(int64(i), 0)), []byte(UnitName(i)))
				tx.Set(b.blobKey(i), randomBytes(int64(i), TextBytes))
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}

	return time.Since(start), nil
}

// runTransactions claims and finishes the n units that were staged, by so many goroutines,
// and returns how long it took.
func (b *bareStore) runTransactions(ctx context.Context, n, width int) (time.Duration, error) {
	var next atomic.Int64
	var lanes sync.WaitGroup
	errs := make(chan error, width)
	start := time.Now()
	for lane := range cap(errs) {
		lanes.Go(func() { errs <- b.runLane(ctx, lane, n, &next) })
	}
	lanes.Wait()

	for range cap(errs) {
		if err := <-errs; err != nil {
			return 0, err
		}
	}

	return time.Since(start), nil
}

// runLane makes turns: each finishes what the one before it claimed.
func (b *bareStore) runLane(ctx context.Context, lane, n int, next *atomic.Int64) error {
	var before, now []int
	for turn := 0; ; turn++ {
		first := int(next.Add(batch)) - batch
		before, now = now, before[:0]

		for i := first; i < min(first+batch, n); i++ {
			now = append(now, i)
		}

		if len(before)+len(now) == 0 {
			return nil
		}

		if err := b.finishAndClaim(ctx, lane, turn, before, now); err != nil {
			return err
		}
		if err := b.readTexts(ctx, now); err != nil {
			return err
		}
	}
}

func (b *bareStore) finishAndClaim(ctx context.Context, lane, turn int, finish, claim []int) error {
	session := mapreduce.SessionID(fmt.Sprintf("w_%d", lane))
	held := func(turn int) []byte {
		return b.space.Nodes().Held(session, fmt.Sprintf("ABCDEFGHIJKLMNOPQRST%06d", turn))
	}

	return b.Update(ctx, func(tx store.Tx) error {
		queue := store.Range{Begin: b.readyKey(0), End: b.readyKey(1 << 30)}
		if len(claim) > 0 {
			queue.Begin = b.readyKey(claim[0])
		}
		if _, _, err := tx.Snapshot().GetRange(ctx, queue, store.RangeOptions{Limit: batch}); err != nil {
			return err
		}

		ks := [][]byte{b.space.Job(b.job).Ctl(), b.space.Nodes().Session(session), held(turn)}
		if _, err := tx.GetAll(ctx, ks); err != nil {
			return err
		}

		finished, claimed := make([][]byte, len(finish)), make([][]byte, len(claim))
		for k, i := range finish {
			finished[k] = b.unitKey(i)
		}
		for k, i := range claim {
			claimed[k] = b.unitKey(i)
		}

		for _, ks := range [][][]byte{finished, claimed} {
			near, err := store.GetNear(ctx, tx.Snapshot(), ks)
			if err != nil {
				return err
			}
			near.AddConflicts(tx, func(int) bool { return true })
		}

		for _, k := range finished {
			tx.Set(k, b.done)
		}
		for k, i := range claim {
			tx.Clear(b.readyKey(i))
			tx.Set(claimed[k], b.claimed)
		}

		if len(claim) > 0 {
			tx.Set(held(turn), b.held)
		}
		if len(finish) > 0 {
			tx.Clear(held(turn - 1))
			key, offset := b.space.Job(b.job).NextCheckpoint()
			tx.SetVersionstampedKey(key, offset, b.checkpoint)
		}

		// A turn of the service adds to as many counters.
		for c := range keys.Counter(6) {
			tx.Add(b.space.Job(b.job).Counter(c+1, 0, "node"), 1)
		}
		return nil
	})
}

func (b *bareStore) readTexts(ctx context.Context, units []int) error {
	ks := make([][]byte, len(units))
	for k, i := range units {
		ks[k] = b.blobKey(i)
	}
	return b.View(ctx, func(tx store.Tx) error {
		_, err := tx.Snapshot().GetAll(ctx, ks)
		return err
	})
}

// BareUnits returns how many units a second the bare store stages and turns
// over.
func (site *Site) BareUnits(ctx context.Context, n, output int) (staged, turned float64, err error) {
	err = site.InPlace(func(p Place) error {
		s, err := p.OpenStore()
		if err != nil {
			return err
		}
		defer s.Close()

		b := newBareStore(s, p.keySpace(), output)
		d, err := b.stageUnits(ctx, n)
		if err != nil {
			return err
		}
		staged = PerSecond(n, d)

		if d, err = b.runTransactions(ctx, n, site.Lanes); err != nil {
			return err
		}
		turned = PerSecond(n, d)

		return nil
	})
	return staged, turned, err
}
