package nodes

import (
	"context"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/limit"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// Grants divide budgets, slots and rates among orchestrators.
type Grants struct {
	db *records.DB
	Records
}

// NewGrants returns the operations on the records of db.
func NewGrants(db *records.DB) *Grants { return &Grants{db, Records{db.Records()}} }

// A GrantRequest is what a node wants to spend of a job without asking again.
type GrantRequest struct {
	Tokens      int64                       // at least; 0 wants none
	Slots       int64                       // at most; units running at once
	Give        int64                       // slots that it gives back, if others have taken none of them
	Taken       int64                       // how often others had taken some, as far as it knows
	ID          string                      // of what it gives: drawn once, whatever becomes of the transaction
	Parallelism int64                       // of the job; 0 if what the node has is only read
	Alone       bool                        // no other node is alive: take all there is
	Doubts      map[mapreduce.NodeID]*Doubt // nodes from which what they do not use is taken
}

// A GrantReply holds the slots and tokens of a job that a node may use: the sums of all its
// grants so far. Tokens are millionths of a dollar where the budget is in dollars, here and in what
// is asked for and reserved. A grant of tokens covers the tokens that the node has spent, those that
// its attempts have reserved, and those that it may still reserve.
type GrantReply struct {
	Tokens int64
	Used   int64 // of Tokens: spent, charged, and reserved
	Slots  int64
	Taken  int64              // how often others took some of Slots
	Budget int64              // 0 if none is set
	In     mapreduce.Currency // of Budget, and of what are tokens of it here
	Epoch  int64              // of the job
	Held   int64              // tokens of Budget that are held back for reducing, while the job maps
	Rest   int64              // tokens that nobody was granted, of those this phase may spend
	// Running are the units that run or wait for a batch, of all nodes, if a budget is set: what
	// they have reserved and do not spend comes back.
	Running int64
}

// Grant gives this node tokens and slots of a job. All grants of a job together
// never exceed its budget, less what is held back for reducing while it maps,
// nor its parallelism. If the budget was lowered, what was granted beyond it and
// is not used is taken away.
func (st *Grants) Grant(ctx context.Context, id mapreduce.JobID, ask GrantRequest) (*GrantReply, error) {
	var g *GrantReply
	err := st.db.Update(ctx, failpoint.Grant, func(tx store.Tx) error {
		ctl, err := st.Jobs.Control(ctx, tx, id)
		if err != nil {
			return err
		}
		all, err := st.readGrants(ctx, tx, mapreduce.JobScope(id))
		if err != nil {
			return err
		}

		free, err := st.ReadIdle(ctx, tx, maps.Keys(all), ask.Doubts)
		if err != nil {
			return err
		}
		for node, d := range free {
			if err := st.reduceGrant(ctx, tx, id, records.CurrencyOf(ctl), node, all, d.Held[id]); err != nil {
				return err
			}
		}

		own, before := all[st.Node], storagev1.Grant{}
		if own == nil {
			own = new(storagev1.Grant)
		} else {
			before.Tokens, before.Slots = own.Tokens, own.Slots
		}

		// A node that does not know that others took slots counts those among what it gives:
		// it would give slots of units that run.
		if ask.Give > 0 && ask.Taken == own.Taken && ask.ID != own.Given {
			own.Slots, own.Given = own.Slots-min(own.Slots, ask.Give), ask.ID
		}

		rest, slots := spendableTokens(ctl), ask.Parallelism
		for _, other := range all {
			rest -= other.Tokens
			slots -= other.Slots
		}

		r := tx.Snapshot()
		if rest < 0 {
			r = tx // what is used must not grow while the rest is taken away
		}
		used, err := st.Used(ctx, r, id, records.CurrencyOf(ctl), st.Node)
		if err != nil {
			return err
		}

		if rest < 0 {
			own.Tokens = max(min(own.Tokens, used), own.Tokens+rest)
		}

		own.Tokens += grantPortion(rest, ask.Tokens, ask.Alone)
		own.Slots += max(0, min(slots, ask.Slots-own.Slots)) // no more than its workers have
		if ask.Parallelism > 0 {
			own.Slots = max(0, own.Slots+min(0, slots)) // and no more than there are, if they have become fewer
		}

		if own.Tokens != before.Tokens || own.Slots != before.Slots {
			tx.Set(st.Keys.Nodes().Grant(mapreduce.JobScope(id), st.Node), records.Encode(own))
		}

		g = &GrantReply{Tokens: own.Tokens, Used: used, Slots: own.Slots, Taken: own.Taken, Budget: ctl.Budget, In: records.CurrencyOf(ctl), Held: ctl.Budget - spendableTokens(ctl), Epoch: ctl.Epoch, Rest: rest - (own.Tokens - before.Tokens)}
		if ctl.Budget > 0 {
			g.Running, err = st.countRunning(ctx, tx.Snapshot(), id)
		}
		return err
	})
	return g, err
}

// grantPortion is how much of rest a node takes that needs at least want: all if it
// is alone, else half of what it does not need, so that others find some.
func grantPortion(rest, want int64, alone bool) int64 {
	switch {
	case want <= 0 || rest < want:
		return 0
	case alone:
		return rest
	}
	return want + (rest-want)/2
}

// spendableTokens is how much of the budget the job's phase may spend. What is held
// back while mapping is there for reducing.
func spendableTokens(ctl *storagev1.Ctl) int64 {
	if ctl.Level > 0 {
		return ctl.Budget
	}
	return ctl.Budget - int64(float64(ctl.Budget)*ctl.ReduceShare)
}

// readGrants returns the grants of a scope, by node.
func (rec Records) readGrants(ctx context.Context, tx store.Tx, of mapreduce.Scope) (map[mapreduce.NodeID]*storagev1.Grant, error) {
	pairs, _, err := tx.GetRange(ctx, rec.Keys.Nodes().Grants(of), store.RangeOptions{})
	if err != nil {
		return nil, err
	}

	all := make(map[mapreduce.NodeID]*storagev1.Grant, len(pairs))
	for _, kv := range pairs {
		g := new(storagev1.Grant)
		if err := records.Decode(kv.Key, kv.Value, g); err != nil {
			return nil, err
		}

		_, rest, err := rec.Keys.Last(kv.Key)
		if err != nil {
			return nil, err
		}

		// The scope stands before the node.
		keys.GrantScope(&rest)
		all[mapreduce.NodeID(rest.Text())] = g
	}

	return all, nil
}

// reduceGrant reduces a node's grant to what it has spent, was charged, and has
// reserved for attempts that may yet end, and to the slots of units that its
// sessions hold.
func (rec Records) reduceGrant(ctx context.Context, tx store.Tx, id mapreduce.JobID, in mapreduce.Currency, node mapreduce.NodeID, all map[mapreduce.NodeID]*storagev1.Grant, held int64) error {
	g := all[node]
	used, err := rec.Used(ctx, tx, id, in, node)
	if err != nil {
		return err
	}

	used = min(used, g.Tokens) // without a budget, none were granted
	if g.Tokens == used && g.Slots <= held {
		return nil
	}

	g.Tokens = used
	capSlots(g, held)
	tx.Set(rec.Keys.Nodes().Grant(mapreduce.JobScope(id), node), records.Encode(g))
	return nil
}

// capSlots leaves a node at most so many slots, and counts that.
func capSlots(g *storagev1.Grant, left int64) {
	if left < g.Slots {
		g.Slots = left
		g.Taken++
	}
}

// Used is what of a node's grant is gone, or may be, of a budget in a currency.
func (rec Records) Used(ctx context.Context, r store.Reader, id mapreduce.JobID, in mapreduce.Currency, node mapreduce.NodeID) (int64, error) {
	names := records.BudgetCounters(in)
	ks := make([][]byte, len(names))
	for i, c := range names {
		ks[i] = rec.Keys.Job(id).Counter(c, 0, node)
	}

	values, err := r.GetAll(ctx, ks)
	n := int64(0)
	for _, v := range values {
		n += records.DecodeCount(v)
	}
	return n, err
}

// countRunning returns how many units of a job run, or have a call in a batch, or on its way to one: all that
// have something reserved.
func (rec Records) countRunning(ctx context.Context, r store.Reader, id mapreduce.JobID) (int64, error) {
	c, err := rec.Jobs.Counters(ctx, r, id)
	if err != nil {
		return 0, err
	}
	return c.SumLevels(keys.Running) + c.SumLevels(keys.LinesOpen), nil
}

// ReadSlots returns the grant of a scope that this node has, and how many slots all nodes have of it.
func (rec Records) ReadSlots(ctx context.Context, tx store.Tx, of mapreduce.Scope) (own *storagev1.Grant, granted int64, err error) {
	all, err := rec.readGrants(ctx, tx, of)
	if err != nil {
		return nil, 0, err
	}

	for _, g := range all {
		granted += g.Slots
	}

	if own = all[rec.Node]; own == nil {
		own = new(storagev1.Grant)
	}
	return own, granted, nil
}

// AddSlots gives this node n slots of a scope that no node has.
func (rec Records) AddSlots(ctx context.Context, tx store.Tx, of mapreduce.Scope, n int64) error {
	if n == 0 {
		return nil
	}
	own, _, err := rec.ReadSlots(ctx, tx, of)
	if err != nil {
		return err
	}
	own.Slots += n
	tx.Set(rec.Keys.Nodes().Grant(of, rec.Node), records.Encode(own))
	return nil
}

// MoveSlots moves the slots of units that a session held, by job, from the node
// that its worker reported to before: that many fewer of their jobs must run
// there. All of them, but no more than most, may have been calls of models, of which
// the fleet has slots of its own; what this node has no use for it gives back.
func (rec Records) MoveSlots(ctx context.Context, tx store.Tx, from mapreduce.NodeID, count map[mapreduce.JobID]int64, most int64) error {
	if from == "" || from == rec.Node {
		return nil
	}

	all := int64(0)
	for id, n := range count {
		all += n
		if err := rec.moveSlotsOf(ctx, tx, mapreduce.JobScope(id), from, n); err != nil {
			return err
		}
	}

	return rec.moveSlotsOf(ctx, tx, mapreduce.FleetScope(), from, min(all, most))
}

func (rec Records) moveSlotsOf(ctx context.Context, tx store.Tx, of mapreduce.Scope, from mapreduce.NodeID, n int64) error {
	var theirs, own storagev1.Grant
	if n == 0 {
		return nil
	}
	if _, err := records.Read(ctx, tx, rec.Keys.Nodes().Grant(of, from), &theirs); err != nil {
		return err
	}

	// The other node may have fewer by now.
	if n = min(n, theirs.Slots); n == 0 {
		return nil
	}

	if _, err := records.Read(ctx, tx, rec.Keys.Nodes().Grant(of, rec.Node), &own); err != nil {
		return err
	}

	capSlots(&theirs, theirs.Slots-n)
	own.Slots += n
	tx.Set(rec.Keys.Nodes().Grant(of, from), records.Encode(&theirs))
	tx.Set(rec.Keys.Nodes().Grant(of, rec.Node), records.Encode(&own))
	return nil
}

// A GiveBack is the slots of a job that a node gives back with all else that it was granted of it.
type GiveBack struct {
	Slots int64  // that it gives back, if others have taken none of them
	Taken int64  // how often others had taken some, as far as it knows
	ID    string // drawn once, whatever becomes of the transaction
}

// Return gives back what this node was granted and has neither spent nor reserved, and slots that it
// knows to be idle, and returns how many slots it keeps: those that came with a session since run units.
func (st *Grants) Return(ctx context.Context, id mapreduce.JobID, back GiveBack) (slots int64, err error) {
	err = st.db.Update(ctx, failpoint.Return, func(tx store.Tx) error {
		slots = 0
		var g storagev1.Grant
		found, err := records.Read(ctx, tx, st.Keys.Nodes().Grant(mapreduce.JobScope(id), st.Node), &g)
		if err != nil || !found {
			return err
		}

		ctl := new(storagev1.Ctl)
		if _, err := records.Read(ctx, tx, st.Keys.Job(id).Ctl(), ctl); err != nil {
			return err
		}
		kept, err := st.Used(ctx, tx, id, records.CurrencyOf(ctl), st.Node)
		if err != nil {
			return err
		}

		// As in Grant: a node that does not know that others took slots may give those of units that run.
		if slots = g.Slots; back.Taken == g.Taken && back.ID != g.Given {
			slots -= min(g.Slots, back.Slots)
		}
		kept = min(kept, g.Tokens) // without a budget, none were granted
		if g.Tokens == kept && g.Slots == slots {
			return nil
		}

		g.Tokens, g.Slots, g.Given = kept, slots, back.ID
		tx.Set(st.Keys.Nodes().Grant(mapreduce.JobScope(id), st.Node), records.Encode(&g))
		return nil
	})
	return slots, err
}

// A CallsRequest is what a node wants of the model calls that the fleet may have under
// way at once.
type CallsRequest struct {
	Need   int64       // calls that its workers can make of the jobs that run: of these it has its part
	Most   int64       // calls that its workers can make: it has as many as nobody needs
	Keep   int64       // of those it has, that may be under way: they stay, whatever its part is
	Limit  int64       // of the whole fleet
	Of     *CallsReply // that Keep was reckoned from: if it has other calls by now, all of them stay; nil stands for what it has
	Doubts map[mapreduce.NodeID]*Doubt
}

// A CallsReply is how many model calls a node may have under way.
type CallsReply struct {
	Slots int64 // that it may make use of
	Kept  int64 // that it has; what is more than Slots others need
	Taken int64 // how often others took some
}

// FleetSlots sets how many model calls this node may have under way: its part by
// what all nodes need, and what nobody needs. Over all nodes together they are
// never more than the limit. Others are woken if a need is not met, and if one gave
// back what they need.
func (st *Grants) FleetSlots(ctx context.Context, ask CallsRequest) (g *CallsReply, err error) {
	err = st.db.Update(ctx, failpoint.Fleet, func(tx store.Tx) error {
		all, err := st.readGrants(ctx, tx, mapreduce.FleetScope())
		if err != nil {
			return err
		}

		free, err := st.ReadIdle(ctx, tx, maps.Keys(all), ask.Doubts)
		if err != nil {
			return err
		}

		for node, d := range free {
			st.lowerFleet(tx, node, all[node], d)
			all[node].Want = 0 // it may be dead, and then it needs none
		}

		if all[st.Node] == nil {
			all[st.Node] = new(storagev1.Grant)
		}
		own := all[st.Node]

		before, grown := own.Slots, ask.Need > own.Want
		changed := ask.Need != own.Want
		own.Want = ask.Need

		slots, needed := ask.usableSlots(all, st.Node)
		own.Slots = max(slots, min(ask.keptOf(own), own.Slots))

		if (grown && slots < ask.Need) || (own.Slots < before && needed) {
			st.Jobs.WakeOthers(tx)
		}

		if changed || own.Slots != before {
			tx.Set(st.Keys.Nodes().Grant(mapreduce.FleetScope(), st.Node), records.Encode(own))
		}

		g = &CallsReply{Slots: slots, Kept: own.Slots, Taken: own.Taken}
		return nil
	})
	return g, err
}

// FleetWants returns how many model calls at once the workers of all nodes can make, of the jobs that run.
func (st *Grants) FleetWants(ctx context.Context) (n int64, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		n = 0
		all, err := st.readGrants(ctx, tx, mapreduce.FleetScope())
		for _, g := range all {
			n += g.Want
		}
		return err
	})
	return n, err
}

