// Package observe is what a worker counts, and the spans of its work, for those who operate it. It must not
// import the worker: it is told.
package observe

import "github.com/coditect/mapreduce/api/protocol"

// Stats counts what a worker does now, and what it has done since it was made.
type Stats struct {
	Running   int // slots taken; abandoned attempts excepted
	Waiting   int // for a slot
	Held      int // waiting, running, or reported without a verdict
	Abandoned int // attempts whose agent has not returned yet, long after it should

	Done     int64 // attempts with a result
	Errored  int64
	Returned int64
	Parked   int64
	Panics   int64

	Accepted    int64 // verdicts
	Refused     int64 // verdicts stale and gone
	Unknown     int64 // verdicts on what is not held, and those not understood
	Duplicates  int64 // assignments of what was held already
	Connections int64 // times this worker said hello
}

// CountReport counts an attempt that has ended.
func (st *Stats) CountReport(r *protocol.Report) {
	switch r.Outcome {
	case protocol.Done:
		st.Done++
	case protocol.Errored:
		st.Errored++
	case protocol.Returned:
		st.Returned++
	case protocol.Parked:
		st.Parked++
	}
}
