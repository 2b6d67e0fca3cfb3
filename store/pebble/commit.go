package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/coditect/mapreduce/store"
)

// Bounds of a group. The requests that arrive while earlier groups are written form
// the next group; these constants only keep a group from growing too large.
const (
	maxGroupSize    = 4 << 20 // bytes
	maxGroupMembers = 1 << 12 // below the 1<<16 that a versionstamp can tell apart
)

// maxInFlight bounds the groups that wait for a sync of the log. One sync serves
// all groups that were written before it began.
const maxInFlight = 16

// versionKey holds the version of the last group, eight bytes, big-endian. It is
// written with each group. Transactions cannot use this key.
var versionKey = []byte("\xffversion")

// A group is a set of transactions that are written together.
type group struct {
	batch   *pebbledb.Batch // nil if every request was refused
	view    *view           // the store with batch applied
	members []*request
	refused []*request
	long    [][]byte // keys that it adds to and that are long sums
}

// A committer decides which requests are committed, and applies them in groups.
type committer struct {
	store   *Store
	version uint64 // of the last group
	history *history
	space   spaceGuard
	groups  chan<- *group
}

// serveQueue serves the queue until it is closed.
func (c *committer) serveQueue() {
	defer close(c.groups)

	var spare []*request
	for {
		taken := c.store.queue.takeAll(spare)
		if len(taken) == 0 {
			return
		}

		for rest := taken; len(rest) > 0; {
			n := groupLength(rest)
			c.groups <- c.commitGroup(rest[:n])
			rest = rest[n:]
		}

		// The slice is used again, and must keep no request alive.
		clear(taken)
		spare = taken[:0]
	}
}

// groupLength returns how many of requests make the next group.
func groupLength(requests []*request) int {
	size := 0
	for i, r := range requests {
		size += r.batch.Len()
		if i > 0 && size > maxGroupSize || i == maxGroupMembers {
			return i
		}
	}
	return len(requests)
}

// commitGroup applies the requests that have no conflict. The refused requests are
// answered only when the group is published: a transaction that ran again before
// the conflicting commit is visible would conflict again.
func (c *committer) commitGroup(requests []*request) *group {
	g := &group{}
	now := c.store.config.Now()
	noSpace := c.space.checkSpace(now)

	for _, r := range requests {
		if r.err = noSpace; r.err == nil {
			r.err = c.checkConflicts(r)
		}
		if r.err != nil {
			g.refused = append(g.refused, r)
			continue
		}
		c.addMember(g, r, now)
	}

	if g.batch != nil {
		c.writeGroup(g)
	}

	c.store.stats.history.Store(int64(c.history.memorySize()))
	return g
}

// checkConflicts returns the reason why r cannot be committed, or nil.
func (c *committer) checkConflicts(r *request) error {
	switch {
	case !r.reads:
		return nil
	case r.readVersion < c.history.oldestVersion():
		return store.ErrTooOld
	case c.history.hasConflict(r.readVersion, &r.read):
		return store.ErrConflict
	}
	return nil
}

// addMember adds r to g. The batch of the first member becomes the batch of the
// group.
func (c *committer) addMember(g *group, r *request, now time.Time) {
	version := c.version + 1
	r.fillStamps(newVersionstamp(version, len(g.members)), c.store)
	c.history.add(version, now, &r.wrote)
	g.members = append(g.members, r)
	g.long = append(g.long, c.store.long.remove(&r.wrote.keys)...)

	if g.batch == nil {
		g.batch, r.batch = r.batch, nil
		return
	}

	if err := g.batch.Apply(r.batch, nil); err != nil {
		c.reportFatal("join a group", err)
	}
	r.discardBatch()
}

func (c *committer) writeGroup(g *group) {
	c.version++
	value := binary.BigEndian.AppendUint64(nil, c.version)
	if err := g.batch.Set(versionKey, value, nil); err != nil {
		c.reportFatal("add the version", err)
	}

	c.space.addWritten(g.batch.Len())
	if err := c.store.db.ApplyNoSyncWait(g.batch, pebbledb.Sync); err != nil {
		c.reportFatal("write a group", err)
	}

	for _, key := range g.long {
		c.shorten(key)
	}

	g.view = &view{version: c.version, snapshot: c.store.db.NewSnapshot()}
}

// shorten stores a sum of many deltas as one value. Nobody else writes, so it stays the
// value that it is: this is no change, has no version, and nothing is lost without it.
func (c *committer) shorten(key []byte) {
	value, closer, err := c.store.db.Get(key)
	if err != nil {
		return // it was cleared; or damaged, which its readers report
	}
	err = errors.Join(c.store.db.Set(key, value, pebbledb.NoSync), closer.Close())
	if err != nil {
		c.reportFatal("shorten a sum", err)
	}
}

func (c *committer) reportFatal(what string, err error) {
	c.store.config.Fatal(fmt.Sprintf("%s: %s: %v", c.store.folder, what, err))
}

func newVersionstamp(version uint64, order int) (stamp store.Versionstamp) {
	binary.BigEndian.PutUint64(stamp[:], version)
	binary.BigEndian.PutUint16(stamp[8:], uint16(order))
	return stamp
}

// publishGroups publishes groups in order, each after it is synced, and then
// answers its requests.
func (s *Store) publishGroups(groups <-chan *group) {
	for g := range groups {
		if g.batch != nil {
			s.publishGroup(g)
		}
		for _, r := range g.refused {
			r.discardBatch()
			r.finishWith(r.err)
		}
		s.stats.refused.Add(int64(len(g.refused)))
	}
}

func (s *Store) publishGroup(g *group) {
	err := g.batch.SyncWait()
	if e := g.batch.Close(); err == nil {
		err = e
	}

	if err != nil {
		s.config.Fatal(fmt.Sprintf("%s: sync the log: %v", s.folder, err))
	}

	// Only what is synced may be seen and acknowledged.
	s.markSynced(g.view.version)
	s.views.publishView(g.view)
	s.stats.groups.Add(1)
	s.stats.commits.Add(int64(len(g.members)))

	for _, r := range g.members {
		s.watches.notifyWatches(&r.wrote)
		r.finishWith(nil)
	}
}

// markSynced records that a group is synced.
func (s *Store) markSynced(version uint64) {
	if err := s.mark.SetVersion(version); err != nil {
		s.warnUnmarked(err)
	}
}

// warnUnmarked says that what is synced could not be marked. Only the warning would be
// missing that Open gives if it is lost.
func (s *Store) warnUnmarked(err error) {
	if n, due := s.unmarked.next(s.config.Now()); due {
		s.config.Logger.Warn("what is synced cannot be marked: a loss of the newest commits would not be noticed", "folder", s.folder, "error", err, "times", n)
	}
}
