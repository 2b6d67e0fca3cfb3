package loop_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// TestAConversationChangesVendors has a model call tools in two turns and then fail: the model of another
// vendor goes on with the same conversation, in its own format, and makes the next call; for the last turn
// the first is there again, or it is not. No call of a tool is made twice, and the answer rests on what
// either has fetched. Each server refuses ids of calls, and thoughts, that its vendor would not take.
func TestAConversationChangesVendors(t *testing.T) {
	all := []string{"anthropic", "openai", "gemini", "mistral", "ollama"}
	for _, first := range all {
		for _, second := range all {
			for _, back := range []bool{false, true} {
				if first == second {
					continue
				}
				name := first + " then " + second
				if back {
					name += " and back"
				}
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { changeVendors(t, first, second, back) })
				})
			}
		}
	}
}

// pages are what the scripted models fetch, one in each turn but the last. The first model takes the
// turns before failsAt.
var pages = []string{"one", "two", "three"}

const failsAt = 2

// changeVendors runs one unit; back says that the first model is there again for the last turn.
func changeVendors(t *testing.T, first, second string, back bool) {
	r := newRig(t, first, itemsOutput, "{}", fakellm.Config{
		Model: turnsOf(first), Lax: first == "mistral",
		Fault: func(c fakellm.Call) fakellm.Fault {
			if turn := turnOf(c); turn == failsAt || turn > failsAt && !back {
				return fakellm.ServerError
			}
			return fakellm.None
		},
	})
	stands := fakellm.New(fakellm.Config{Model: turnsOf(second), Lax: second == "mistral"})
	agents := make(map[string]*model.Agent)
	others := func(name string) *model.Agent { return agents[name] }
	agents[first], agents[second] = modelsOn(t, first, r.fake, others), modelsOn(t, second, stands, others)
	r.spec.Fallbacks = []string{second + "/m"}
	r.runAs(t, agents[first])

	out, _ := r.run(t)
	for _, page := range pages {
		if n := r.web.done("fetch " + page); n != 1 {
			t.Errorf("the page %s was fetched %d times, want once", page, n)
		}
		if !strings.Contains(string(out.Value), "bridge of "+page) {
			t.Errorf("the answer says nothing of the page %s: %s", page, out.Value)
		}
	}
	if len(out.Citations) != len(pages) {
		t.Errorf("%d citations of %d pages", len(out.Citations), len(pages))
	}
	checkTurns(t, first, r.fake, back)
	checkTurns(t, second, stands, !back)
	if e := stands.Entries(); len(e) == 0 || len(e[0].Uses) != failsAt || !strings.Contains(e[0].Uses[1].Result, "bridge of two") {
		t.Fatalf("the second model goes on from %+v", e)
	}
}

// turnsOf returns a model of a vendor that fetches a page in each turn, and answers when it has all.
func turnsOf(vendor string) func(fakellm.Call) fakellm.Reply {
	return func(c fakellm.Call) fakellm.Reply {
		turn := turnOf(c)
		if turn == len(pages) {
			return answer(c)
		}
		reply := fetches(pages[turn])
		reply.Text, reply.Thinking, reply.Calls[0].ID = "I look.", "Where could it be?", vendorID(vendor, turn)
		return reply
	}
}

// vendorID returns an id of a call as the models of a vendor have them; OpenAI's are those of a server that
// has its interface alone. Ollama's server gives none.
func vendorID(vendor string, turn int) string {
	switch vendor {
	case "anthropic":
		return fmt.Sprintf("toolu_01Qimu3Y5DwauzoDUuBv2Dm%d", turn)
	case "openai":
		return fmt.Sprintf("functions.fetch:%d", turn)
	case "mistral":
		return fmt.Sprintf("LWy3uasi%d", turn)
	}
	return fmt.Sprintf("a-very-long-id-of-one-call-among-many-others-%d", turn)
}

var mistralID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

// checkTurns has that a vendor's model was asked nothing that the vendor refuses, and that it gave the last
// answer or did not.
func checkTurns(t *testing.T, vendor string, s *fakellm.Server, last bool) {
	t.Helper()
	answered := false
	for _, e := range s.Entries() {
		if e.Status != 200 && e.Fault == fakellm.None {
			t.Errorf("%s refuses a request of turn %d: %s", vendor, turnOf(e.Call), e.Body)
		}
		answered = answered || e.Status == 200 && turnOf(e.Call) == len(pages)
		for _, u := range e.Uses {
			if !u.Answered || vendor == "mistral" && !mistralID.MatchString(u.ID) {
				t.Errorf("%s is shown a call that it would not take: %+v", vendor, u)
			}
		}
	}
	if answered != last {
		t.Errorf("%s gave the last answer: %v, want %v", vendor, answered, last)
	}
}
