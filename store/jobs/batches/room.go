package batches

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// An Account is whose batches share the limits of a vendor. One without a name has no limits.
type Account struct {
	Name string
	Most protocol.BatchRoom // that its vendor gives a model
}

// A Use is what the batches of an account take of its limits: those that their vendor may have.
type Use struct {
	lines, batches, creates int64
	tokens                  map[string]int64 // by model
}

// Lack says which limit of an account a batch would pass, so that it waits; "" if none. A batch larger than all the
// room there is goes when there is no other: its vendor says what it thinks of that.
func (u *Use) Lack(b protocol.Batch, most protocol.BatchRoom) string {
	switch {
	case most.Lines > 0 && u.lines > 0 && u.lines+b.Lines > most.Lines:
		return fmt.Sprintf("there is room for %d calls in batches at a time", most.Lines)
	case most.Tokens > 0 && u.tokens[b.Model] > 0 && u.tokens[b.Model]+b.Tokens > most.Tokens:
		return fmt.Sprintf("there is room for %d tokens of %s in batches at a time", most.Tokens, b.Model)
	case most.Batches > 0 && u.batches >= most.Batches:
		return fmt.Sprintf("there is room for %d batches at a time", most.Batches)
	case most.Creates > 0 && u.creates >= most.Creates:
		return fmt.Sprintf("%d batches may be made within an hour", most.Creates)
	}
	return ""
}

// Add counts a batch that is about to be made.
func (u *Use) Add(b protocol.Batch) {
	u.lines, u.batches, u.creates = u.lines+b.Lines, u.batches+1, u.creates+1
	u.tokens[b.Model] += b.Tokens
}

// UseOf returns what the batches of an account take of its limits now.
func (st *Store) UseOf(ctx context.Context, account string) (u *Use, err error) {
	now := st.NowMicros()
	err = st.db.View(ctx, func(tx store.Tx) error {
		var made storagev1.BatchCreations
		if _, err := records.Read(ctx, tx.Snapshot(), st.Keys.AllBatches().Rate(account), &made); err != nil {
			return err
		}
		u, err = (rooms{st}).useOf(ctx, tx.Snapshot(), account, &made, now)
		return err
	})
	return u, err
}

// Rooms are what accounts at vendors have left for batches.
type rooms struct{ *Store }

func (st rooms) useOf(ctx context.Context, r store.Reader, account string, made *storagev1.BatchCreations, now int64) (*Use, error) {
	pairs, _, err := r.GetRange(ctx, st.Keys.AllBatches().RoomsOf(account), store.RangeOptions{})
	if err != nil {
		return nil, err
	}

	u := &Use{tokens: make(map[string]int64), batches: int64(len(pairs))}
	for _, kv := range pairs {
		var room storagev1.BatchRoom
		if err := records.Decode(kv.Key, kv.Value, &room); err != nil {
			return nil, err
		}
		u.lines += room.Lines
		u.tokens[room.Model] += room.Tokens
	}
	for _, n := range forgetOld(made, now).Count {
		u.creates += n
	}
	return u, nil
}

// forgetOld returns the creations of the last hour, and of the minute before: in which second of a minute each was, is
// not kept.
func forgetOld(made *storagev1.BatchCreations, now int64) *storagev1.BatchCreations {
	kept := new(storagev1.BatchCreations)
	for i, minute := range made.Minute {
		if minuteOf(now)-minute <= 60 {
			kept.Minute, kept.Count = append(kept.Minute, minute), append(kept.Count, made.Count[i])
		}
	}
	return kept
}

func minuteOf(micros int64) int64 { return micros / time.Minute.Microseconds() }