// keptOf returns how many calls of a node's grant may be under way. Of those that came with a session since
// Keep was reckoned, or that were taken by others, whoever reckoned it did not know.
func (ask *CallsRequest) keptOf(own *storagev1.Grant) int64 {
	if of := ask.Of; of != nil && (own.Slots != of.Kept || own.Taken != of.Taken) {
		return own.Slots
	}
	return ask.Keep
}

// usableSlots returns how many slots a node may make use of, and whether others need
// more than they have.
func (ask *CallsRequest) usableSlots(all map[mapreduce.NodeID]*storagev1.Grant, own mapreduce.NodeID) (n int64, needed bool) {
	nodes := slices.Sorted(maps.Keys(all))
	wants := make([]int64, len(nodes))
	for i, node := range nodes {
		wants[i] = all[node].Want
	}

	// rest is what no other node has; lacking is what others have too little of.
	part, rest, lacking := int64(0), ask.Limit, int64(0)
	for i, its := range limit.Divide(ask.Limit, wants) {
		its = min(its, wants[i])
		if nodes[i] == own {
			part = its
			continue
		}
		has := all[nodes[i]].Slots
		rest -= has
		lacking += max(0, its-has)
	}

	return max(0, min(rest, max(ask.Need, ask.Most), max(part, rest-lacking))), lacking > 0
}

