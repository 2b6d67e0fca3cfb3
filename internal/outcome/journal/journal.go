// Package journal remembers what the attempts at a unit have done, so that a later
// attempt, on whichever worker, does not do it again.
//
// A journal is a list of entries. Each has a key, which names what was done, and what
// came of it. An agent says Do(key, fn): if the journal has an entry with that key, its
// result is returned; else fn is run, and what it returns becomes the next entry. So
// an attempt that follows one that died asks for the same things in the same order, is
// given all that was finished, and goes on where the other stopped.
//
// The invariants, and who keeps them:
//
//  1. Entries are numbered from 0, without gaps. An append carries the number of its
//     first entry. The store appends it only behind the entry before, under the attempt
//     that stands, and for the session that holds that attempt (store/jobs).
//  2. An entry that was acknowledged is never lost, and none is ever changed. An append
//     whose outcome is not known is sent again with the same number: the store finds
//     that the entry is there, and refuses another one in its place.
//  3. A new attempt sees all entries that were acknowledged to earlier ones, and
//     perhaps one append more, which became durable unknown to its sender. None is
//     added under an earlier attempt once a new one has begun: the claim raises the
//     attempt in the record that every append reads.
//  4. What is done by DoOnce is begun only when the store has an entry that says so,
//     and all entries before it. DoOnce returns when the result is stored. So it is
//     begun at most once: an attempt that finds it begun and not finished gets
//     ErrInterrupted, and neither repeats it nor guesses.
//  5. What is done by Do may be lost with its process until the entry was sent: when
//     tokens worth an append were spent since the last, or might be after the next call,
//     before anything that is done once, and before the report of an attempt without a
//     result. All that waits then goes in one append, so a unit that makes one call and
//     ends appends nothing.
//  6. Keys decide, not positions. A key has to hold everything that decides the result,
//     as the hash of a request does: an attempt that takes another way, because a call
//     failed or the program has changed, finds what it asks for again wherever it
//     stands. What it does not ask for is left alone. Do says so in the log, once an
//     attempt, when the journal has no entry for a key although others were not asked
//     for yet.
//  7. A journal is bounded in entries and bytes (protocol.MaxJournalEntries,
//     MaxJournalBytes, MaxJournalEntry). What does not fit is not remembered, which
//     costs its repetition; DoOnce refuses to begin.
//  8. A journal goes with its unit: it is cleared when the unit is complete, cancelled,
//     dropped, or made to read other inputs, and when its job is deleted. It stays when
//     the unit has failed, as a resume tries that again, and, in jobs that capture all,
//     when it is complete, for jobs that repeat them.
//
// This package has the entries, their encoding, and what an attempt sees of them. It
// does no I/O, reads no clock and starts no goroutine: whoever opens a journal sends
// what it hands out. It imports only the vocabulary and the stored messages.
package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coditect/mapreduce/api/protocol"
)

// Errors of what is to be done once.
var (
	// ErrInterrupted is returned for what an earlier attempt began, or a part of this
	// one, and whose outcome nobody knows.
	ErrInterrupted = errors.New("it was begun before, and what came of it is not known")
	// ErrFull is returned for what cannot be begun, as the journal has no room to say so.
	ErrFull = errors.New("the journal of the unit is full")
)

// An Owner is told of a journal, without a lock held and by many goroutines at once.
type Owner interface {
	// Offer is called when entries were added that are not stored: now says that
	// somebody waits until they are.
	Offer(now bool)

	// Strayed is called when something is done that the journal does not hold, before
	// all was asked for that it holds: left entries were not, of which the first is
	// next. It is called once.
	Strayed(key string, next Entry, left int)

	// Forgot is called when something that was done cannot be remembered. It is called
	// once.
	Forgot(key string, why error)
}

// A Journal is the journal of a unit, as one attempt sees it. It is safe for
// concurrent use. The zero value is empty, and is stored nowhere.
type Journal struct {
	owner   Owner // nil takes entries for stored at once
	attempt int   // that entries are made by

	mu      sync.Mutex               // guards the fields below
	known   map[string]Entry         // the latest of each key
	doing   map[string]chan struct{} // closed when what is under way has ended
	earlier []Entry                  // of earlier attempts, in order
	asked   map[string]bool          // keys of these that were asked for
	strayed bool
	forgot  bool
	bytes   int           // of all entries, encoded
	count   int           // entries that this attempt may see
	next    int           // number of the first entry of waiting
	waiting [][]byte      // encoded; in order, and not acknowledged
	broken  error         // why nothing is stored any more
	changed chan struct{} // closed at the next change; nil while nobody waits for one
}

