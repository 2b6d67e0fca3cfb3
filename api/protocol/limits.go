package protocol

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A LimitNote is what a worker has seen of a model since its last note.
type LimitNote struct {
	Name      string // provider/model
	Successes int64  // calls
	Refused   bool   // the vendor refused a call for lack of capacity
	// Pause is how long the vendor asked for no calls when it refused one.
	Pause time.Duration
	Told  mapreduce.Rates // limits that the vendor stated
	Left  mapreduce.Rates // what the vendor said is left of these limits now
}

// ModelManners are what a server of a model does not take, as a worker has learned. Whoever passes them
// on need not understand them. They hold no address, no key and no word of a document.
type ModelManners struct {
	Name    string // provider/model
	Server  string // a hash of the server's address, of at most MaxServer bytes
	Refuses string // in words that workers know, of at most MaxRefuses bytes
}

// Bounds of ModelManners, in bytes.
const (
	MaxServer  = 64
	MaxRefuses = 512
)

// A LimitShare limits a worker's calls of a model, until the next LimitShare of the
// model arrives or its time is over.
type LimitShare struct {
	Name  string          // provider/model
	For   time.Duration   // calls may begin for so long from now on; 0 means for ever
	Calls int64           // at once; 0 is no limit
	Rates mapreduce.Rates // of the whole fleet
	Left  mapreduce.Rates // about what is left of those now; 0 if nothing is known
	Part  float64         // of Rates and Left that this worker may use, in [0,1]
	Pause time.Duration   // no call may begin before that has passed
	// OpenFor is how long no call may begin because the model's breaker is open. Calls under
	// way end. 0 ends what was said before.
	OpenFor time.Duration
	Probe   bool // the breaker is half open: one call may begin at once, until one has worked
}
