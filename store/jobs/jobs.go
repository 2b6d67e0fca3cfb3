// Package jobs is what the service keeps: each operation on jobs, units,
// sessions and checkpoints, written once over the port of package store. Every
// write transaction here reads the key whose change must stop it, and is safe
// to run again after an unknown commit result: identifiers come from outside,
// and its own earlier success is recognised.
//
// The operations are in the packages below, each a Store of its own; this package
// wires them. What works inside a transaction has records.Records and no
// records.DB, so it has no means to begin another.
//
// It imports the vocabulary, the port and the key space; no driver.
package jobs

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/batches"
	"github.com/coditect/mapreduce/store/jobs/cascade"
	"github.com/coditect/mapreduce/store/jobs/causes"
	"github.com/coditect/mapreduce/store/jobs/check"
	"github.com/coditect/mapreduce/store/jobs/check/tenants"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/review"
	"github.com/coditect/mapreduce/store/jobs/staging"
	"github.com/coditect/mapreduce/store/jobs/view"
	"github.com/coditect/mapreduce/store/keys"
)

// Jobs keeps the service's records in a store, in parts. Its methods, and those of
// the parts, are safe for concurrent use.
type Jobs struct {
	Submit    *staging.Store    // submissions under way
	Turns     *queue.Turns      // reports and claims
	Levels    *lifecycle.Levels // what is planned, and how far it is
	Lifecycle *lifecycle.Store  // pause, fail, cancel, delete, resume
	Queue     *queue.Store      // units that wait
	Grants    *nodes.Grants     // budgets, slots and rates, divided among orchestrators
	Nodes     *nodes.Store      // orchestrators, and their sessions
	Sessions  *queue.Sessions   // what sessions of workers hold
	Content   *content.Store    // outputs, journals and texts
	View      *view.Store       // jobs and units as they are
	Audit     *view.Audit       // the chain of checkpoints
	Answers   *content.Answers  // what models answered
	Causes    *causes.Store     // what people said of causes of failed units
	Review    *review.Store     // what people decided about results
	Batches   *batches.Store    // calls of models that go by batch
	Cascade   *cascade.Store    // which answers of cheaper members are accepted
	Check     *check.Store      // what does not agree
	Tenants   *tenants.Store    // what of tenants does not agree, and is corrected

	db *records.DB
}

// New returns the records kept in db under space, as written by node, which begins now. No
// decision rests on the clock, except those that docs/store.md lists.
func New(db *store.DB, space *keys.Space, node mapreduce.NodeID, now func() time.Time) *Jobs {
	d := records.NewDB(db, records.New(space, node, now))
	return &Jobs{
		Submit: staging.New(d), Turns: queue.NewTurns(d), Levels: lifecycle.NewLevels(d), Lifecycle: lifecycle.New(d),
		Queue: queue.New(d), Grants: nodes.NewGrants(d), Nodes: nodes.New(d), Sessions: queue.NewSessions(d),
		Content: content.New(d), View: view.New(d), Audit: view.NewAudit(d), Answers: content.NewAnswers(d), Causes: causes.New(d), Review: review.New(d), Batches: batches.New(d), Cascade: cascade.New(d), Check: check.New(d), Tenants: tenants.New(d), db: d,
	}
}

type (
	viewStore    = view.Store
	contentStore = content.Store
	cascadeStore = cascade.Store
)

// A Reader reads units, the units whose outputs they take, outputs, and texts.
type Reader struct {
	*viewStore
	*contentStore
	*cascadeStore
}

// Reader returns what reads units, outputs and texts.
func (j *Jobs) Reader() Reader { return Reader{j.View, j.Content, j.Cascade} }

// SetRules sets where the rules of tenants come from: their quotas, and for how long their
// jobs are kept. It must be called before anything else; without it no tenant has any.
func (j *Jobs) SetRules(rules func(mapreduce.TenantID) mapreduce.TenantRule) {
	j.db.Records().Tenants.SetRules(rules)
}

// RuleOf returns what is set for a tenant.
func (j *Jobs) RuleOf(t mapreduce.TenantID) mapreduce.TenantRule {
	return j.db.Records().Tenants.RuleOf(t)
}

// Node returns the orchestrator in whose name these records are written.
func (j *Jobs) Node() mapreduce.NodeID { return j.db.Node() }

// IsFull reports whether the store had no room for the last write of this process.
func (j *Jobs) IsFull() bool { return j.db.IsFull() }

// DB returns the database underneath, for its counters.
func (j *Jobs) DB() *store.DB { return j.db.Store() }

// SetHook has h called at every point that is passed. It is for tests that end the
// process there, and must be called before anything else.
func (j *Jobs) SetHook(h failpoint.Hook) { j.db.SetHook(h) }

// Around runs fn between the points of a step; see failpoint.Hook.
func (j *Jobs) Around(s failpoint.Step, fn func()) { j.db.Around(s, fn) }

// Watch returns a channel that closes when another orchestrator may have made
// work, or when ctx ends.
func (j *Jobs) Watch(ctx context.Context) (<-chan struct{}, error) {
	return j.db.Watch(ctx)
}
