package view

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
)

// A Grant is what this node was granted of a job: slots, and tokens of its budget. It knows what
// it is told alone, and can be behind the store.
type Grant struct {
	slots       int64 // granted
	revocations int64 // how often others took some of them
	unsure      bool  // slots may not be what the store says

	tokens       int64     // granted and neither spent nor reserved
	known        bool      // tokens is what the store says, but for what happened here since
	needed       int64     // tokens without which no unit can start; 0 if that is not so
	claiming     bool      // a claim of a job with a budget is under way, and has all tokens
	blockedSince time.Time // since when it lacks tokens; zero if it does not
}

// Adopt takes that the job has a spec now where it had another, or none.
func (g *Grant) Adopt(before, now *mapreduce.JobSpec) {
	g.needed = 0

	if before == nil {
		g.known = false
		g.unsure = g.unsure || g.slots == 0 // its submission may have granted some, whose commit was unknown
		return
	}

	if before.Budget != now.Budget {
		g.known = false
	}
	if now.Parallelism < before.Parallelism {
		g.slots, g.unsure = 0, true // of what all nodes have, some is to go
	}
}

// LacksTokens reports whether no unit of a job with a budget can start, as far as is known
// here.
func (g *Grant) LacksTokens() bool { return g.needed > g.tokens || !g.known }

// Fill fills in what to ask for of a job that holds units, and has use for so many slots. It
// reports whether to ask.
func (g *Grant) Fill(ask *nodes.GrantRequest, want, held int64, budget bool) bool {
	if g.slots < want && held >= g.slots {
		ask.Slots = want
	}

	// Slots that this node cannot use go back, if there are others who may use them.
	if surplus := g.slots - max(want, held); surplus > 0 && !ask.Alone {
		ask.Give, ask.Taken = surplus, g.revocations
	}

	if budget && want > 0 && g.LacksTokens() && !g.claiming {
		ask.Tokens = max(1, g.needed-g.tokens)
	}

	return g.unsure || ask.Slots > 0 || ask.Give > 0 || ask.Tokens > 0
}

// Apply takes what the store says, and returns how many tokens are still lacking. While a
// claim has all tokens they are not known: they are to be asked for when it has ended.
func (g *Grant) Apply(reply *nodes.GrantReply, now time.Time) (short int64) {
	g.slots, g.revocations, g.unsure = reply.Slots, reply.Taken, false
	if g.claiming {
		g.known = false
		return 0
	}

	g.tokens, g.known = max(0, reply.Tokens-reply.Used), true
	if g.needed <= g.tokens {
		g.blockedSince = time.Time{}
		return 0
	}

	if g.blockedSince.IsZero() {
		g.blockedSince = now
	}
	return g.needed
}

// TakeAll sets all tokens aside for a claim, which gives back what it does not reserve.
func (g *Grant) TakeAll() (tokens int64) {
	tokens, g.tokens, g.claiming = g.tokens, 0, true
	return tokens
}

// EndClaim gives back the tokens that a claim did not reserve.
func (g *Grant) EndClaim(left int64) {
	g.tokens += left
	g.claiming = false
}

// Cut takes that others have slots that this node thought to have: with less it asks for
// more.
func (g *Grant) Cut(left queue.Share) {
	g.slots, g.revocations = min(g.slots, left.Slots), left.Taken
}

// IsEmpty reports whether nothing is granted, as far as is known.
func (g *Grant) IsEmpty() bool { return g.slots == 0 && g.tokens == 0 }

// GiveUp takes all that is granted off the scheduler, and returns the slots among it.
func (g *Grant) GiveUp() nodes.GiveBack {
	back := nodes.GiveBack{Slots: g.slots, Taken: g.revocations}
	g.slots, g.tokens, g.known = 0, 0, false
	return back
}

// Begin enters slots that the job's submission has granted.
func (g *Grant) Begin(slots int64) { g.slots = slots }

// Slots returns how many slots are granted.
func (g *Grant) Slots() int64 { return g.slots }

