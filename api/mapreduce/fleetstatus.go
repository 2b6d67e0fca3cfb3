package mapreduce

import "time"

// A FleetStatus is the fleet as one server sees it at a moment. What stands in the store or
// is told to all servers is of the whole fleet; a server knows of the workers of others no
// more than where they are.
type FleetStatus struct {
	Node        NodeID // the server that answers
	Time        time.Time
	Servers     []ServerStatus // by their ids
	Workers     []WorkerStatus // those of this server first, then by their ids; at most MaxShownWorkers
	MoreWorkers int64          // that are left out
	Tenants     []TenantQueue  // that have jobs which may run, by their ids
	Models      []ModelStatus  // that jobs ask or asked, by their names
	Store       StoreStatus
}

// MaxShownWorkers bounds the workers of a FleetStatus.
const MaxShownWorkers = 1000

// A ServerStatus is what is known of a server, by its signs of life in the store.
type ServerStatus struct {
	Node NodeID
	// Silent is for how long no new sign of life of it was seen, counted while the store answered;
	// 0 of the server that answers.
	Silent time.Duration
	Dead   bool // silent for so long that others take over what it had
}

// A WorkerStatus is what is known of a worker.
type WorkerStatus struct {
	Session SessionID
	Node    NodeID // the server that it has its stream with; empty if it is lost, and what it held is put back
	// Embedded workers share the process of their server.
	Embedded bool
	// Known says that the server that answers has its stream; without it the fields below are empty.
	Known    bool
	Version  string    // of its program
	Tenant   TenantID  // whose units alone it runs; empty for those of all
	Slots    int       // units that it may run at once
	Prefetch int       // units that it may hold beside those
	Held     int       // units that it holds and has not reported
	Draining bool      // it leaves, and takes no more units
	Away     bool      // its stream has ended a moment ago
	Seen     time.Time // of its latest message
	Offer    Offer
	Refused  int      // outputs of it that were refused
	Breakers []string // models, provider/model, that it asks nothing for now
}

// A TenantQueue is what waits of a tenant.
type TenantQueue struct {
	Tenant  TenantID
	Jobs    int64 // that may run
	Running int64 // units that workers hold
	// Ready counts the units that could run and that no worker holds: they wait for nothing but a slot.
	Ready int64
	// Age is for how long a job of it has had waiting units of which the server that answers
	// claimed none: the longest of its jobs. 0 if nothing waits.
	Age time.Duration
}

// A ModelStatus is what the fleet knows of the limits of a model.
type ModelStatus struct {
	Name        string        // provider/model
	BreakerOpen bool          // its calls failed: none begins but one that probes
	Pause       time.Duration // until the next call may begin, as the vendor asked for
	Calls       int64         // at once by the whole fleet; 0 is no limit
	Rates       Rates         // of the whole fleet
}

// A StoreStatus is how the store answers one server.
type StoreStatus struct {
	Answers bool          // the latest sign of life was stored
	Full    bool          // the last write found no room
	Read    time.Duration // what a small read took for this answer
	Write   time.Duration // what the latest sign of life took

	// Runs of transactions since the server began, by how they ended.
	Commits, Reads, Conflicts, TooOld, Unknown int64
}
