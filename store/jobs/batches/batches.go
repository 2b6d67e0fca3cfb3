// Package batches keeps the calls of models that go by batch: the requests of parked units, the batches
// at vendors that they are put together in, and what became of them.
//
// What always holds, and what keeps it:
//
//  1. A request is paid for once. While a line is open its unit can put no other, and no attempt asks
//     the model; what a batch made of it is settled, kept, and taken off its batch in one transaction,
//     so the second report of it finds nothing to settle.
//  2. A batch is made once. Its mark is stored before anybody begins to create it, and so is that
//     somebody begins; its vendor's id is stored before it is asked how far it is. Whoever finds a batch
//     that was begun looks for its mark at the vendor, and creates it again only when the vendor has had
//     the time to show it and has none.
//  3. One worker sees to a batch: the session that its record names. It is given to another only when
//     that session is dead, by the same record that ends its claims. A report of any other session
//     changes nothing.
//  4. Every line ends in exactly one of the outcomes of protocol.LineOutcome, and a batch is gone only
//     when all of its lines have.
//  5. What a line may cost at most stays reserved from the end of the attempt that put it until it is
//     settled, in the grant of the node that had reserved it, whoever claims its unit meanwhile.
//  6. A batch is of one job: what is cancelled or deleted with a job takes nothing from another.
//     Of a job that is removed the batches are left behind that their vendors may have: until they have
//     ended a session sees to each, which cancels it.
//  7. A batch gets lines only until a session has it. Of those that get some there is at most one for
//     each model; it has its lines from the transaction on that takes them off those that wait.
//  8. What the batches of an account take of the limits of its vendor is never more than was said of these when the last
//     of them was begun, unless one alone is. It is taken by the transaction that says that a batch is begun, and given back
//     by that which says that its vendor does not have it, or has it no more. What is taken otherwise, as a server has ended
//     the batch that knows nothing of this, FreeRooms gives back.
//  9. A line that is to be asked in real time for a deadline is answered with that only once no batch can: it was
//     in none, or its batch has ended, by which its vendor has said that it will not charge it. A batch that
//     is being ended gets no more lines, and stays so.
//  10. No unit that a resume makes anew has a line. One that no vendor has is taken back for it, and the resume is
//     refused while another is open.
//
// Which lines go together is decided by nextGroup, which reads nothing.
package batches

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A Store keeps calls that go by batch.
type Store struct {
	db *records.DB
	*records.Records
	nodes nodes.Records
}

// New returns the operations on the records of db.
func New(db *records.DB) *Store {
	return &Store{db, db.Records(), nodes.Records{Records: db.Records()}}
}

// PutLine stores a line of the unit whose attempt a session holds. The unit waits for it once it is
// parked with its key. The same line may be put again, whatever has become of it. It returns
// errs.Precondition if the session does not hold the attempt, or another line of the unit is open.
func (st *Store) PutLine(ctx context.Context, h protocol.Held, session mapreduce.SessionID, line *protocol.Line) error {
	sum := sha256.Sum256(line.Request)
	return st.db.Update(ctx, failpoint.Ask, func(tx store.Tx) error {
		u, err := st.Units.Read(ctx, tx, h.Job, h.Unit)
		if err != nil {
			return err
		}
		if !records.AttemptStands(u, h.Attempt) || u.Session != string(session) {
			return errs.New(errs.Precondition, "session %s does not hold attempt %d of unit %s", session, h.Attempt, h.Unit)
		}

		last := u.Line
		switch {
		case u.Line != nil && bytes.Equal(u.Line.Key, line.Key):
			return nil
		case u.Line != nil && !u.Line.Answered:
			return &errs.Error{Kind: errs.Precondition, Reason: errs.LineOpen, Message: fmt.Sprintf("unit %s waits for a batch to answer another request", h.Unit)}
		case u.Line != nil: // whose reply was used, or is of no use any more
			u.Line = nil
			st.Units.Set(tx, h.Job, u)
		}

		// Most units have asked nothing before: what is not there costs nothing.
		had, err := records.Read(ctx, tx, st.Keys.Batches(h.Job).Asked(h.Unit), new(storagev1.Asked))
		if err != nil {
			return err
		}
		if had {
			st.Units.ClearAsked(tx, h.Job, h.Unit, last)
		}
		st.Units.SetAsked(tx, h.Job, h.Unit, line.Request)
		tx.Set(st.Keys.Batches(h.Job).Asked(h.Unit), records.Encode(&storagev1.Asked{
			Key: line.Key, Provider: line.Provider, Model: line.Model, Size: line.Size, Length: int64(len(line.Request)), Sha256: sum[:],
			MostLines: line.MostLines, MostBytes: line.MostBytes, Fewest: line.Fewest, Tokens: line.Tokens,
		}))
		return nil
	})
}

