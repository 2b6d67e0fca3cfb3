// Package cluster is what all parts of an orchestrator rest on: its membership among those
// on the store (each shows signs of life, doubts those that are silent, takes over the jobs
// of dead ones, and staggers transactions that only one can win), the signals by which the
// parts and clients that watch learn of changes, the sealing of what became of jobs, and the
// supervision of what fails.
package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A MembershipConfig says how membership is judged. All of it must be set.
type MembershipConfig struct {
	Beat   time.Duration // between two signs of life of this node
	Lease  time.Duration // that another may show none before it is dead
	Grace  time.Duration // that workers of a dead node have to connect elsewhere, at a start
	Seal   time.Duration // between two seals of a job
	Logger *slog.Logger
	// NoPrecedence and NoSplitReads leave courtesies out, so that a benchmark can tell
	// what they are worth: the order in which orchestrators begin transactions of which
	// only one can commit, and the division of a long queue among them.
	NoPrecedence, NoSplitReads bool
}

// Hooks are what else a node does when others come and go. All must be set.
type Hooks struct {
	// LookAtTrees has the trees of all jobs looked at as a whole: a node that is gone may
	// not have passed on which units had ended there.
	LookAtTrees func()
	// GrantsFreed says that there is more to be granted, as another node lost some.
	GrantsFreed func()
	// ExpireSession gives back what a session holds whose worker is lost.
	ExpireSession func(ctx context.Context, s nodes.SessionRef, running map[protocol.Held]bool) error
}

// A Membership shows that a node lives, watches the others, and takes over from those
// that are dead. Its methods are safe for concurrent use.
type Membership struct {
	jobs       *jobs.Jobs
	config     MembershipConfig
	hooks      Hooks
	signals    *Signals
	supervisor *Supervisor

	nodesSuspected Signal // some others are silent

	mu              sync.Mutex                        // guards the variables below
	silentNodes     map[mapreduce.NodeID]nodeSighting // others without a sign of life of late
	suspects        map[mapreduce.NodeID]*nodes.Doubt // that they live
	liveNodes       int                               // orchestrators alive beside this one
	rank            int                               // how many of those have ids before this one's
	transactionPace time.Duration                     // of a transaction, of late
	beatTook        time.Duration                     // the latest sign of life
	knownNodes      map[mapreduce.NodeID]int64        // orchestrators of which there was a sign of life
	runs            []records.RunRef                  // that may run
	runsSeen        bool                              // by a beat, and not read since
}

// NewMembership returns the membership of the node that j is of. It shows no life before Join.
func NewMembership(j *jobs.Jobs, h Hooks, signals *Signals, s *Supervisor, c MembershipConfig) *Membership {
	return &Membership{jobs: j, hooks: h, signals: signals, supervisor: s, config: c, suspects: make(map[mapreduce.NodeID]*nodes.Doubt)}
}

// Join shows the first sign of life. With exclusive, no other node can be alive, and
// whatever others left is taken over at once.
func (m *Membership) Join(ctx context.Context, exclusive bool) error {
	begun := time.Now()
	signs, err := m.jobs.Nodes.Beat(ctx, 1, nodes.News{})
	if err != nil {
		return fmt.Errorf("orchestrator: first sign of life: %w", err)
	}

	m.keepPace(time.Since(begun))
	if !exclusive {
		m.noteKnownNodes(signs.Beats)
	} else if err := m.takeOverExclusive(ctx); err != nil {
		return fmt.Errorf("orchestrator: taking over: %w", err)
	}

	m.supervisor.NoteAnswer(time.Now())
	return nil
}

