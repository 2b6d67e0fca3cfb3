package nodes

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/limit"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// NoteLimit adds what this node has seen of a model, "provider/model", to what
// the fleet knows of it, and gives the node its share. Known are the nodes that
// are dead: theirs are taken back. Nothing is written if nothing changes; others are
// woken for a change that they have to know at once. A note that is taken
// twice, for its commit was unknown, comes to the same as once: but for the
// successes, of which a few more do no harm.
func (st *Grants) NoteLimit(ctx context.Context, model string, n limit.Note, known []mapreduce.NodeID) (*limit.Scope, error) {
	n.Node = st.Node
	var scope *limit.Scope
	err := st.db.Update(ctx, failpoint.Fleet, func(tx store.Tx) error {
		key := st.Keys.Nodes().Limit(model)
		stored := new(storagev1.Limit)
		if _, err := records.Read(ctx, tx, key, stored); err != nil {
			return err
		}

		scope = scopeOf(stored)
		st.addManners(scope, stored)
		dead, err := st.deadNodes(ctx, tx, scope.Nodes(), known)
		if err != nil {
			return err
		}

		before := *scope
		before.Manners = maps.Clone(scope.Manners)
		scope.Step(n, func(id mapreduce.NodeID) bool { return dead[id] })

		next := limitOf(scope)
		next.Manners = st.mannersOf(scope, &before, stored)
		next.PauseEndMicros, next.OpenEndMicros = stored.PauseEndMicros, stored.OpenEndMicros

		if scope.Pauses != before.Pauses {
			next.PauseEndMicros = st.PauseEnd(scope.Pause)
		}
		if b := scope.Breaker; b.Turns != before.Breaker.Turns && b.Open && b.Prober == "" {
			next.OpenEndMicros = st.PauseEnd(b.For)
		}

		// Nodes that have not seen a pause begin get what is left of it.
		scope.PauseLeft = st.PauseLeft(scope.Pause, next.PauseEndMicros)
		scope.OpenLeft = st.PauseLeft(scope.Breaker.For, next.OpenEndMicros)

		if proto.Equal(next, stored) {
			return nil
		}
		if before.Pauses != scope.Pauses || before.Breaker != scope.Breaker || !maps.Equal(before.Manners, scope.Manners) {
			st.Jobs.WakeOthers(tx)
		}

		tx.Set(key, records.Encode(next))
		return nil
	})
	return scope, err
}

func scopeOf(l *storagev1.Limit) *limit.Scope {
	s := &limit.Scope{
		Rates: mapreduce.Rates{Requests: l.Requests, Input: l.Input, Output: l.Output},
		Room:  l.Room, Pauses: l.Pauses, Pause: time.Duration(l.PauseMicros) * time.Microsecond,
		Breaker: limit.Breaker{
			Turns: l.Turns, Open: l.Open, For: time.Duration(l.OpenMicros) * time.Microsecond,
			Prober: mapreduce.NodeID(l.Prober),
		},
		Shares: make(map[mapreduce.NodeID]limit.Share, len(l.Shares)),
	}

	for _, o := range l.Shares {
		s.Shares[mapreduce.NodeID(o.Node)] = limit.Share{Want: o.Want, Slots: o.Slots, Parts: o.Parts}
	}

	return s
}

// mannersFor is for how long the fleet keeps what a server refuses: it may be mended, or another
// server may stand at its address. Workers that have learned it keep it for as long as they run.
const mannersFor = 6 * time.Hour

// addManners adds what servers refuse to what the fleet knows of a model, as long as it is good for.
func (st *Grants) addManners(s *limit.Scope, l *storagev1.Limit) {
	for _, m := range l.Manners {
		if st.PauseLeft(mannersFor, m.EndMicros) == 0 {
			continue
		}
		if s.Manners == nil {
			s.Manners = make(map[string]string)
		}
		s.Manners[m.Server] = m.Refuses
	}
}

// mannersOf returns what is stored of what servers refuse. What is new, or has changed, is good for
// its time from now on.
func (st *Grants) mannersOf(s, before *limit.Scope, stored *storagev1.Limit) (all []*storagev1.Limit_Manners) {
	ends := make(map[string]int64)
	for _, m := range stored.Manners {
		if before.Manners[m.Server] == s.Manners[m.Server] {
			ends[m.Server] = m.EndMicros
		}
	}

	for _, server := range slices.Sorted(maps.Keys(s.Manners)) {
		end, known := ends[server]
		if !known {
			end = st.PauseEnd(mannersFor)
		}
		all = append(all, &storagev1.Limit_Manners{Server: server, Refuses: s.Manners[server], EndMicros: end})
	}

	return all
}

func limitOf(s *limit.Scope) *storagev1.Limit {
	l := &storagev1.Limit{
		Requests: s.Rates.Requests, Input: s.Rates.Input, Output: s.Rates.Output,
		Room: s.Room, Pauses: s.Pauses, PauseMicros: s.Pause.Microseconds(),
		Turns: s.Breaker.Turns, Open: s.Breaker.Open, OpenMicros: s.Breaker.For.Microseconds(),
		Prober: string(s.Breaker.Prober),
	}

	for _, id := range slices.Sorted(maps.Keys(s.Shares)) {
		o := s.Shares[id]
		l.Shares = append(l.Shares, &storagev1.Limit_Share{Node: string(id), Want: o.Want, Slots: o.Slots, Parts: o.Parts})
	}

	return l
}

// deadNodes returns those of some nodes that are known to be dead, or show no sign of
// life at all: those of nodes that are dead and hold nothing are removed.
func (rec Records) deadNodes(ctx context.Context, tx store.Tx, some iter.Seq[mapreduce.NodeID], known []mapreduce.NodeID) (map[mapreduce.NodeID]bool, error) {
	nodes, values, err := rec.ReadSigns(ctx, tx, some)
	dead := make(map[mapreduce.NodeID]bool)
	for i, beat := range values {
		if beat == nil || slices.Contains(known, nodes[i]) {
			dead[nodes[i]] = true
		}
	}
	return dead, err
}