// Reply returns what became of the line of a unit that has a key, encoded. These things might happen:
//  1. nil: a protocol.LineReply as JSON;
//  2. errs.Unavailable: a batch is to answer it;
//  3. errs.NotFound: the unit waits for no such line;
//  4. errs.DataLoss: what is stored is not that which was.
func (st *Store) Reply(ctx context.Context, h protocol.Held, key []byte) (data []byte, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		u, err := st.Units.Read(ctx, tx.Snapshot(), h.Job, h.Unit)
		switch {
		case err != nil:
			return err
		case u == nil || u.Line == nil || !bytes.Equal(u.Line.Key, key):
			return errs.New(errs.NotFound, "unit %s waits for no such line", h.Unit)
		case !u.Line.Answered:
			return errs.New(errs.Unavailable, "the line of unit %s is not answered yet", h.Unit)
		}

		all := st.Keys.Batches(h.Job).ReplyChunks(h.Unit)
		if data, err = readChunks(ctx, tx, all); err != nil {
			return err
		}
		if sum := sha256.Sum256(data); int64(len(data)) != u.Line.Length || !bytes.Equal(sum[:], u.Line.Sha256) {
			return records.CorruptError(all.Begin, "what became of the line of unit %s is not the %d bytes that were stored", h.Unit, u.Line.Length)
		}
		return nil
	})
	return data, err
}

func readChunks(ctx context.Context, tx store.Tx, all store.Range) ([]byte, error) {
	pairs, _, err := tx.Snapshot().GetRange(ctx, all, store.RangeOptions{})
	var data []byte
	for _, kv := range pairs {
		data = append(data, kv.Value...)
	}
	return data, err
}

// Batching returns the jobs that have batches, or lines that wait for one.
func (st *Store) Batching(ctx context.Context) (ids []mapreduce.JobID, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		ids = nil
		pairs, _, err := tx.Snapshot().GetRange(ctx, st.Keys.AllBatches().Batching(), store.RangeOptions{})
		if err != nil {
			return err
		}

		for _, kv := range pairs {
			_, rest, err := st.Keys.Last(kv.Key)
			if err != nil {
				return err
			}
			ids = append(ids, mapreduce.JobID(rest.Text()))
		}
		return nil
	})
	return ids, err
}

// A Standing is how the batches of a job stand.
type Standing struct {
	State   mapreduce.JobState
	Tenant  mapreduce.TenantID
	Waiting int   // lines that are in no batch, or in one that may take more, as far as they are counted
	Coming  bool  // units of the job run, or wait to
	Open    int64 // lines that wait, in a batch that is not being ended or in none
	Batches []Held
}

// A Held is a batch, and the living session that sees to it; empty if none does.
type Held struct {
	protocol.Batch
	Session mapreduce.SessionID
	Filling bool // lines may be added
}

// Look returns how the batches of a job stand. A job without any is taken off the list of those that
// have some.
func (st *Store) Look(ctx context.Context, id mapreduce.JobID) (*Standing, error) {
	var s *Standing
	err := st.db.View(ctx, func(tx store.Tx) (err error) {
		s, err = st.look(ctx, tx.Snapshot(), id)
		return err
	})
	if err != nil || s.Waiting > 0 || len(s.Batches) > 0 {
		return s, err
	}
	return s, (withdrawals{st}).unlist(ctx, id)
}