// lowerFleet leaves a node no more of the fleet's slots than its sessions hold
// units. One that is forgotten holds none, and needs no record.
func (rec Records) lowerFleet(tx store.Tx, node mapreduce.NodeID, g *storagev1.Grant, d *Doubt) {
	switch key := rec.Keys.Nodes().Grant(mapreduce.FleetScope(), node); {
	case d.ID == "":
		g.Slots = 0
		tx.Clear(key)
	case d.All < g.Slots:
		capSlots(g, d.All)
		tx.Set(key, records.Encode(g))
	}
}

// A Reservation raises what an attempt has reserved.
type Reservation struct {
	protocol.Held
	Tokens int64 // in all
}

// NoTokens is what Reserve returns for an attempt for which this node's grant
// has too little left.
const NoTokens = -2

// Reserve raises reservations of attempts that still stand, and returns for
// each what it had before, -1 if it does not stand, or NoTokens: then the next claim of
// the unit reserves as much as was asked for. The tokens have to be in this node's grant.
// If the attempt's reservation is in another node's grant, for this node took its session
// over, what it is raised by moves there: this node's grant is less by that from then on.
func (st *Grants) Reserve(ctx context.Context, rs []Reservation) ([]int64, error) {
	var before []int64
	err := st.db.Update(ctx, failpoint.Reserve, func(tx store.Tx) error {
		before = before[:0]
		for _, r := range rs {
			u, err := st.Units.Read(ctx, tx, r.Job, r.Unit)
			if err != nil {
				return err
			}
			if !records.AttemptStands(u, r.Attempt) || mapreduce.UnitState(u.Status) != mapreduce.Processing {
				before = append(before, -1)
				continue
			}

			owner, more := mapreduce.NodeID(u.Node), r.Tokens-u.Reserved
			ctl := new(storagev1.Ctl)
			found, err := records.Read(ctx, tx, st.Keys.Job(r.Job).Ctl(), ctl)
			if err != nil {
				return err
			}
			ended := !found || mapreduce.JobState(ctl.State).Ended()
			if more > 0 && ended { // what it has not spent was given back
				before = append(before, -1)
				continue
			}

			if left, err := st.amountLeft(ctx, tx, r.Job, records.CurrencyOf(ctl)); err != nil {
				return err
			} else if more > 0 && left < more {
				before = append(before, NoTokens)
				st.raiseEstimate(tx, r.Job, u, r.Tokens)
				continue
			}

			before = append(before, u.Reserved)
			if more > 0 {
				st.AddSpendConflict(tx, r.Job)
			}
			if err := st.moveGrant(ctx, tx, r.Job, owner, more); err != nil {
				return err
			}

			tx.Add(st.Keys.Job(r.Job).Counter(keys.Reserved, 0, owner), more)
			u.Reserved = r.Tokens
			st.Units.Set(tx, r.Job, u)
		}

		return nil
	})
	return before, err
}

