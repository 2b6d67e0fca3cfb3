package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/storetest/memory"
)

// lanes is the number of transactions of a program that are open at once.
const lanes = 3

// An Action is the operation of a step of a program.
type Action int

// Actions of steps.
const (
	actGet Action = iota
	actGetAll
	actGetRange
	actSet
	actClear
	actClearRange
	actAdd
	actReadConflict
	actWriteConflict
	actCommit
	actDiscard

	actions
)

func (a Action) String() string {
	return [actions]string{
		"get", "get all", "get range", "set", "clear", "clear range",
		"add", "read conflict", "write conflict", "commit", "discard",
	}[a]
}

// A Step is one step of one of the transactions of a program. The transaction
// begins with its first step.
type Step struct {
	Lane     int
	Action   Action
	Key, End string // in either order, where they bound a range
	Snapshot bool   // of reads
	Options  store.RangeOptions
	Value    string
	Delta    int64
}

// A Program is an interleaving of steps.
type Program []Step

// String lists the steps, one a line.
func (p Program) String() string {
	var b strings.Builder
	for i, s := range p {
		fmt.Fprintf(&b, "%d: lane %d, %v %q %q, snapshot %v, %+v, value %q, delta %d\n",
			i, s.Lane, s.Action, s.Key, s.End, s.Snapshot, s.Options, s.Value, s.Delta)
	}
	return b.String()
}

// GoString serves rapid, which prints failing programs.
func (p Program) GoString() string { return "\n" + p.String() }

// Programs generates programs of a few actions over a few keys, so that steps often
// conflict. Only keys that end in n hold numbers and are added to.
func Programs() *rapid.Generator[Program] {
	keys := rapid.SampledFrom([]string{"", "\x00", "a", "a\x00", "an", "b", "bn", "cn", "n", "\xff\xff"})
	return rapid.Custom(func(t *rapid.T) Program {
		fewKeys := rapid.SliceOfNDistinct(keys, 1, 5, rapid.ID).Draw(t, "keys")
		fewActions := rapid.SliceOfNDistinct(rapid.IntRange(0, int(actions)-1), 1, 5, rapid.ID).Draw(t, "actions")

		often := []Action{actGet, actGetRange, actSet, actCommit, actCommit}
		for _, a := range fewActions {
			often = append(often, Action(a), Action(a)) // as often as a commit
		}

		// Slices of slices are long enough on average, and shrink well.
		parts := rapid.SliceOfN(rapid.SliceOfN(stepGenerator(fewKeys, often), 1, 20), 1, 20)
		return slices.Concat(parts.Draw(t, "steps")...)
	})
}

func stepGenerator(keys []string, often []Action) *rapid.Generator[Step] {
	return rapid.Custom(func(t *rapid.T) Step {
		s := Step{
			Lane:     rapid.IntRange(0, lanes-1).Draw(t, "lane"),
			Action:   rapid.SampledFrom(often).Draw(t, "action"),
			Key:      rapid.SampledFrom(keys).Draw(t, "key"),
			End:      rapid.SampledFrom(append(keys, "\xff\xff\xff")).Draw(t, "end"),
			Value:    rapid.SampledFrom([]string{"", "1", "22", "333", "4444"}).Draw(t, "value"),
			Delta:    rapid.Int64Range(-3, 3).Draw(t, "delta"),
			Snapshot: rapid.IntRange(0, 3).Draw(t, "snapshot") == 0,
			Options:  rapid.Custom(rangeOptions).Draw(t, "options"),
		}

		// Only keys that end in n hold numbers.
		numeric := strings.HasSuffix(s.Key, "n")
		switch {
		case s.Action == actAdd && !numeric:
			s.Action = actSet
		case s.Action == actSet && numeric:
			s.Value = encodeNumber(s.Delta)
		}
		return s
	})
}

func rangeOptions(t *rapid.T) store.RangeOptions {
	return store.RangeOptions{
		Limit:   rapid.IntRange(0, 4).Draw(t, "limit"),
		Bytes:   rapid.SampledFrom([]int{0, 0, 0, 1, 60, 200}).Draw(t, "bytes"),
		Reverse: rapid.Bool().Draw(t, "reverse"),
	}
}

