// Package failpoint names the places at which a process may die with something
// half done, so that tests can make it die there. Each transaction that writes
// is one, right before its commit and right after; so is what follows from one.
// A program in which no hook is set pays a comparison with nil for it.
//
// It imports nothing of the project, and decides nothing.
package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// A Step is what is done between two points.
type Step string

// The steps of the store's records: each is one transaction.
const (
	Begin    Step = "begin"    // a submission is opened
	Stage    Step = "stage"    // a part of it is stored
	Publish  Step = "publish"  // it becomes a job, whole
	Abandon  Step = "abandon"  // it is removed
	Bind     Step = "bind"     // a worker's session is taken up
	Turn     Step = "turn"     // reports are taken, units are claimed
	Started  Step = "started"  // a suspect has begun to run
	Chunk    Step = "chunk"    // a part of a large output is stored
	Journal  Step = "journal"  // entries are added to the journal of a unit
	Evidence Step = "evidence" // a part of evidence of a unit is stored; the last part with the item
	Wakeup   Step = "wakeup"   // delayed units, and parked ones whose time has come, go back to their queue
	Wake     Step = "wake"     // a call wakes a parked unit
	Grant    Step = "grant"    // a node is given slots and tokens
	Return   Step = "return"   // it gives them back
	Rate     Step = "rate"     // a node is given calls of a tenant
	Fleet    Step = "fleet"    // a node is given a part of the model calls of all
	Reserve  Step = "reserve"  // an attempt reserves more
	Insert   Step = "insert"   // a part of a parsed document becomes units
	Plan     Step = "plan"     // a part of a level is planned; the last part turns the job to it
	Unblock  Step = "unblock"  // reduces of a tree whose inputs have ended go to their queue
	Ascend   Step = "ascend"   // a tree turns to the next level that has not ended
	Map      Step = "map"      // a job turns from parsing to mapping
	Assemble Step = "assemble" // a part of a job's result is stored
	Complete Step = "complete" // a job completes, with its result if that is small
	Pause    Step = "pause"    // a job is paused
	Fail     Step = "fail"     // a job fails
	Resume   Step = "resume"   // a job is made to go on, or its levels above a failure are dropped, or lines of these taken back
	Retry    Step = "retry"    // failed units go back to their queue
	Cancel   Step = "cancel"   // a job is cancelled
	Sweep    Step = "sweep"    // some of its units are
	Delete   Step = "delete"   // a job is removed
	Expire   Step = "expire"   // units of a worker that is lost go back to their queue
	Beat     Step = "beat"     // an orchestrator shows that it lives
	Doubt    Step = "doubt"    // others see no sign of life of it
	Forget   Step = "forget"   // one that is dead is forgotten
	Seal     Step = "seal"     // checkpoints are chained
	Decide   Step = "decide"   // somebody's decision about a value is kept, or which records somebody is about to review
	Mark     Step = "mark"     // what was said of a cause of failed units is kept
	Ask      Step = "ask"      // a request that is to go by batch is stored
	Group    Step = "group"    // requests are put together in a batch
	Take     Step = "take"     // a worker is given a batch to see to
	Tell     Step = "tell"     // what became of a batch is stored, and of some of its lines
	Rescue   Step = "rescue"   // calls that wait for batches are to be made in real time, for a deadline
	Census   Step = "census"   // some units of a trial of a cascade are listed, or what is accepted of them
	Certify  Step = "certify"  // a trial of a cascade begins, or is decided
	Judge    Step = "judge"    // units of a cascade go on as was decided
	Disown   Step = "disown"   // a certificate of cascades is dropped
)

// The steps of an orchestrator: what it sends to workers once a turn is durable.
const (
	Answer Step = "answer" // the verdicts
	Assign Step = "assign" // the units
)

// Steps returns all steps.
func Steps() []Step {
	return []Step{
		Begin, Stage, Publish, Abandon, Bind, Turn, Started, Chunk, Journal, Evidence, Wakeup, Wake, Grant, Return, Rate, Fleet, Reserve,
		Insert, Plan, Unblock, Ascend, Map, Assemble, Complete, Pause, Fail, Resume, Retry, Cancel, Sweep, Delete, Expire, Beat, Doubt, Forget, Seal, Decide, Mark, Ask, Group, Take, Tell, Rescue, Census, Certify, Judge, Disown,
		Answer, Assign,
	}
}

// A Point is a place: "turn.before" is right before the commit of a turn, and
// "turn.after" when it is durable and nothing has been done about it.
type Point string

// Before returns the point at which everything is prepared for s.
func (s Step) Before() Point { return Point(s) + ".before" }

// After returns the point at which s is done and nobody knows.
func (s Step) After() Point { return Point(s) + ".after" }

// Points returns all points.
func Points() []Point {
	var all []Point
	for _, s := range Steps() {
		all = append(all, s.Before(), s.After())
	}
	return all
}

// A Hook is called at every point that is passed, by many goroutines at once. Nil
// is no hook.
type Hook func(Point)

// Around runs fn between the points of s.
func (h Hook) Around(s Step, fn func()) {
	if h == nil {
		fn()
		return
	}
	h(s.Before())
	fn()
	h(s.After())
}

// Variable is the environment variable that Parse is meant for.
const Variable = "CODITECT_FAILPOINT"

// Parse makes a hook that ends this process, at once and by SIGKILL, at the n-th pass of a
// point: "turn.after" or, with n, "turn.after:3". An empty text gives no hook.
func Parse(s string) (Hook, error) {
	if s == "" {
		return nil, nil
	}

	name, count, counted := strings.Cut(s, ":")
	if !slices.Contains(Points(), Point(name)) {
		return nil, fmt.Errorf("failpoint: no point is called %q", name)
	}

	n := int64(1)
	if counted {
		var err error
		if n, err = strconv.ParseInt(count, 10, 64); err != nil || n < 1 {
			return nil, fmt.Errorf("failpoint: %q of %q must be a number from 1", count, s)
		}
	}

	// Many goroutines may pass points at once.
	var passed atomic.Int64
	return func(p Point) {
		if p == Point(name) && passed.Add(1) == n {
			die(p)
		}
	}, nil
}

// die does not return: what the caller would do next must not happen.
func die(p Point) {
	fmt.Fprintf(os.Stderr, "failpoint: %s\n", p)
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic("failpoint: cannot end this process: " + err.Error())
	}
	select {}
}