// Share returns how many slots this node uses of what is granted, as others are told.
func (g *Grant) Share(used int64) queue.Share { return queue.Share{Slots: used, Taken: g.revocations} }

// MarkUnsure notes that what is granted may be more than is known here.
func (g *Grant) MarkUnsure() { g.unsure = true }

// GiveSlots takes slots off that are to be given back.
func (g *Grant) GiveSlots(n int64) { g.slots -= n }

// IsClaiming reports whether a claim is under way that has all tokens.
func (g *Grant) IsClaiming() bool { return g.claiming }

// IsKnown reports whether the tokens are known that are left.
func (g *Grant) IsKnown() bool { return g.known }

// MayStart reports whether there are the tokens without which no unit can start.
func (g *Grant) MayStart() bool { return g.needed <= g.tokens }

// LackedFor reports whether tokens have been lacking for d.
func (g *Grant) LackedFor(d time.Duration, now time.Time) bool {
	return !g.blockedSince.IsZero() && now.Sub(g.blockedSince) >= d
}

// Spend takes tokens, if there are as many.
func (g *Grant) Spend(n int64) (ok bool) {
	if ok = g.tokens >= n; ok {
		g.tokens -= n
	}
	return ok
}

// Overdraw takes tokens that the store may have, and reports whether that is more than is known
// here: then they are to be asked for anew.
func (g *Grant) Overdraw(n int64) (unknown bool) {
	g.tokens -= n
	g.known = g.known && g.tokens >= 0
	return !g.known
}

// Refund gives back tokens that were not used.
func (g *Grant) Refund(n int64) { g.tokens += n }

// NoteNeed notes that no unit can start without so many tokens, beside what others need.
func (g *Grant) NoteNeed(n int64) { g.needed = max(g.needed, n) }

// SetNeed enters without how many tokens no unit can start, as the store says; 0 if that is not
// so.
func (g *Grant) SetNeed(n int64) { g.needed = n }

// MarkUnknown notes that the tokens are not known that are left.
func (g *Grant) MarkUnknown() { g.known = false }

// MarkOverdrawn notes that less is left than was known here.
func (g *Grant) MarkOverdrawn() { g.tokens, g.known = 0, false }

// A Calls is how many units that call models this node may hold at once.
type Calls struct {
	slots       int64
	revocations int64              // how often others took some of them
	asked       nodes.CallsRequest // of which slots are what came
	due         bool               // it is to be asked for them again
}

// MarkDue has the node ask for calls again.
func (c *Calls) MarkDue() { c.due = true }

// TakeDue returns whether to ask for calls, which are others than before, or are to be asked
// for again.
func (c *Calls) TakeDue(ask nodes.CallsRequest) (wanted bool) {
	wanted = c.due || ask.Need != c.asked.Need || ask.Most != c.asked.Most
	c.due = false // unless something happens meanwhile
	return wanted
}

// Apply takes what the store says, and reports whether that is more than before.
func (c *Calls) Apply(ask nodes.CallsRequest, reply *nodes.CallsReply) (more bool) {
	more = reply.Slots > c.slots
	c.slots, c.revocations, c.asked = reply.Slots, reply.Taken, ask
	return more
}

// Cut takes that others have calls that this node thought to have, so that it has to ask.
func (c *Calls) Cut(left queue.Share) {
	c.slots, c.revocations, c.due = min(c.slots, left.Slots), left.Taken, true
}

// Poll has the node ask anew if it has fewer calls than it can make; or, unless it is the
// only node, may have some that others need.
func (c *Calls) Poll(alone bool, held int64) {
	short := c.slots < min(c.asked.Most, c.asked.Limit)
	c.due = c.due || short || !alone && (held > 0 || c.asked.Need > 0)
}

// Slots returns how many units that call models may be held at once.
func (c *Calls) Slots() int64 { return c.slots }

// Share returns how many this node uses of what is granted, as others are told.
func (c *Calls) Share(used int64) queue.Share { return queue.Share{Slots: used, Taken: c.revocations} }