// QueuePlace returns how many living nodes come before this one in the division of a
// queue, and among how many it is divided.
func (m *Membership) QueuePlace() (rank, nodes int) {
	if m.config.NoSplitReads {
		return 0, 1
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rank, m.liveNodes + 1
}

// A nodeSighting is what was last seen of another orchestrator: its count, and since
// when, on this process's own clock that runs while the store answers.
type nodeSighting struct {
	count int64
	since time.Duration
}

// BeatLoop shows that this orchestrator lives, and watches the others: one whose
// count has not moved for two beats may be dead, and one whose count has not
// moved for the lease is, on this process's own clock and while the store was
// healthy. No other clock has a say, and on this one rests only how soon.
func (m *Membership) BeatLoop(ctx context.Context) {
	seen := make(map[mapreduce.NodeID]nodeSighting)
	count, answered := int64(1), time.Now()

	CallEvery(ctx, m.config.Beat, func() {
		count++
		begun := time.Now()
		signs, err := m.signOfLife(ctx, count)
		now := time.Now()
		if err != nil {
			m.supervisor.LogFailure(ctx, "giving a sign of life", err)
			m.supervisor.NoteStoreAway(now)
			return
		}

		m.supervisor.NoteStoreWorks()
		m.keepPace(now.Sub(begun))
		m.supervisor.NoteAnswer(now)
		if now.Sub(answered) > 2*m.config.Lease {
			clear(seen) // nobody could show life for long: everyone gets a full lease again
		}
		answered = now

		if signs.Seen {
			m.seeRuns(signs.Runs)
		}

		m.nodesGone(signs.Beats)
		delete(signs.Beats, m.jobs.Node())
		delete(signs.News, m.jobs.Node())
		for _, id := range m.signals.Feeds.Hear(time.Now(), signs.News) {
			m.signals.WakeWatchers(id)
		}
		m.watchNodes(seen, signs.Beats, m.supervisor.StoreUptime())
	})
}

// patience is how long a sign of life may take before the store counts as away. A
// cluster that does not answer says nothing, and has no time-out of its own.
const patience = 5 * time.Second

// errAway says that a store does not answer.
var errAway = fmt.Errorf("no answer for %v: %w", patience, store.ErrProcessBehind)

func (m *Membership) signOfLife(ctx context.Context, count int64) (*nodes.Signs, error) {
	ctx, stop := context.WithTimeoutCause(ctx, patience, errAway)
	defer stop()
	return m.jobs.Nodes.Beat(ctx, count, m.signals.Feeds.News())
}

// noteKnownNodes notes who else there may be: until one is known to be dead, it lives.
func (m *Membership) noteKnownNodes(beats map[mapreduce.NodeID]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.liveNodes, m.knownNodes = len(beats)-1, beats
}

// seeRuns notes the jobs that may run, as a beat has seen them.
func (m *Membership) seeRuns(refs []records.RunRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs, m.runsSeen = refs, true
}

// SeenRuns returns the jobs that may run: what the last beat has seen, but that
// only once, and without it reads them.
func (m *Membership) SeenRuns(ctx context.Context) ([]records.RunRef, error) {
	m.mu.Lock()
	refs, seen := m.runs, m.runsSeen
	m.runs, m.runsSeen = nil, false
	m.mu.Unlock()
	if seen {
		return refs, nil
	}
	return m.jobs.View.Runs(ctx)
}

// nodesGone has the trees of all jobs looked at when an orchestrator is no more: it may not
// have passed on which units had ended there.
func (m *Membership) nodesGone(beats map[mapreduce.NodeID]int64) {
	m.mu.Lock()

	gone := false
	for node := range m.knownNodes {
		_, there := beats[node]
		gone = gone || !there
	}
	m.knownNodes = maps.Clone(beats)
	m.mu.Unlock()

	if !gone {
		return
	}
	m.hooks.LookAtTrees()
}

// watchNodes notes the counts of other orchestrators, and those that are silent.
func (m *Membership) watchNodes(seen map[mapreduce.NodeID]nodeSighting, beats map[mapreduce.NodeID]int64, now time.Duration) {
	silent := make(map[mapreduce.NodeID]nodeSighting)
	alive, rank := 0, 0

	for node, n := range beats {
		s, known := seen[node]
		if !known || s.count != n {
			s = nodeSighting{n, now}
			seen[node] = s
		}
		quiet := now - s.since

		if quiet < m.config.Lease {
			alive++
			if node < m.jobs.Node() {
				rank++
			}
		}
		if quiet > m.config.Beat*3/2 { // two beats, were clocks and the store exact
			silent[node] = s
		}
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	m.liveNodes, m.rank, m.silentNodes = alive, rank, silent

	for node := range m.suspects {
		if _, still := silent[node]; !still {
			delete(m.suspects, node) // it was only slow, or is forgotten
		}
	}

	if len(silent) > 0 {
		m.nodesSuspected.Wake()
	}
}

// Servers returns what is known of all orchestrators, by their ids, and what the latest sign of
// life of this one took.
func (m *Membership) Servers() (all []mapreduce.ServerStatus, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()

	known := maps.Clone(m.knownNodes)
	if known == nil {
		known = make(map[mapreduce.NodeID]int64)
	}
	known[m.jobs.Node()] = 0 // also before its first sign of life was read again

	for _, node := range slices.Sorted(maps.Keys(known)) {
		s := mapreduce.ServerStatus{Node: node}
		if seen, silent := m.silentNodes[node]; silent {
			s.Silent = m.silentFor(seen)
			s.Dead = s.Silent >= m.config.Lease
		}
		all = append(all, s)
	}
	return all, m.beatTook
}

// DeadNodes returns those without a sign of life for the lease.
func (m *Membership) DeadNodes() (dead []mapreduce.NodeID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for node, s := range m.silentNodes {
		if m.silentFor(s) >= m.config.Lease {
			dead = append(dead, node)
		}
	}
	return dead
}

// SuspectNodes returns the nodes that are silent, and how that was noted.
func (m *Membership) SuspectNodes() map[mapreduce.NodeID]*nodes.Doubt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.suspects)
}

// IsOnlyNode reports whether no other orchestrator was alive of late.
func (m *Membership) IsOnlyNode() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.liveNodes == 0
}

// silentFor returns how long another orchestrator has given no sign of life while
// others could.
func (m *Membership) silentFor(s nodeSighting) time.Duration {
	return m.supervisor.StoreUptime() - s.since
}

// stillQuiet reports whether another orchestrator has given no sign of life since
// it was seen.
func (m *Membership) stillQuiet(node mapreduce.NodeID, s nodeSighting) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.silentNodes[node] == s
}