func (st *Store) look(ctx context.Context, r store.Reader, id mapreduce.JobID) (*Standing, error) {
	ctl, err := st.Jobs.Control(ctx, r, id)
	if err != nil {
		return nil, err
	}

	s := &Standing{State: mapreduce.JobState(ctl.State), Tenant: mapreduce.TenantID(ctl.Tenant)}
	waits, _, err := r.GetRange(ctx, st.Keys.Batches(id).AllBatchable(), store.RangeOptions{Limit: pageLines})
	if err != nil {
		return nil, err
	}
	s.Waiting = len(waits)

	all, err := st.readBatches(ctx, r, id)
	if err != nil {
		return nil, err
	}
	living, err := st.livingHolders(ctx, r, all)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		h := Held{Batch: describe(id, b), Filling: isFilling(b)}
		if h.Filling {
			s.Waiting += int(b.Lines)
		}
		if living[b.Holder] {
			h.Session = mapreduce.SessionID(b.Holder)
		}
		s.Batches = append(s.Batches, h)
	}

	// Whether more lines may come soon: those of units that back off may take long.
	counts, err := st.Jobs.Counters(ctx, r, id)
	if err != nil {
		return nil, err
	}
	ready, _, err := r.GetRange(ctx, st.Keys.Queues(id).AllReady(), store.RangeOptions{Limit: 1})
	s.Coming = len(ready) > 0 || counts.SumLevels(keys.Running) > 0
	s.Open = counts.SumLevels(keys.LinesOpen) - endingLines(all)
	return s, err
}

// Now returns the batches of a job as they are stored, each with the session that its record names, whether
// that lives or not.
func (st *Store) Now(ctx context.Context, id mapreduce.JobID) (all []Held, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		all = nil
		stored, err := st.readBatches(ctx, tx.Snapshot(), id)
		for _, b := range stored {
			all = append(all, Held{Batch: describe(id, b), Session: mapreduce.SessionID(b.Holder), Filling: isFilling(b)})
		}
		return err
	})
	return all, err
}

// livingHolders returns the sessions that see to batches and have not been declared dead: few, however many
// batches there are.
func (st *Store) livingHolders(ctx context.Context, r store.Reader, all []*storagev1.Batch) (map[string]bool, error) {
	living := make(map[string]bool)
	for _, b := range all {
		if _, known := living[b.Holder]; known {
			continue
		}

		s, err := st.session(ctx, r, mapreduce.SessionID(b.Holder))
		if err != nil {
			return nil, err
		}
		living[b.Holder] = s.GetNode() != ""
	}
	return living, nil
}