// takeRoom enters a batch that is about to be made among those of its account. It returns errs.Exhausted if
// there is no room. All of an account that are begun read and write one key, so no two of them take the
// same room; those that end need not.
func (st rooms) takeRoom(ctx context.Context, tx store.Tx, id mapreduce.JobID, b *storagev1.Batch, a Account, now int64) error {
	if a.Name == "" {
		return nil
	}
	made := new(storagev1.BatchCreations)
	if _, err := records.Read(ctx, tx, st.Keys.AllBatches().Rate(a.Name), made); err != nil {
		return err
	}
	use, err := st.useOf(ctx, tx.Snapshot(), a.Name, made, now)
	if err != nil {
		return err
	}
	if lack := use.Lack(describe(id, b), a.Most); lack != "" {
		return &errs.Error{Kind: errs.Exhausted, Reason: errs.NoBatchRoom, Message: lack}
	}

	made = forgetOld(made, now)
	if last := len(made.Minute) - 1; last >= 0 && made.Minute[last] >= minuteOf(now) {
		made.Count[last]++
	} else {
		made.Minute, made.Count = append(made.Minute, minuteOf(now)), append(made.Count, 1)
	}
	tx.Set(st.Keys.AllBatches().Rate(a.Name), records.Encode(made))

	b.Account = a.Name
	tx.Set(st.Keys.Batches(id).Room(a.Name, b.Number), records.Encode(&storagev1.BatchRoom{Model: b.Model, Lines: b.Lines, Tokens: b.Tokens}))
	return nil
}

// leaveRoom gives back what a batch has taken: its vendor does not have it, or has it no more.
func (st rooms) leaveRoom(tx store.Tx, id mapreduce.JobID, b *storagev1.Batch) {
	if b.Account != "" {
		tx.Clear(st.Keys.Batches(id).Room(b.Account, b.Number))
		b.Account = ""
	}
}

// FreeRooms gives back what of the limits of accounts no batch takes that its vendor may have, and returns of how many
// batches that was. A server of a version that knows no rooms ends batches, and leaves theirs.
func (st *Store) FreeRooms(ctx context.Context) (freed int, err error) {
	var unused [][]byte
	err = st.db.View(ctx, func(tx store.Tx) (err error) {
		unused, err = st.unusedRooms(ctx, tx.Snapshot())
		return err
	})
	if err != nil || len(unused) == 0 {
		return 0, err
	}

	err = st.db.Update(ctx, failpoint.Tell, func(tx store.Tx) error {
		freed = 0
		for _, key := range unused {
			taken, err := st.isTaken(ctx, tx, key)
			if err != nil {
				return err
			}
			if !taken {
				tx.Clear(key)
				freed++
			}
		}
		return nil
	})
	return freed, err
}

// maxUnused is how many rooms one look gives back at most.
const maxUnused = 1000

// unusedRooms returns the keys of rooms that no batch takes.
func (st *Store) unusedRooms(ctx context.Context, r store.Reader) (unused [][]byte, err error) {
	pairs, _, err := r.GetRange(ctx, st.Keys.AllBatches().Rooms(), store.RangeOptions{})
	if err != nil {
		return nil, err
	}

	for _, kv := range pairs {
		taken, err := st.isTaken(ctx, r, kv.Key)
		if err != nil {
			return nil, err
		}
		if !taken && len(unused) < maxUnused {
			unused = append(unused, kv.Key)
		}
	}
	return unused, nil
}

// isTaken reports whether the batch that a room is of takes it: its vendor may have it, be its job there or gone.
func (st *Store) isTaken(ctx context.Context, r store.Reader, room []byte) (bool, error) {
	account, id, number, err := st.Keys.AllBatches().RoomAt(room)
	if err != nil {
		return true, nil //nolint:nilerr // doctor says so, and nothing else waits for it
	}

	b, orphan := new(storagev1.Batch), new(storagev1.Orphan)
	found, err := records.Read(ctx, r, st.Keys.Batches(id).Batch(number), b)
	if err == nil && !found {
		if found, err = records.Read(ctx, r, st.Keys.Batches(id).Orphan(number), orphan); found {
			b = orphan.Batch
		}
	}
	return found && b.GetAccount() == account && protocol.BatchState(b.GetState()) != protocol.BatchPlanned, err
}