// raiseEstimate has the next claim of a unit reserve at least tokens. Else units whose
// claims reserve too little would be claimed together, refused together, and handed back
// together without end.
func (st *Grants) raiseEstimate(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit, tokens int64) {
	if tokens > u.Estimate {
		u.Estimate = tokens
		st.Units.Set(tx, id, u)
	}
}

// amountLeft is how much of this node's grant is not used.
func (rec Records) amountLeft(ctx context.Context, tx store.Tx, id mapreduce.JobID, in mapreduce.Currency) (int64, error) {
	var g storagev1.Grant
	if _, err := records.Read(ctx, tx, rec.Keys.Nodes().Grant(mapreduce.JobScope(id), rec.Node), &g); err != nil {
		return 0, err
	}
	used, err := rec.Used(ctx, tx.Snapshot(), id, in, rec.Node)
	return g.Tokens - used, err
}

// AddSpendConflict keeps apart what transactions of this node take of its grant at the same time: of
// two, the later runs again. What is used they read by snapshot, as reports change that
// all the time, and mostly for the better; and the grant itself others read as well.
func (rec Records) AddSpendConflict(tx store.Tx, id mapreduce.JobID) {
	one := store.Single(rec.Keys.Job(id).Draw(rec.Node))
	tx.AddReadConflict(one)
	tx.AddWriteConflict(one)
}