// Open returns the journal of a unit of which own entries are stored, the last of
// those in data, as it is seen by an attempt, counted from 1. Data may begin with others,
// of the unit that this one repeats.
func Open(data []byte, own, attempt int, owner Owner) (*Journal, error) {
	encoded, err := Split(data)
	if err != nil {
		return nil, err
	}

	if own < 0 || own > len(encoded) {
		return nil, fmt.Errorf("journal: %d entries came, where the unit has %d", len(encoded), own)
	}

	// Entries of another unit that is repeated count as seen, and are no entries of this
	// one in the store.
	j := &Journal{owner: owner, attempt: attempt, next: own, count: len(encoded)}
	for _, raw := range encoded {
		e, err := Decode(raw)
		if err != nil {
			return nil, err
		}
		j.enterEntry(e)
		j.bytes += len(raw)
		j.earlier = append(j.earlier, e)
	}

	return j, nil
}

// enterEntry makes an entry known. What has begun is known to have ended by the
// entry that follows.
func (j *Journal) enterEntry(e Entry) {
	if j.known == nil {
		j.known = make(map[string]Entry)
	}
	j.known[e.Key] = e
}

// Recall returns what came of something, if that is known.
func (j *Journal) Recall(key string) ([]byte, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.recallEntry(key)
	return bytes.Clone(e.Result), ok && !e.Begun
}

// recallEntry looks an entry up. The caller holds the lock.
func (j *Journal) recallEntry(key string) (Entry, bool) {
	e, ok := j.known[key]
	if ok && len(j.earlier) > 0 {
		if j.asked == nil {
			j.asked = make(map[string]bool)
		}
		j.asked[key] = true
	}
	return e, ok
}

// Do returns what came of the thing that key names. If no attempt has done it, fn
// does it, and what it returns is remembered; an error is not. What is asked for
// while it is being done waits for that.
func (j *Journal) Do(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	e, found, end, err := j.beginDoing(ctx, key)
	if err != nil {
		return nil, err
	}

	// An entry that has only begun is no result; Do may do it again.
	if found && !e.Begun {
		return bytes.Clone(e.Result), nil
	}

	defer end()
	j.noteStraying(key)

	result, err := fn(ctx)
	if err != nil {
		return nil, err
	}

	if err := j.addEntry(Entry{Key: key, Attempt: j.attempt, Result: result}); err != nil {
		j.noteForgotten(key, err)
		return result, nil
	}
	j.offer(false)

	return result, nil
}

// DoOnce is Do for what must not be done twice. These things might happen:
//  1. it was done: its result is returned;
//  2. it was not begun: fn does it, and the result is stored when DoOnce returns. If
//     the result is too large to be stored, or fn returns an error, what came of it
//     is not known to later attempts;
//  3. it was begun, and what came of it is not known: ErrInterrupted. The caller
//     decides what that means; it stays so;
//  4. the journal has no room for it: ErrFull, and fn was not run;
//  5. the entries before it cannot be stored, as the attempt is over for instance:
//     another error, and fn was not run, or its result was not stored.
func (j *Journal) DoOnce(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	e, found, end, err := j.beginDoing(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case found && e.Begun:
		end()
		return nil, fmt.Errorf("%s: %w", key, ErrInterrupted)
	case found:
		return bytes.Clone(e.Result), nil
	}

	defer end()
	j.noteStraying(key)

	// The store has to know that it has begun before it begins.
	if err := j.addEntry(Entry{Key: key, Attempt: j.attempt, Begun: true}); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if err := j.Sync(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}

	result, err := fn(ctx)
	if err != nil {
		return nil, err
	}

	if err := j.addEntry(Entry{Key: key, Attempt: j.attempt, Result: result}); err != nil {
		j.noteForgotten(key, err)
		return result, nil
	}

	if err := j.Sync(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return result, nil
}

// beginDoing waits until nobody does what key names, and returns the entry of it, if
// there is one. Else, or if it has only begun, end is to be called when it was done.
func (j *Journal) beginDoing(ctx context.Context, key string) (e Entry, found bool, end func(), err error) {
	if key == "" || len(key) > protocol.MaxJournalKey {
		return e, false, nil, fmt.Errorf("journal: a key of %d bytes; it has 1 to %d", len(key), protocol.MaxJournalKey)
	}

	// The loop is left with the lock held, so that nobody begins in between.
	for {
		j.mu.Lock()
		busy := j.doing[key]
		if busy == nil {
			break
		}
		j.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return e, false, nil, context.Cause(ctx)
		}
	}

	defer j.mu.Unlock()
	if e, found = j.recallEntry(key); found && !e.Begun {
		return e, true, nil, nil
	}

	if j.doing == nil {
		j.doing = make(map[string]chan struct{})
	}

	over := make(chan struct{})
	j.doing[key] = over
	return e, found, func() {
		j.mu.Lock()
		delete(j.doing, key)
		j.mu.Unlock()

		close(over)
	}, nil
}