func (st *Store) readBatches(ctx context.Context, r store.Reader, id mapreduce.JobID) ([]*storagev1.Batch, error) {
	pairs, _, err := r.GetRange(ctx, st.Keys.Batches(id).All(), store.RangeOptions{})
	if err != nil {
		return nil, err
	}

	all := make([]*storagev1.Batch, len(pairs))
	for i, kv := range pairs {
		all[i] = new(storagev1.Batch)
		if err := records.Decode(kv.Key, kv.Value, all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// isFilling reports whether lines may be added to a batch. A version that fills no batches leaves the mark of it when
// it gives one to a session; the vendor may have that since.
func isFilling(b *storagev1.Batch) bool {
	return b.Filling && b.Holder == "" && !b.Ending && protocol.BatchState(b.State) == protocol.BatchPlanned
}

// describe returns a batch as others see it.
func describe(id mapreduce.JobID, b *storagev1.Batch) protocol.Batch {
	out := protocol.Batch{
		Job: id, Number: b.Number, Mark: b.Mark, Provider: b.Provider, Model: b.Model, Lines: b.Lines, Tokens: b.Tokens, State: protocol.BatchState(b.State),
		Vendor: b.Id, Answered: b.Answered, Done: b.Done, Tries: b.Tries, Trouble: b.Trouble, Ending: b.Ending,
	}
	if b.CreatedMicros > 0 {
		out.Begun = time.UnixMicro(b.CreatedMicros).UTC()
	}
	return out
}

// unlist takes a job off the list of those with batches, unless it has some now.
func (st withdrawals) unlist(ctx context.Context, id mapreduce.JobID) error {
	return st.db.UpdateQuietly(ctx, func(tx store.Tx) error {
		if _, err := st.Jobs.Control(ctx, tx, id); err != nil {
			return err
		}
		for _, r := range []store.Range{st.Keys.Batches(id).AllBatchable(), st.Keys.Batches(id).All()} {
			pairs, _, err := tx.GetRange(ctx, r, store.RangeOptions{Limit: 1})
			if err != nil || len(pairs) > 0 {
				return err
			}
		}
		tx.Clear(st.Keys.Batches(id).Batching())
		return nil
	})
}

// Lines visits the lines of a batch that have no outcome yet, in order. It returns errs.Precondition if the
// session does not see to the batch: what they ask has the documents of the job. They are read in pages, as a
// transaction ends before all of a large batch are.
func (st *Store) Lines(ctx context.Context, id mapreduce.JobID, number int64, session mapreduce.SessionID, visit func(protocol.BatchLine) error) error {
	rest := st.Keys.Batches(id).Lines(number)
	for {
		lines, more, err := st.readLines(ctx, id, number, session, rest)
		if err != nil {
			return err
		}

		for _, kv := range lines {
			i, err := st.numberOf(kv.Key)
			if err != nil {
				return err
			}
			request, err := st.request(ctx, id, mapreduce.UnitID(kv.Value))
			if err != nil {
				return err
			}
			if err := visit(protocol.BatchLine{Number: i, Request: json.RawMessage(request)}); err != nil {
				return err
			}
		}

		if !more || len(lines) == 0 {
			return nil
		}
		rest.Begin = store.Single(lines[len(lines)-1].Key).End
	}
}

// readLines returns the first lines of a range of those of a batch, and whether there are more, if the session sees
// to the batch.
func (st *Store) readLines(ctx context.Context, id mapreduce.JobID, number int64, session mapreduce.SessionID, all store.Range) (lines []store.KeyValue, more bool, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		var b storagev1.Batch
		found, err := records.Read(ctx, tx.Snapshot(), st.Keys.Batches(id).Batch(number), &b)
		if err != nil {
			return err
		}
		if !found || b.Holder != string(session) {
			return errs.New(errs.Precondition, "session %s does not see to batch %d of job %s", session, number, id)
		}
		lines, more, err = tx.Snapshot().GetRange(ctx, all, store.RangeOptions{Limit: pageLines})
		return err
	})
	return lines, more, err
}

// numberOf returns which line of its batch a key names.
func (st *Store) numberOf(key []byte) (int64, error) {
	_, rest, err := st.Keys.Last(key)
	if err != nil {
		return 0, err
	}
	rest.Skip() // the job
	rest.Skip() // the batch
	n := rest.Int()
	return n, rest.Err()
}

// request returns what a unit has asked.
func (st *Store) request(ctx context.Context, id mapreduce.JobID, unit mapreduce.UnitID) (data []byte, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		var asked storagev1.Asked
		key := st.Keys.Batches(id).Asked(unit)
		if _, err := records.Read(ctx, tx.Snapshot(), key, &asked); err != nil {
			return err
		}
		if data, err = readChunks(ctx, tx, st.Keys.Batches(id).AskedChunks(unit)); err != nil {
			return err
		}
		if sum := sha256.Sum256(data); int64(len(data)) != asked.Length || !bytes.Equal(sum[:], asked.Sha256) {
			return records.CorruptError(key, "the request of unit %s is not the %d bytes that were stored", unit, asked.Length)
		}
		return nil
	})
	return data, err
}

// Of returns the batches that units of a job wait in, by unit; the zero Batch but for its provider of one
// that is in none yet. Units that wait for no batch are left out.
func (st *Store) Of(ctx context.Context, id mapreduce.JobID, units []mapreduce.UnitID) (map[mapreduce.UnitID]protocol.Batch, error) {
	of := st.Keys.Batches(id)
	ks := make([][]byte, len(units))
	for i, u := range units {
		ks[i] = of.Asked(u)
	}

	found := make(map[mapreduce.UnitID]protocol.Batch)
	err := st.db.View(ctx, func(tx store.Tx) error {
		clear(found)
		r := tx.Snapshot()
		values, err := r.GetAll(ctx, ks)
		if err != nil {
			return err
		}
		all, err := st.readBatches(ctx, r, id)
		if err != nil {
			return err
		}
		byNumber := make(map[int64]protocol.Batch, len(all))
		for _, b := range all {
			byNumber[b.Number] = describe(id, b)
		}

		for i, v := range values {
			var asked storagev1.Asked
			if v == nil {
				continue
			}
			if err := records.Decode(ks[i], v, &asked); err != nil {
				return err
			}
			b, ok := byNumber[asked.Batch]
			if !ok {
				b.Provider = asked.Provider
			}
			found[units[i]] = b
		}
		return nil
	})
	return found, err
}
