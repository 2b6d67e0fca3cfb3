package mapreduce

import "time"

// A Parking is what a unit waits for outside of the system: a batch at a vendor,
// or a person. Meanwhile it holds no slot and no session, and of its reservation Kept alone.
type Parking struct {
	// Handle names what is waited for: a call wakes the unit by it. It has 1 to
	// MaxHandle bytes. A unit that waits again for something else should do so
	// under another handle.
	Handle string
	// WakeAfter is after how long the unit goes on without a call; 0 means never.
	// An orchestrator that comes later takes off what has passed since.
	WakeAfter time.Duration
	Note      string // for people

	// Line is the key of the unit's Line that it waits for, which was put before; nil if it waits for
	// something else. Kept is what of the budget stays reserved until that is answered, in the currency
	// of the budget: no more than the attempt has reserved and not spent.
	Line []byte
	Kept int64

	// Scores say, by measure and in millionths, how sure an answer is that waits to be
	// accepted in place of a dearer one. There are at most MaxScores.
	Scores []uint32
}

// Bounds of the scores of a parked unit.
const (
	MaxScores = 64
	MaxScore  = 1_000_000
)

// Bounds of the texts of a parked unit, in bytes.
const (
	MaxHandle     = 512
	MaxWakeAnswer = 64 << 10
)