// Lockstep runs program on s and on the reference at once. Every read, the outcome
// of every commit, and the contents at the end must be the same. Keys are put below
// prefix, which must be empty in s.
func Lockstep(ctx context.Context, s store.Store, prefix string, program Program, o Options) error {
	l := &lockstep{
		ctx: ctx, store: s, reference: new(memory.Store), prefix: prefix,
		tolerant: o.Faulty || o.FalseConflicts, faulty: o.Faulty,
	}
	defer l.discardLanes()

	for i, step := range program {
		err := l.runStep(step)
		if errors.Is(err, errOpenEnd) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("step %d, %v in lane %d: %w", i, step.Action, step.Lane, err)
		}
	}

	return l.compareContents()
}

// errOpenEnd ends a program after a commit that may still happen, because nothing
// can be predicted after it.
var errOpenEnd = errors.New("storetest: a commit may yet happen")

type lockstep struct {
	ctx       context.Context
	store     store.Store
	reference *memory.Store
	prefix    string
	tolerant  bool // conflicts for no reason are allowed
	faulty    bool
	lanes     [lanes]*lane
	commits   int
}

// A lane is a transaction on the store and its counterpart on the reference.
type lane struct {
	tx, reference store.Tx
	writes        bool
}

func (l *lockstep) prefixedKey(name string) []byte { return []byte(l.prefix + name) }

func (l *lockstep) stepRange(s Step) store.Range {
	return store.Range{Begin: l.prefixedKey(min(s.Key, s.End)), End: l.prefixedKey(max(s.Key, s.End))}
}

// runStep runs one step. It discards a transaction that met a fault.
func (l *lockstep) runStep(s Step) error {
	pair := l.lanes[s.Lane]
	if pair == nil {
		var err error
		if pair, err = l.beginLane(); err != nil {
			return l.forgiveFault(s.Lane, err)
		}
		l.lanes[s.Lane] = pair
	}

	switch s.Action {
	case actGet, actGetAll, actGetRange:
		return l.forgiveFault(s.Lane, l.compareRead(pair, s))
	case actCommit:
		l.lanes[s.Lane] = nil
		defer pair.discard()
		return l.commitLane(pair)
	case actDiscard:
		l.lanes[s.Lane] = nil
		pair.discard()
	case actReadConflict:
		if err := l.pinVersions(pair); err != nil {
			return l.forgiveFault(s.Lane, err)
		}

		// The conflict is added below, on both sides.
		fallthrough
	default:
		pair.writes = pair.writes || s.Action != actReadConflict
		l.applyWrite(pair.tx, s)
		l.applyWrite(pair.reference, s)
	}

	return nil
}

func (l *lockstep) beginLane() (*lane, error) {
	tx, err := l.store.Begin(l.ctx)
	if err != nil {
		return nil, err
	}
	reference, err := l.reference.Begin(l.ctx)
	return &lane{tx: tx, reference: reference}, err
}

// pinVersions fixes the read versions on both sides. A read conflict before the first
// read would have no version otherwise.
func (l *lockstep) pinVersions(pair *lane) error {
	if _, err := pair.tx.ReadVersion(l.ctx); err != nil {
		return err
	}
	_, err := pair.reference.ReadVersion(l.ctx)
	return err
}

// forgiveFault discards the transaction of a lane after a fault.
func (l *lockstep) forgiveFault(lane int, err error) error {
	if !l.faulty || !store.Retryable(err) {
		return err
	}
	if l.lanes[lane] != nil {
		l.lanes[lane].discard()
		l.lanes[lane] = nil
	}
	return nil
}

func (l *lockstep) applyWrite(tx store.Tx, s Step) {
	key, span := l.prefixedKey(s.Key), l.stepRange(s)

	switch s.Action {
	case actSet:
		tx.Set(key, []byte(s.Value))
	case actClear:
		tx.Clear(key)
	case actClearRange:
		tx.ClearRange(span)
	case actAdd:
		tx.Add(key, s.Delta)
	case actReadConflict:
		tx.AddReadConflict(span)
	case actWriteConflict:
		tx.AddWriteConflict(span)
	}
}

func (l *lockstep) compareRead(pair *lane, s Step) error {
	tx, reference := store.Reader(pair.tx), store.Reader(pair.reference)
	if s.Snapshot {
		tx, reference = pair.tx.Snapshot(), pair.reference.Snapshot()
	}

	if s.Action == actGetRange {
		return l.compareRange(tx, reference, s)
	}

	keys := [][]byte{l.prefixedKey(s.Key)}
	// A key may be asked for twice.
	if s.Action == actGetAll {
		keys = append(keys, l.prefixedKey(s.End), l.prefixedKey(s.Key))
	}

	want, err := reference.GetAll(l.ctx, keys)
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}

	got := make([][]byte, 1)
	if s.Action == actGet {
		got[0], err = tx.Get(l.ctx, keys[0])
	} else {
		got, err = tx.GetAll(l.ctx, keys)
	}

	if err != nil {
		return err
	}
	return compareValues("values", got, want)
}

