package fault

import (
	"fmt"
	"slices"
	"strings"
)

// A Kind is a kind of fault.
type Kind int

// Kinds of faults. Faults of commits hit only transactions that write: a
// transaction that only reads always commits.
const (
	None Kind = iota

	Conflict         // a commit fails with ErrConflict
	Rerun            // the same, for the first commit of a transaction that is known by the keys it writes
	TooOld           // a commit fails with ErrTooOld
	Behind           // a commit fails with ErrProcessBehind
	UnknownCommitted // a commit is done and fails with ErrUnknownResult
	UnknownLost      // a commit is not done and fails with ErrUnknownResult
	TimedOutLate     // a commit fails with ErrTimedOut and is done later
	TimedOutLost     // a commit fails with ErrTimedOut and is never done
	TooLarge         // a commit fails with ErrTxTooLarge, which no retry helps
	SlowCommit       // a commit waits for Config.Pause

	ReadTooOld // a read fails with ErrTooOld, and its transaction with it
	ReadBehind // a read fails with ErrProcessBehind, and its transaction with it
	SlowRead   // a read waits for Config.Pause

	SpuriousWatch // a watch fires at once

	Outage // an operation failed in an outage; has no rate
	Doomed // a transaction failed in a recovery; has no rate

	kinds
)

var names = [kinds]string{
	"none", "conflict", "rerun", "too old", "behind", "unknown but committed", "unknown and lost",
	"timed out and late", "timed out and lost", "too large", "slow commit",
	"read too old", "read behind", "slow read", "spurious watch", "outage", "doomed",
}

// String returns the name of k.
func (k Kind) String() string {
	if k < 0 || k >= kinds {
		return fmt.Sprintf("fault.Kind(%d)", int(k))
	}
	return names[k]
}

// The kinds that may hit an operation, in the order in which they are drawn.
func commitKinds() []Kind {
	return []Kind{
		Conflict, TooOld, Behind, UnknownCommitted, UnknownLost,
		TimedOutLate, TimedOutLost, TooLarge, SlowCommit, Rerun,
	}
}

func readKinds() []Kind { return []Kind{ReadTooOld, ReadBehind, SlowRead} }

func watchKinds() []Kind { return []Kind{SpuriousWatch} }

// Rates are probabilities by kind. At most one fault hits an operation, so the rates
// of the kinds for commits should not add up to more than 1, nor those for reads.
type Rates map[Kind]float64

// Retryable returns rates under which every transaction commits if it is retried
// often enough: rate for each kind but TooLarge and Rerun.
func Retryable(rate float64) Rates {
	r := make(Rates)
	for _, k := range slices.Concat(commitKinds(), readKinds(), watchKinds()) {
		if k != TooLarge && k != Rerun {
			r[k] = rate
		}
	}
	return r
}

// Twice returns rates that make every transaction that writes run at least
// twice, and nothing else. A transaction is known by the keys it writes, so one
// that writes other keys each time it runs may run many times.
func Twice() Rates { return Rates{Rerun: 1} }

// String lists the rates in the order of kinds.
func (r Rates) String() string {
	var parts []string
	for k := range kinds {
		if r[k] > 0 {
			parts = append(parts, fmt.Sprintf("%v: %g", k, r[k]))
		}
	}
	return strings.Join(parts, ", ")
}