// noteStraying tells, once, of something new that is done before all that earlier
// attempts have done was asked for.
func (j *Journal) noteStraying(key string) {
	j.mu.Lock()
	var next Entry
	left := 0
	for _, e := range j.earlier {
		if !j.strayed && !j.asked[e.Key] {
			if left++; left == 1 {
				next = e
			}
		}
	}

	j.strayed = j.strayed || left > 0
	j.mu.Unlock()

	// The owner is told without the lock, as it may call back.
	if left > 0 && j.owner != nil {
		j.owner.Strayed(key, next, left)
	}
}

func (j *Journal) noteForgotten(key string, why error) {
	j.mu.Lock()
	first := !j.forgot
	j.forgot = true
	j.mu.Unlock()

	if first && j.owner != nil {
		j.owner.Forgot(key, why)
	}
}

// addEntry adds an entry, to be stored.
func (j *Journal) addEntry(e Entry) error {
	raw, err := e.Encode()
	if err != nil {
		return err
	}

	j.mu.Lock()
	defer j.mu.Unlock()

	switch {
	case len(raw) > protocol.MaxJournalEntry:
		return fmt.Errorf("%w for an entry of %d bytes: one has at most %d", ErrFull, len(raw), protocol.MaxJournalEntry)
	case j.count == protocol.MaxJournalEntries:
		return fmt.Errorf("%w: it has %d entries", ErrFull, j.count)
	case j.bytes+len(raw) > protocol.MaxJournalBytes:
		return fmt.Errorf("%w: it has %d bytes, and the entry %d; both together may have %d", ErrFull, j.bytes, len(raw), protocol.MaxJournalBytes)
	}

	j.enterEntry(e)
	j.bytes += len(raw)
	j.count++
	// A journal without an owner is stored nowhere: its entries count as stored.
	if j.owner == nil {
		j.next++
		return nil
	}

	j.waiting = append(j.waiting, raw)
	return nil
}

func (j *Journal) offer(now bool) {
	if j.owner != nil {
		j.owner.Offer(now)
	}
}

// Sync returns when all entries are stored that are there now.
func (j *Journal) Sync(ctx context.Context) error {
	j.mu.Lock()
	upTo := j.next + len(j.waiting)
	j.mu.Unlock()

	j.offer(true)
	// The channel is taken under the lock that next is read under, so no change is missed.
	for {
		j.mu.Lock()
		if j.changed == nil {
			j.changed = make(chan struct{})
		}
		stored, broken, changed := j.next >= upTo, j.broken, j.changed
		j.mu.Unlock()

		switch {
		case stored:
			return nil
		case broken != nil:
			return broken
		}

		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Len returns how many entries of its own the unit has, stored or not.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next + len(j.waiting)
}

// Waiting returns how many entries are still to be stored.
func (j *Journal) Waiting() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return 0
	}
	return len(j.waiting)
}

// Next returns the next entries to be stored before the one numbered upTo, as one
// append, and the number of the first of them; none if these are stored, or none will
// be any more.
func (j *Journal) Next(upTo int) (first int, data []byte, entries int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return j.next, nil, 0
	}

	// An entry is never split, and one alone is taken whatever its size.
	for _, raw := range j.waiting {
		if j.next+entries >= upTo || entries > 0 && len(data)+len(raw)+maxLength > protocol.MaxJournalAppend {
			break
		}
		data = AppendEntry(data, raw)
		entries++
	}

	return j.next, data, entries
}

// Acknowledge notes that the next n entries are stored.
func (j *Journal) Acknowledge(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.next += n
	j.waiting = j.waiting[n:]
	j.tellChange()
}

// Break notes that nothing is stored any more, and why. Do goes on; what waits until
// it is stored fails.
func (j *Journal) Break(why error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = why
	j.tellChange()
}

func (j *Journal) tellChange() {
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}