// compareRange compares a range read. The driver goes first: if the last pair just
// reaches a bound, the driver may or may not report more pairs. Its read depends on
// the keys beyond only if it reports none.
func (l *lockstep) compareRange(tx, reference store.Reader, s Step) error {
	span := l.stepRange(s)
	got, more, err := tx.GetRange(l.ctx, span, s.Options)
	if err != nil {
		return err
	}

	o := s.Options
	if err := checkBounds(o, got); err != nil {
		return err
	}

	// The store has read the whole range, so no bound was in effect.
	if !more {
		o.Limit, o.Bytes = 0, 0
	}

	want, bounded, err := reference.GetRange(l.ctx, span, o)
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}

	if more != bounded {
		return fmt.Errorf("range %q to %q, %+v: got more %v after %d pairs", s.Key, s.End, s.Options, more, len(got))
	}

	return compareValues(fmt.Sprintf("range %q to %q, %+v", s.Key, s.End, s.Options), got, want)
}

// checkBounds returns an error if a read exceeded its bounds.
func checkBounds(o store.RangeOptions, pairs []store.KeyValue) error {
	bytes := 0
	for i, kv := range pairs {
		if o.Limit > 0 && i >= o.Limit || o.Bytes > 0 && bytes >= o.Bytes {
			return fmt.Errorf("range read with %+v: got %d pairs", o, len(pairs))
		}
		bytes += len(kv.Key) + len(kv.Value)
	}
	return nil
}

// commitLane commits on both sides. If the result on the driver is unknown, a mark
// among the writes tells it.
func (l *lockstep) commitLane(pair *lane) error {
	l.commits++
	mark := l.prefixedKey(fmt.Sprintf("\xff\xff\xff\xffmark%d", l.commits))
	if pair.writes && l.faulty {
		pair.tx.Set(mark, nil)
		pair.reference.Set(mark, nil)
	}

	err := pair.tx.Commit(l.ctx)
	switch {
	case errors.Is(err, store.ErrTimedOut) && l.faulty:
		return errOpenEnd
	case errors.Is(err, store.ErrUnknownResult) && l.faulty:
		done, markErr := l.isMarked(mark)
		if markErr != nil {
			return markErr
		}
		if !done {
			return nil
		}
	case err != nil && store.Retryable(err):
		return l.checkConflict(pair, err)
	case err != nil:
		return err
	}

	if err := pair.reference.Commit(l.ctx); err != nil {
		return fmt.Errorf("commit succeeded, want: %v", err)
	}
	return nil
}

func (l *lockstep) isMarked(mark []byte) (done bool, err error) {
	err = store.NewDB(l.store, store.Config{MaxBackoff: maxBackoff}).View(l.ctx, func(tx store.Tx) error {
		value, err := tx.Get(l.ctx, mark)
		done = value != nil
		return err
	})
	return done, err
}

// checkConflict checks a commit that failed without writing.
func (l *lockstep) checkConflict(pair *lane, err error) error {
	if l.tolerant && pair.writes {
		return nil
	}
	want := pair.reference.Commit(l.ctx)
	if !errors.Is(err, store.ErrConflict) || !errors.Is(want, store.ErrConflict) {
		return fmt.Errorf("commit: got %v, want %v", err, want)
	}
	return nil
}

// compareContents compares the whole contents.
func (l *lockstep) compareContents() error {
	var got, want []store.KeyValue
	err := store.NewDB(l.store, store.Config{MaxBackoff: maxBackoff}).View(l.ctx, func(tx store.Tx) (err error) {
		got, _, err = tx.GetRange(l.ctx, store.Prefixed([]byte(l.prefix)), store.RangeOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("contents: %w", err)
	}

	tx, err := l.reference.Begin(l.ctx)
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	defer tx.Discard()

	want, _, err = tx.GetRange(l.ctx, store.Prefixed([]byte(l.prefix)), store.RangeOptions{})
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}

	return compareValues("contents", got, want)
}

func (l *lockstep) discardLanes() {
	for _, pair := range l.lanes {
		if pair != nil {
			pair.discard()
		}
	}
}

func (p *lane) discard() {
	p.tx.Discard()
	p.reference.Discard()
}

func compareValues[T any](what string, got, want T) error {
	if d := cmp.Diff(want, got); d != "" {
		return fmt.Errorf("%s differ (-want +got):\n%s", what, d)
	}
	return nil
}