// moveGrant moves tokens of this node's grant to that of another, so that what
// each node has used stays within its grant.
func (rec Records) moveGrant(ctx context.Context, tx store.Tx, id mapreduce.JobID, to mapreduce.NodeID, tokens int64) error {
	if to == rec.Node || tokens == 0 {
		return nil
	}

	var from, target storagev1.Grant
	found, err := records.Read(ctx, tx, rec.Keys.Nodes().Grant(mapreduce.JobScope(id), rec.Node), &from)
	if err != nil || !found {
		return err // no budget is set
	}

	if _, err := records.Read(ctx, tx, rec.Keys.Nodes().Grant(mapreduce.JobScope(id), to), &target); err != nil {
		return err
	}

	from.Tokens -= tokens
	target.Tokens += tokens
	tx.Set(rec.Keys.Nodes().Grant(mapreduce.JobScope(id), rec.Node), records.Encode(&from))
	tx.Set(rec.Keys.Nodes().Grant(mapreduce.JobScope(id), to), records.Encode(&target))
	return nil
}

// TakeUnspent takes tokens off the grant of another node that were reserved of it, and were not spent:
// nobody there counts them. What this node has it keeps.
func (rec Records) TakeUnspent(ctx context.Context, tx store.Tx, id mapreduce.JobID, node mapreduce.NodeID, tokens int64) error {
	if node == rec.Node || tokens <= 0 {
		return nil
	}

	var g storagev1.Grant
	found, err := records.Read(ctx, tx, rec.Keys.Nodes().Grant(mapreduce.JobScope(id), node), &g)
	if err != nil || !found || g.Tokens == 0 {
		return err // no budget is set
	}
	g.Tokens = max(0, g.Tokens-tokens)
	tx.Set(rec.Keys.Nodes().Grant(mapreduce.JobScope(id), node), records.Encode(&g))
	return nil
}
