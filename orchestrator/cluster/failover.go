package cluster

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/staging"
)

// FailoverLoop sees to what silent orchestrators have left. It is not done between two
// signs of life, as there may be much of it.
func (m *Membership) FailoverLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.nodesSuspected.C():
		}

		m.mu.Lock()
		silent := maps.Clone(m.silentNodes)
		m.mu.Unlock()

		for node, s := range silent {
			_, err := m.suspectNode(ctx, node, s.count)
			m.supervisor.LogFailure(ctx, "doubting an orchestrator; trying again", err, "node", node)
		}

		// Doubting takes its time: an orchestrator may have shown life meanwhile.
		for node, s := range silent {
			if m.silentFor(s) >= m.config.Lease && m.stillQuiet(node, s) {
				err := m.takeOverNode(ctx, node, s.count)
				m.supervisor.LogFailure(ctx, "taking over from an orchestrator; trying again", err, "node", node)
			}
		}
	}
}

// suspectNode gives what a silent orchestrator was granted and does not use to those who
// need it. Its workers have the lease to turn up.
func (m *Membership) suspectNode(ctx context.Context, node mapreduce.NodeID, count int64) (*nodes.Doubt, error) {
	d, err := m.jobs.Nodes.Doubt(ctx, node, count, rand.Text())
	if err != nil || d == nil {
		return nil, err
	}

	m.mu.Lock()
	before := m.suspects[node]
	m.suspects[node] = d
	m.mu.Unlock()

	if before == nil {
		m.config.Logger.Info("orchestrator is silent; what it does not use is free", "node", node, "holds", d.All)
	}
	if before == nil || before.ID != d.ID || !maps.Equal(before.Held, d.Held) {
		m.hooks.GrantsFreed()
	}
	return d, nil
}

// takeOverExclusive takes over what earlier runs left on a store that only this
// orchestrator can use. Workers of theirs that may still live get the lease to connect here.
func (m *Membership) takeOverExclusive(ctx context.Context) error {
	beats, err := m.jobs.Nodes.Beats(ctx)
	if err != nil {
		return err
	}

	for node, count := range beats {
		if node == m.jobs.Node() {
			continue
		}

		d, err := m.suspectNode(ctx, node, count)
		if err != nil {
			return err
		}
		if err := m.abandonOf(ctx, node); err != nil {
			return err
		}
		if err := m.takeOver(ctx, node, count, d, false); err != nil { // which forgets it
			return err
		}
	}
	return nil
}

// takeOverNode takes over what a dead orchestrator left.
func (m *Membership) takeOverNode(ctx context.Context, node mapreduce.NodeID, count int64) error {
	d, err := m.suspectNode(ctx, node, count)
	if err != nil || d == nil {
		return err
	}
	m.config.Logger.Warn("orchestrator is dead; taking over", "node", node)
	if err := m.abandonOf(ctx, node); err != nil {
		return err
	}
	return m.takeOver(ctx, node, count, d, true)
}

// takeOver expires the sessions that a dead node had. now says that they have
// had the time to connect elsewhere.
func (m *Membership) takeOver(ctx context.Context, node mapreduce.NodeID, count int64, d *nodes.Doubt, now bool) error {
	waiting := 0
	var after mapreduce.SessionID
	for {
		page, more, err := m.jobs.Nodes.Sessions(ctx, after, 500)
		if err != nil {
			return err
		}

		for _, s := range page {
			after = s.Session
			switch {
			case s.Node != node && !s.Expiring():
			case now || s.Embedded || s.Expiring():
				if err := m.hooks.ExpireSession(ctx, s, nil); err != nil {
					return err
				}
			default:
				waiting++
			}
		}

		if !more {
			break
		}
	}

	if waiting > 0 {
		m.takeOverLater(node, count, d)
		return nil
	}

	if err := m.jobs.Nodes.Forget(ctx, node, count, d); err != nil {
		return err
	}
	m.hooks.GrantsFreed() // all that it was granted is free
	return nil
}

// takeOverLater expires the sessions of a dead node that are left after the lease. The grace
// period would be too short: nobody was there to connect to, so workers try seldom.
func (m *Membership) takeOverLater(node mapreduce.NodeID, count int64, d *nodes.Doubt) {
	m.supervisor.AfterGrace(max(m.config.Grace, m.config.Lease), func(ctx context.Context) {
		if err := m.takeOver(ctx, node, count, d, true); err != nil {
			m.supervisor.LogFailure(ctx, "taking over from an orchestrator; trying again", err, "node", node)
			m.takeOverLater(node, count, d)
		}
	})
}

// abandonOf removes submissions that a dead node had under way.
func (m *Membership) abandonOf(ctx context.Context, node mapreduce.NodeID) error {
	return m.eachIngest(ctx, func(page []staging.Unfinished) error {
		var of []mapreduce.JobID
		for _, ref := range page {
			if ref.Node == node {
				of = append(of, ref.Job)
			}
		}
		return m.jobs.Submit.Abandon(ctx, of...)
	})
}

// eachIngest visits the submissions under way, some at a time.
func (m *Membership) eachIngest(ctx context.Context, visit func([]staging.Unfinished) error) error {
	for after := mapreduce.JobID(""); ; {
		page, err := m.jobs.Submit.Ingests(ctx, after)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := visit(page); err != nil {
			return err
		}
		after = page[len(page)-1].Job
	}
}

// leavesWork reports whether the store holds anything for others to take over. What
// workers of this process held goes back.
func (m *Membership) leavesWork(ctx context.Context) (bool, error) {
	left := false
	err := m.eachIngest(ctx, func(page []staging.Unfinished) error {
		left = left || slices.ContainsFunc(page, func(in staging.Unfinished) bool { return in.Node == m.jobs.Node() })
		return nil
	})
	if left || err != nil {
		return left, err
	}

	last := nodes.SessionRef{}
	for {
		page, more, err := m.jobs.Nodes.Sessions(ctx, last.Session, 500)
		if err != nil {
			return false, err
		}

		// The next page goes on behind the session that was visited last.
		for _, last = range page {
			switch {
			case last.Expiring():
				return true, nil
			case last.Node != m.jobs.Node():
			case !last.Embedded:
				return true, nil
			default:
				if err := m.hooks.ExpireSession(ctx, last, nil); err != nil {
					return false, err
				}
			}
		}

		if !more {
			return false, nil
		}
	}
}

// Retire says that this node is no more, so that others have at once what it was
// granted, unless the store holds anything of it for others to take over.
func (m *Membership) Retire(ctx context.Context) error {
	left, err := m.leavesWork(ctx)
	if err != nil || left {
		return err
	}

	beats, err := m.jobs.Nodes.Beats(ctx)
	if err != nil {
		return err
	}
	return m.jobs.Nodes.Forget(ctx, m.jobs.Node(), beats[m.jobs.Node()], nil)
}
