package result

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/text/layout"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Writer encodes the parts of a result as they are stored, in blocks of one size. It
// holds one block.
type Writer struct {
	size  int
	store func(block []byte) error
	block []byte
	sum   hash.Hash
	n     int64
}

// NewWriter returns a writer that calls store with each block of size bytes that is
// full. It must not keep the block.
func NewWriter(size int, store func(block []byte) error) *Writer {
	return &Writer{size: size, store: store, sum: sha256.New()}
}

// Add takes the next part, which is not the job.
func (w *Writer) Add(part *mapreduce.ResultPart) error {
	b, err := proto.Marshal(storedPart(part))
	if err != nil {
		return errs.New(errs.DataLoss, "a part of the result cannot be stored: %v", err)
	}
	if err := w.write(binary.AppendUvarint(nil, uint64(len(b)))); err != nil {
		return err
	}
	return w.write(b)
}

// write adds bytes, and stores the blocks that are full while more follow.
func (w *Writer) write(b []byte) error {
	w.n += int64(len(b))
	w.sum.Write(b)

	for len(b) > 0 {
		if len(w.block) == w.size {
			if err := w.store(w.block); err != nil {
				return err
			}
			w.block = w.block[:0]
		}
		n := min(len(b), w.size-len(w.block))
		w.block, b = append(w.block, b[:n]...), b[n:]
	}
	return nil
}

// Rest returns the last block, which was not stored, and the length and the SHA-256
// of the whole.
func (w *Writer) Rest() (block []byte, length int64, sum []byte) {
	return w.block, w.n, w.sum.Sum(nil)
}

// A Reader decodes a stored result from its bytes, whichever way these are cut. It
// holds one part, and what was read of the next. A part is passed on when the one
// behind it is there, and the last by Close: so that who reads can check the whole
// before.
type Reader struct {
	sink func(part *mapreduce.ResultPart, at int64) error
	rest []byte
	from int64 // where rest begins in the result

	last   *mapreduce.ResultPart
	lastAt int64
}

// NewReader returns a reader that passes the parts on to sink, each with where it begins in the result. The
// first byte that is written is the first of a part, and stands at an offset in the result.
func NewReader(from int64, sink func(part *mapreduce.ResultPart, at int64) error) *Reader {
	return &Reader{sink: sink, from: from}
}

// maxStoredPart bounds one part, in bytes: a length that is larger is damage.
const maxStoredPart = protocol.MaxOutput

// Write takes the next bytes.
func (r *Reader) Write(b []byte) error {
	r.rest = append(r.rest, b...)
	at := 0
	for at < len(r.rest) {
		size, n := binary.Uvarint(r.rest[at:])
		if n < 0 || size > maxStoredPart {
			return errStored
		}

		// The rest of the part comes with the next bytes.
		if n == 0 || uint64(len(r.rest)-at-n) < size {
			break
		}

		var stored storagev1.ResultPart
		if err := proto.Unmarshal(r.rest[at+n:at+n+int(size)], &stored); err != nil {
			return errStored
		}
		if err := r.pass(partOf(&stored), r.from+int64(at)); err != nil {
			return err
		}
		at += n + int(size)
	}

	r.rest = r.rest[:copy(r.rest, r.rest[at:])]
	r.from += int64(at)
	return nil
}

// pass passes on the part before next, which begins at an offset.
func (r *Reader) pass(next *mapreduce.ResultPart, at int64) (err error) {
	if r.last != nil {
		err = r.sink(r.last, r.lastAt)
	}
	r.last, r.lastAt = next, at
	return err
}

// Close passes on the last part, which has to be the summary.
func (r *Reader) Close() error {
	if len(r.rest) > 0 || r.last == nil || r.last.Summary == nil {
		return errStored
	}
	return r.pass(nil, r.from)
}

var errStored = errs.New(errs.DataLoss, "the stored bytes are not a result")

// storedPart returns a part as it is stored.
func storedPart(p *mapreduce.ResultPart) *storagev1.ResultPart {
	switch {
	case p.Citation != nil:
		return &storagev1.ResultPart{Part: &storagev1.ResultPart_Citation{Citation: StoredCitation(p.Citation)}}
	case p.Source != nil:
		return &storagev1.ResultPart{Part: &storagev1.ResultPart_Source{Source: &storagev1.SourceUnit{
			Unit: string(p.Source.Unit), Errors: p.Source.Errors, Document: string(p.Source.Document), Lasting: p.Source.Lasting,
		}}}
	case p.Summary != nil:
		return &storagev1.ResultPart{Part: &storagev1.ResultPart_Summary{Summary: storedSummary(p.Summary)}}
	case p.Conflict != nil:
		return &storagev1.ResultPart{Part: &storagev1.ResultPart_Conflict{Conflict: p.Conflict}}
	case p.Dropped != nil:
		return &storagev1.ResultPart{Part: &storagev1.ResultPart_Dropped{Dropped: p.Dropped}}
	case p.Removed != nil:
		return &storagev1.ResultPart{Part: &storagev1.ResultPart_Removed{Removed: p.Removed}}
	case p.Evidence != nil:
		return &storagev1.ResultPart{Part: &storagev1.ResultPart_Evidence{Evidence: &storagev1.CitedEvidence{
			Unit: string(p.Evidence.Unit), Evidence: records.StoredEvidence(&p.Evidence.Evidence),
		}}}
	case p.Report != nil:
		return &storagev1.ResultPart{Part: &storagev1.ResultPart_Report{Report: p.Report}}
	}
	return &storagev1.ResultPart{Part: &storagev1.ResultPart_Record{Record: p.Record}, RecordId: string(p.RecordID)}
}

