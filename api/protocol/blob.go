package protocol

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// PartSize bounds one part of a blob, or of a document that is submitted, in
// bytes.
const PartSize = 256 << 10

// Blobs carries bytes between a worker and an orchestrator, apart from the
// stream of the session: neither can delay the other. Both methods may be called
// concurrently. An orchestrator bounds the transfers of a session that go on at
// once, and refuses more as errs.Exhausted with errs.Error.RetryAfter.
type Blobs interface {
	// GetBlob passes the bytes of a blob to take, in order. A part is valid only
	// during the call. These things might happen:
	//  1. nil: all bytes of the range came, and their hash is right;
	//  2. errs.Unavailable, Aborted, Exhausted or Deadline: ask again, for the
	//     range that is still missing;
	//  3. errs.Precondition: the session does not hold the attempt;
	//  4. errs.NotFound: there is no such blob;
	//  5. errs.DataLoss: the blob is damaged where it is stored.
	GetBlob(ctx context.Context, q *BlobRequest, take func(part []byte) error) error

	// PutBlob stores the bytes that next returns until next returns io.EOF, and
	// returns how much of the blob is stored. Its outcomes are those of GetBlob.
	// After an error the caller calls PutBlob with an empty next to learn how much
	// is stored, and continues from there.
	PutBlob(ctx context.Context, q *BlobRequest, next func() ([]byte, error)) (*BlobStored, error)
}

// A BlobRequest says what is transferred, and for whom.
type BlobRequest struct {
	Held
	Session mapreduce.SessionID // that holds the attempt
	Blob    Blob
}

// A BlobKind says what a blob is.
type BlobKind uint8

// The kinds of blobs.
const (
	BlobUnknown      BlobKind = iota
	BlobText                  // the text of the document that the unit works on
	BlobInputs                // the inputs of the unit, each with a header
	BlobReferred              // records that inputs only name, encoded as inputs are
	BlobJournal               // the journal of the unit, as Assignment.Journal; what is put are entries that follow
	BlobAnswer                // what a model answered, by the hash of the request
	BlobOutput                // the output of the attempt; it can only be put
	BlobEvidence              // the text of evidence of the unit, by Blob.Evidence
	BlobEvidenceList          // all evidence of the unit, as a JSON list of Evidence; it can only be got
	BlobOriginal              // the document as it was submitted that the unit's text was read from; it can only be got
	BlobLine                  // the Line of the unit, as JSON; it can only be put
	BlobLineReply             // the LineReply to it, as JSON, by its key; it can only be got
	BlobBatches               // the batches that the session is to see to, as a JSON list of BatchOrder; it can only be got
	BlobBatchLines            // the lines of a batch, each a BatchLine as JSON; they can only be got
	BlobBatchReport           // a BatchReport as JSON; it can only be put
	BlobWakeAnswer            // the answer of the call that woke the unit, if it is too large for a message; it can only be got
)

// OfBatch reports whether a blob is of a batch that a session sees to, or of all of them: for these it
// holds no attempt.
func (k BlobKind) OfBatch() bool {
	return k == BlobBatches || k == BlobBatchLines || k == BlobBatchReport
}

// A Blob names bytes that are too large for a message.
type Blob struct {
	Kind   BlobKind
	Key    []byte // of BlobAnswer and BlobLineReply: SHA-256 of all that decides the answer
	SHA256 []byte // of all of it; empty if that is not known beforehand
	Length int64  // bytes of all of it; 0 if that is not known beforehand

	// Start and End are the range that is meant, [Start, End). End 0 is the end of
	// the blob. What is put begins at Start.
	Start, End int64

	// FirstEntry is, of BlobJournal that is put, the number of its first entry; of
	// BlobEvidence that is put, its number. Both count from 0. Of BlobBatchLines and
	// BlobBatchReport it is the number of the batch.
	FirstEntry int
	// Evidence is, of BlobEvidence, which it is: its Document of one that is got. One that
	// is put has all fields, and those that follow from the text are checked.
	Evidence *mapreduce.Evidence
}

// BlobStored says how much of a blob is stored.
type BlobStored struct {
	Length int64  // of its first bytes
	SHA256 []byte // of the blob, once all of it is stored
}

// MaxAnswer bounds an answer that jobs share, in bytes: one transaction writes
// it.
const MaxAnswer = 512 << 10

// Bounds of the journal of a unit.
const (
	MaxJournalKey     = 512       // bytes of the key of an entry
	MaxJournalEntry   = 512 << 10 // bytes of an entry, encoded
	MaxJournalEntries = 4096      // entries of a journal
	MaxJournalBytes   = 4 << 20   // bytes of all of them
	MaxJournalAppend  = 640 << 10 // bytes of the entries that are put at once: one transaction writes them
)

// MaxWholeText is the longest text, in bytes, in which workers look for what does
// not stand in a unit's chunk of it: the text is held in memory, some thirty
// times over.
const MaxWholeText = 4 << 20
