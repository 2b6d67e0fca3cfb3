package mapreduce

import "fmt"

// A JobState is the state of a job.
type JobState uint8

// The states of a job. A running job is in Decomposition, Mapping or Reducing.
const (
	JobUnknown JobState = iota
	Decomposition
	Mapping
	Reducing
	JobComplete
	JobFailed
	JobCancelled
	JobPaused
)

var jobStateNames = [...]string{"unknown", "decomposition", "mapping", "reducing", "complete", "failed", "cancelled", "paused"}

// String returns the state's name, as commands and records show it.
func (s JobState) String() string { return stateName(jobStateNames[:], s) }

// ParseJobState returns the state with the given name.
func ParseJobState(s string) (JobState, error) {
	return parseState[JobState](jobStateNames[:], "job state", s)
}

// Running reports whether a job in state s makes claims.
func (s JobState) Running() bool {
	return s == Decomposition || s == Mapping || s == Reducing
}

// Ended reports whether a job in state s moves only when it is resumed.
func (s JobState) Ended() bool {
	return s == JobComplete || s == JobFailed || s == JobCancelled
}

// CanBecome reports whether a job may go from s to t.
//
//	decomposition → mapping → reducing → complete
//	mapping → complete, if its only unit is the direct one
//	running → paused, failed, cancelled
//	paused, failed, complete (with failures) → running, by resume
//	paused, failed → cancelled
func (s JobState) CanBecome(t JobState) bool {
	switch {
	case s.Running() && t.Running():
		return t >= s
	case s.Running():
		return t != JobUnknown && (t != JobComplete || s == Reducing || s == Mapping)
	case s == JobPaused || s == JobFailed:
		return t.Running() || t == JobCancelled
	case s == JobComplete:
		return t.Running()
	}
	return false
}

// A UnitState is the state of a unit.
type UnitState uint8

// The states of a unit.
const (
	UnitUnknown   UnitState = iota
	Blocked                 // its inputs are not ready
	Pending                 // may be claimed
	Processing              // claimed under its attempt
	UnitComplete            // its result is published
	UnitFailed              // will not be tried again, unless the job is resumed
	UnitCancelled           // its job was cancelled first
)

var unitStateNames = [...]string{"unknown", "blocked", "pending", "processing", "complete", "failed", "cancelled"}

// String returns the state's name, as commands and records show it.
func (s UnitState) String() string { return stateName(unitStateNames[:], s) }

// ParseUnitState returns the state with the given name.
func ParseUnitState(s string) (UnitState, error) {
	return parseState[UnitState](unitStateNames[:], "unit state", s)
}

// Ended reports whether a unit in state s waits for nothing.
func (s UnitState) Ended() bool { return s >= UnitComplete }

// CanBecome reports whether a unit may go from s to t.
//
//	blocked → pending → processing → complete | failed
//	processing → pending: handed back, retried, parked, or its worker was lost
//	pending → complete | failed: a late finish whose attempt still stands, or a skip
//	failed → pending: by resume
//	pending, complete, failed → blocked: by resume, of a reduce whose inputs are tried again
//	anything not ended → cancelled
func (s UnitState) CanBecome(t UnitState) bool {
	switch s {
	case Blocked:
		return t == Pending || t == UnitCancelled || t == UnitFailed
	case Pending:
		return t == Processing || t == Blocked || t.Ended()
	case Processing:
		return t == Pending || t.Ended()
	case UnitComplete:
		return t == Blocked
	case UnitFailed:
		return t == Pending || t == Blocked
	}
	return false
}

// A UnitKind is the kind of work of a unit.
type UnitKind uint8

// The kinds of units.
const (
	KindUnknown UnitKind = iota
	KindMap              // runs the map agent on a document or a chunk of one
	KindParse            // turns a document's bytes into text
	KindReduce           // reduces a group of outputs of the level below
	KindFinal            // makes the result from the last level
	KindDirect           // does it all in one call
	KindResult           // assembles the result; orchestrators run it themselves, and it is listed nowhere but in the audit
)

var unitKindNames = [...]string{"unknown", "map", "parse", "reduce", "final-reduce", "direct", "result"}

// String returns the kind's name, as the DAG shows it.
func (k UnitKind) String() string { return stateName(unitKindNames[:], k) }

func stateName[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", names[0], v)
}

func parseState[T ~uint8](names []string, what, s string) (T, error) {
	for i, n := range names {
		if i > 0 && n == s {
			return T(i), nil
		}
	}
	return 0, fmt.Errorf("no %s is named %q", what, s)
}