// StoredCitation returns a citation as it is stored.
func StoredCitation(c *mapreduce.Citation) *storagev1.ShownCitation {
	return &storagev1.ShownCitation{
		Ref: c.Ref, Before: c.Before, After: c.After, Via: c.Via, Location: layout.StoredLocation(c.Location), Label: c.Label, Uri: c.URI,
		Citation: &storagev1.Citation{
			Document: string(c.Document), Unit: string(c.Unit), Start: c.Start, End: c.End, ByteStart: c.ByteStart, ByteEnd: c.ByteEnd,
			Quote: c.Quote, Grade: c.Grade, Outside: c.Outside, Others: int64(c.Others), Coverage: c.Coverage, Density: c.Density,
		},
	}
}

func storedSummary(s *mapreduce.Summary) *storagev1.Summary {
	out := &storagev1.Summary{Single: s.Single, Deduplication: s.Deduplication, Statistics: s.Statistics, Cascades: s.Cascades, MoreNotes: s.MoreNotes}
	if c := s.Reviewed; c != nil {
		out.Reviewed = &storagev1.ReviewCount{Accepted: c.Accepted, Corrected: c.Corrected, Rejected: c.Rejected, Absent: c.Absent}
	}

	for _, n := range s.Notes {
		out.Notes = append(out.Notes, &storagev1.DocumentNote{Document: string(n.Document), Note: n.Note})
	}
	for _, d := range s.Skipped {
		out.Skipped = append(out.Skipped, &storagev1.SkippedDocument{Document: string(d.Document), Reason: d.Reason})
	}
	for _, b := range s.Broken {
		out.Broken = append(out.Broken, &storagev1.BrokenConstraint{Field: b.Field, Constraint: b.Constraint, Records: b.Records})
	}
	return out
}

// partOf returns a stored part.
func partOf(p *storagev1.ResultPart) *mapreduce.ResultPart {
	switch v := p.Part.(type) {
	case *storagev1.ResultPart_Citation:
		return &mapreduce.ResultPart{Citation: ShownCitation(v.Citation)}
	case *storagev1.ResultPart_Source:
		return &mapreduce.ResultPart{Source: &mapreduce.Source{
			Unit: mapreduce.UnitID(v.Source.Unit), Errors: v.Source.Errors, Document: mapreduce.DocumentID(v.Source.Document), Lasting: v.Source.Lasting,
		}}
	case *storagev1.ResultPart_Summary:
		return &mapreduce.ResultPart{Summary: summaryOf(v.Summary)}
	case *storagev1.ResultPart_Conflict:
		return &mapreduce.ResultPart{Conflict: v.Conflict}
	case *storagev1.ResultPart_Dropped:
		return &mapreduce.ResultPart{Dropped: v.Dropped}
	case *storagev1.ResultPart_Removed:
		return &mapreduce.ResultPart{Removed: v.Removed}
	case *storagev1.ResultPart_Evidence:
		return &mapreduce.ResultPart{Evidence: &mapreduce.CitedEvidence{
			Unit: mapreduce.UnitID(v.Evidence.GetUnit()), Evidence: records.EvidenceFrom(v.Evidence.GetEvidence()),
		}}
	case *storagev1.ResultPart_Report:
		return &mapreduce.ResultPart{Report: v.Report}
	}
	return &mapreduce.ResultPart{Record: p.GetRecord(), RecordID: mapreduce.RecordID(p.RecordId)}
}

// ShownCitation returns a stored citation.
func ShownCitation(s *storagev1.ShownCitation) *mapreduce.Citation {
	c := s.GetCitation()
	return &mapreduce.Citation{
		Ref: s.Ref, Before: s.Before, After: s.After, Via: s.Via, Location: layout.LocationOf(s.Location), Label: s.Label, URI: s.Uri,
		Document: mapreduce.DocumentID(c.GetDocument()), Unit: mapreduce.UnitID(c.GetUnit()),
		Start: c.GetStart(), End: c.GetEnd(), ByteStart: c.GetByteStart(), ByteEnd: c.GetByteEnd(),
		Quote: c.GetQuote(), Grade: c.GetGrade(), Outside: c.GetOutside(), Others: int(c.GetOthers()),
		Coverage: c.GetCoverage(), Density: c.GetDensity(),
	}
}

func summaryOf(s *storagev1.Summary) *mapreduce.Summary {
	out := &mapreduce.Summary{Single: s.Single, Deduplication: s.Deduplication, Statistics: s.Statistics, Cascades: s.Cascades, MoreNotes: s.MoreNotes}
	if c := s.Reviewed; c != nil {
		out.Reviewed = &mapreduce.ReviewCount{Accepted: c.Accepted, Corrected: c.Corrected, Rejected: c.Rejected, Absent: c.Absent}
	}

	for _, n := range s.Notes {
		out.Notes = append(out.Notes, mapreduce.DocumentNote{Document: mapreduce.DocumentID(n.Document), Note: n.Note})
	}
	for _, d := range s.Skipped {
		out.Skipped = append(out.Skipped, mapreduce.SkippedDocument{Document: mapreduce.DocumentID(d.Document), Reason: d.Reason})
	}
	for _, b := range s.Broken {
		out.Broken = append(out.Broken, mapreduce.BrokenConstraint{Field: b.Field, Constraint: b.Constraint, Records: b.Records})
	}
	return out
}
