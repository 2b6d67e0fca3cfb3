package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
)

// What a node asks for of a job: slots that it can use and lacks, tokens without which nothing
// starts; and it gives back what it has no use for, if others may have.
func TestWhatIsAskedForOfAJob(t *testing.T) {
	for name, tt := range map[string]struct {
		grant      Grant
		want, held int64
		budget     bool
		alone      bool
		ask        nodes.GrantRequest
		wanted     bool
	}{
		"it has what it can use":           {Grant{slots: 4}, 4, 4, false, false, nodes.GrantRequest{}, false},
		"it lacks slots and uses its own":  {Grant{slots: 2}, 4, 2, false, false, nodes.GrantRequest{Slots: 4}, true},
		"it lacks slots that it could use": {Grant{slots: 2}, 4, 1, false, false, nodes.GrantRequest{}, false},
		"it has too many":                  {Grant{slots: 9, revocations: 3}, 4, 5, false, false, nodes.GrantRequest{Give: 4, Taken: 3}, true},
		"it has too many, and is alone":    {Grant{slots: 9}, 4, 5, false, true, nodes.GrantRequest{}, false},
		"nobody knows what it has":         {Grant{slots: 4, unsure: true}, 4, 4, false, false, nodes.GrantRequest{}, true},
		"tokens are not known":             {Grant{slots: 4}, 4, 4, true, false, nodes.GrantRequest{Tokens: 1}, true},
		"a unit needs more tokens":         {Grant{slots: 4, known: true, tokens: 10, needed: 25}, 4, 4, true, false, nodes.GrantRequest{Tokens: 15}, true},
		"tokens suffice":                   {Grant{slots: 4, known: true, tokens: 25, needed: 25}, 4, 4, true, false, nodes.GrantRequest{}, false},
		"a claim has the tokens":           {Grant{slots: 4, claiming: true}, 4, 4, true, false, nodes.GrantRequest{}, false},
		"no worker can use tokens":         {Grant{}, 0, 0, true, false, nodes.GrantRequest{}, false},
	} {
		ask := nodes.GrantRequest{Alone: tt.alone}
		tt.ask.Alone = tt.alone
		wanted := tt.grant.Fill(&ask, tt.want, tt.held, tt.budget)
		if d := cmp.Diff(tt.ask, ask); d != "" || wanted != tt.wanted {
			t.Errorf("%s: wanted is %t; -want +got:\n%s", name, wanted, d)
		}
	}
}

// A claim has all tokens while it is under way. What the store says meanwhile is not what is
// left, so it is asked again when the claim has given back what it did not reserve.
func TestTokensWhileAClaimIsUnderWay(t *testing.T) {
	now := time.Unix(1000, 0)
	var g Grant
	if short := g.Apply(&nodes.GrantReply{Slots: 4, Tokens: 100, Used: 30}, now); short != 0 || g.tokens != 70 || g.LacksTokens() {
		t.Fatalf("short by %d, grant %+v; want 70 tokens", short, g)
	}

	if taken := g.TakeAll(); taken != 70 || g.tokens != 0 {
		t.Errorf("a claim takes %d and leaves %d tokens, want all", taken, g.tokens)
	}
	if short := g.Apply(&nodes.GrantReply{Slots: 2, Tokens: 100, Used: 30}, now); short != 0 || g.tokens != 0 || g.slots != 2 || !g.LacksTokens() {
		t.Errorf("short by %d, grant %+v; want what the claim has counted nowhere else", short, g)
	}
	if g.EndClaim(45); g.tokens != 45 || g.claiming {
		t.Errorf("%d tokens when the claim has ended, want what it gives back", g.tokens)
	}
}

// Since when a job lacks tokens is the first time that the store says so, until it has them.
func TestSinceWhenTokensAreLacking(t *testing.T) {
	first := time.Unix(1000, 0)
	g := Grant{needed: 50}
	for i := range 3 {
		if short := g.Apply(&nodes.GrantReply{Tokens: 20}, first.Add(time.Duration(i)*time.Second)); short != 50 || !g.blockedSince.Equal(first) {
			t.Errorf("short by %d since %v, want 50 since %v", short, g.blockedSince, first)
		}
	}
	if short := g.Apply(&nodes.GrantReply{Tokens: 60}, first); short != 0 || !g.blockedSince.IsZero() {
		t.Errorf("short by %d since %v, though there are enough", short, g.blockedSince)
	}
}

// A job that has another spec keeps of its grant what is sure to be right.
func TestAGrantOfAnotherSpec(t *testing.T) {
	spec := func(budget int64, parallelism int) *mapreduce.JobSpec {
		return &mapreduce.JobSpec{Budget: budget, Parallelism: parallelism}
	}
	had := Grant{slots: 4, tokens: 9, known: true, needed: 3}
	for name, tt := range map[string]struct {
		grant       Grant
		before, now *mapreduce.JobSpec
		want        Grant
	}{
		"a new job, with slots":     {Grant{slots: 4}, nil, spec(0, 4), Grant{slots: 4}},
		"a new job, without":        {Grant{}, nil, spec(0, 4), Grant{unsure: true}},
		"the same":                  {had, spec(9, 4), spec(9, 4), Grant{slots: 4, tokens: 9, known: true}},
		"another budget":            {had, spec(9, 4), spec(99, 4), Grant{slots: 4, tokens: 9}},
		"fewer units at once":       {had, spec(9, 4), spec(9, 3), Grant{unsure: true, tokens: 9, known: true}},
		"more of its units at once": {had, spec(9, 4), spec(9, 5), Grant{slots: 4, tokens: 9, known: true}},
	} {
		tt.grant.Adopt(tt.before, tt.now)
		if d := cmp.Diff(tt.want, tt.grant, cmp.AllowUnexported(Grant{})); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
	}
}

// Calls are asked for when the node needs others than before, when it is told to, and when
// others took some.
func TestWhenCallsAreAskedFor(t *testing.T) {
	ask := nodes.CallsRequest{Need: 4, Most: 8}
	var c Calls
	if !c.TakeDue(ask) {
		t.Error("a node that needs calls does not ask")
	}
	if more := c.Apply(ask, &nodes.CallsReply{Slots: 8}); !more || c.TakeDue(ask) {
		t.Errorf("more: %t; and it must not ask for what it has", more)
	}
	if c.MarkDue(); !c.TakeDue(ask) || c.TakeDue(ask) {
		t.Error("it is to ask once when it is told to")
	}
	if c.Cut(queue.Share{Slots: 3, Taken: 1}); c.slots != 3 || c.revocations != 1 || !c.TakeDue(ask) {
		t.Errorf("others took some: %+v, and it has to ask", c)
	}
	if c.Poll(true, 5); c.TakeDue(ask) {
		t.Error("the only node asks though it may have no more")
	}
	if c.Poll(false, 5); !c.TakeDue(ask) {
		t.Error("a node that holds calls beside others does not look whether they need some")
	}
}
