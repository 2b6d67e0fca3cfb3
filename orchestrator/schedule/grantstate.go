package schedule

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
)

// A grantState is what this node was granted of a job: slots, and tokens of its budget. It
// knows what it is told alone, and can be behind the store.
type grantState struct {
	slots       int64 // granted
	revocations int64 // how often others took some of them
	unsure      bool  // slots may not be what the store says

	tokens       int64     // granted and neither spent nor reserved
	known        bool      // tokens is what the store says, but for what happened here since
	needed       int64     // tokens without which no unit can start; 0 if that is not so
	claiming     bool      // a claim of a job with a budget is under way, and has all tokens
	blockedSince time.Time // since when it lacks tokens; zero if it does not
}

// adopt takes that the job has a spec now where it had another, or none.
func (g *grantState) adopt(before, now *mapreduce.JobSpec) {
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

// lacksTokens reports whether no unit of a job with a budget can start, as far as is known
// here.
func (g *grantState) lacksTokens() bool { return g.needed > g.tokens || !g.known }

// fill fills in what to ask for of a job that holds units, and has use for so many slots. It
// reports whether to ask.
func (g *grantState) fill(ask *nodes.GrantRequest, want, held int64, budget bool) bool {
	if g.slots < want && held >= g.slots {
		ask.Slots = want
	}

	// Slots that this node cannot use go back, if there are others who may use them.
	if surplus := g.slots - max(want, held); surplus > 0 && !ask.Alone {
		ask.Give, ask.Taken = surplus, g.revocations
	}

	if budget && want > 0 && g.lacksTokens() && !g.claiming {
		ask.Tokens = max(1, g.needed-g.tokens)
	}

	return g.unsure || ask.Slots > 0 || ask.Give > 0 || ask.Tokens > 0
}

// apply takes what the store says, and returns how many tokens are still lacking. While a
// claim has all tokens they are not known: they are to be asked for when it has ended.
func (g *grantState) apply(reply *nodes.GrantReply, now time.Time) (short int64) {
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

// takeAll sets all tokens aside for a claim, which gives back what it does not reserve.
func (g *grantState) takeAll() (tokens int64) {
	tokens, g.tokens, g.claiming = g.tokens, 0, true
	return tokens
}

// endClaim gives back the tokens that a claim did not reserve.
func (g *grantState) endClaim(left int64) {
	g.tokens += left
	g.claiming = false
}

// cut takes that others have slots that this node thought to have: with less it asks for
// more.
func (g *grantState) cut(left queue.Share) {
	g.slots, g.revocations = min(g.slots, left.Slots), left.Taken
}

// isEmpty reports whether nothing is granted, as far as is known.
func (g *grantState) isEmpty() bool { return g.slots == 0 && g.tokens == 0 }

// giveUp takes all that is granted off the scheduler.
func (g *grantState) giveUp() { g.slots, g.tokens, g.known = 0, 0, false }

// A nodeCalls is how many units that call models this node may hold at once.
type nodeCalls struct {
	slots       int64
	revocations int64              // how often others took some of them
	asked       nodes.CallsRequest // of which slots are what came
	due         bool               // it is to be asked for them again
}

// markDue has the node ask for calls again.
func (c *nodeCalls) markDue() { c.due = true }

// takeDue returns whether to ask for calls, which are others than before, or are to be asked
// for again.
func (c *nodeCalls) takeDue(ask nodes.CallsRequest) (wanted bool) {
	wanted = c.due || ask.Need != c.asked.Need || ask.Most != c.asked.Most
	c.due = false // unless something happens meanwhile
	return wanted
}

// apply takes what the store says, and reports whether that is more than before.
func (c *nodeCalls) apply(ask nodes.CallsRequest, reply *nodes.CallsReply) (more bool) {
	more = reply.Slots > c.slots
	c.slots, c.revocations, c.asked = reply.Slots, reply.Taken, ask
	return more
}

// cut takes that others have calls that this node thought to have, so that it has to ask.
func (c *nodeCalls) cut(left queue.Share) {
	c.slots, c.revocations, c.due = min(c.slots, left.Slots), left.Taken, true
}

// poll has the node ask anew if it has fewer calls than it can make; or, unless it is the
// only node, may have some that others need.
func (c *nodeCalls) poll(alone bool, held int64) {
	short := c.slots < min(c.asked.Most, c.asked.Limit)
	c.due = c.due || short || !alone && (held > 0 || c.asked.Need > 0)
}
