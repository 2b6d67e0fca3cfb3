package wire

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// EncodeResultPart encodes one part of a result.
func EncodeResultPart(r *mapreduce.ResultPart) *pb.ResultPart {
	switch {
	case r.Job != nil:
		return &pb.ResultPart{Part: &pb.ResultPart_Job{Job: EncodeJob(r.Job)}}
	case r.Citation != nil:
		return &pb.ResultPart{Part: &pb.ResultPart_Citation{Citation: encodeCitation(r.Citation)}}
	case r.Source != nil:
		return &pb.ResultPart{Part: &pb.ResultPart_Source{Source: encodeSource(r.Source)}}
	case r.Summary != nil:
		return &pb.ResultPart{Part: &pb.ResultPart_Summary{Summary: encodeSummary(r.Summary)}}
	case r.Conflict != nil:
		return &pb.ResultPart{Part: &pb.ResultPart_Conflict{Conflict: encodeJSON(r.Conflict)}}
	case r.Dropped != nil:
		return &pb.ResultPart{Part: &pb.ResultPart_Dropped{Dropped: encodeJSON(r.Dropped)}}
	case r.Removed != nil:
		return &pb.ResultPart{Part: &pb.ResultPart_Removed{Removed: encodeJSON(r.Removed)}}
	case r.Report != nil:
		return &pb.ResultPart{Part: &pb.ResultPart_Report{Report: encodeJSON(r.Report)}}
	case r.Evidence != nil:
		return &pb.ResultPart{Part: &pb.ResultPart_Evidence{Evidence: &pb.CitedEvidence{
			UnitId: string(r.Evidence.Unit), Evidence: encodeEvidence(&r.Evidence.Evidence),
		}}}
	default:
		return &pb.ResultPart{Part: &pb.ResultPart_Record{Record: encodeJSON(r.Record)}, RecordId: string(r.RecordID)}
	}
}

// DecodeResultPart decodes one part of a result. It returns nil for a part of a
// kind that is newer than the reader, which is to be skipped.
func DecodeResultPart(p *pb.ResultPart) *mapreduce.ResultPart {
	switch v := p.GetPart().(type) {
	case *pb.ResultPart_Job:
		return &mapreduce.ResultPart{Job: DecodeJob(v.Job)}
	case *pb.ResultPart_Record:
		return &mapreduce.ResultPart{Record: decodeJSON(v.Record), RecordID: mapreduce.RecordID(p.GetRecordId())}
	case *pb.ResultPart_Citation:
		return &mapreduce.ResultPart{Citation: decodeCitation(v.Citation)}
	case *pb.ResultPart_Source:
		return &mapreduce.ResultPart{Source: &mapreduce.Source{
			Unit:   mapreduce.UnitID(v.Source.GetUnitId()),
			Errors: v.Source.GetErrors(), Document: mapreduce.DocumentID(v.Source.GetDocumentId()), Lasting: v.Source.GetLasting(),
		}}
	case *pb.ResultPart_Summary:
		return &mapreduce.ResultPart{Summary: decodeSummary(v.Summary)}
	case *pb.ResultPart_Conflict:
		return &mapreduce.ResultPart{Conflict: decodeJSON(v.Conflict)}
	case *pb.ResultPart_Dropped:
		return &mapreduce.ResultPart{Dropped: decodeJSON(v.Dropped)}
	case *pb.ResultPart_Removed:
		return &mapreduce.ResultPart{Removed: decodeJSON(v.Removed)}
	case *pb.ResultPart_Report:
		return &mapreduce.ResultPart{Report: decodeJSON(v.Report)}
	case *pb.ResultPart_Evidence:
		return &mapreduce.ResultPart{Evidence: &mapreduce.CitedEvidence{
			Unit: mapreduce.UnitID(v.Evidence.GetUnitId()), Evidence: decodeEvidence(new(decoder), v.Evidence.GetEvidence()),
		}}
	}
	return nil
}

func encodeCitation(c *mapreduce.Citation) *pb.Citation {
	return &pb.Citation{
		Ref:        c.Ref,
		DocumentId: string(c.Document),
		UnitId:     string(c.Unit),
		StartChar:  c.Start,
		EndChar:    c.End,
		StartByte:  c.ByteStart,
		EndByte:    c.ByteEnd,
		Quote:      validText(c.Quote),
		Grade:      c.Grade,
		Before:     validText(c.Before),
		After:      validText(c.After),
		Outside:    c.Outside,

		OtherPlaceCount: clampInt32(c.Others),
		Coverage:        c.Coverage,
		Density:         c.Density,
		Via:             validText(c.Via),
		Location:        encodeLocation(c.Location),
		Label:           validText(c.Label),
		Uri:             validText(c.URI),
	}
}

func decodeCitation(p *pb.Citation) *mapreduce.Citation {
	return &mapreduce.Citation{
		Ref:       p.GetRef(),
		Document:  mapreduce.DocumentID(p.GetDocumentId()),
		Unit:      mapreduce.UnitID(p.GetUnitId()),
		Start:     p.GetStartChar(),
		End:       p.GetEndChar(),
		ByteStart: p.GetStartByte(),
		ByteEnd:   p.GetEndByte(),
		Quote:     p.GetQuote(),
		Grade:     p.GetGrade(),
		Before:    p.GetBefore(),
		After:     p.GetAfter(),
		Outside:   p.GetOutside(),
		Others:    int(p.GetOtherPlaceCount()),
		Coverage:  p.GetCoverage(),
		Density:   p.GetDensity(),
		Via:       p.GetVia(),
		Location:  decodeLocation(p.GetLocation()),
		Label:     p.GetLabel(),
		URI:       p.GetUri(),
	}
}

func encodeSource(s *mapreduce.Source) *pb.Source {
	return &pb.Source{UnitId: string(s.Unit), Errors: validTexts(s.Errors), DocumentId: validText(string(s.Document)), Lasting: s.Lasting}
}

func encodeSummary(s *mapreduce.Summary) *pb.Summary {
	return &pb.Summary{
		Single:        s.Single,
		Deduplication: encodeJSON(s.Deduplication),
		Statistics:    encodeJSON(s.Statistics),
		Cascades:      encodeJSON(s.Cascades),
		Skipped:       encodeEach(s.Skipped, encodeSkipped),
		Broken: encodeEach(s.Broken, func(p *pb.BrokenConstraint, b *mapreduce.BrokenConstraint) {
			p.Field, p.Constraint, p.RecordCount = validText(b.Field), validText(b.Constraint), b.Records
		}),
		Notes: encodeEach(s.Notes, func(p *pb.DocumentNote, n *mapreduce.DocumentNote) {
			p.DocumentId, p.Note = string(n.Document), validText(n.Note)
		}),
		MoreNoteCount: s.MoreNotes,
		Reviewed:      encodeReviewed(s.Reviewed),
	}
}

func decodeSummary(p *pb.Summary) *mapreduce.Summary {
	return &mapreduce.Summary{
		Single:        p.GetSingle(),
		Deduplication: decodeJSON(p.GetDeduplication()),
		Statistics:    decodeJSON(p.GetStatistics()),
		Cascades:      decodeJSON(p.GetCascades()),
		Skipped:       convertEach(p.GetSkipped(), decodeSkipped),
		Broken: convertEach(p.GetBroken(), func(b *pb.BrokenConstraint) mapreduce.BrokenConstraint {
			return mapreduce.BrokenConstraint{Field: b.GetField(), Constraint: b.GetConstraint(), Records: b.GetRecordCount()}
		}),
		Notes: convertEach(p.GetNotes(), func(n *pb.DocumentNote) mapreduce.DocumentNote {
			return mapreduce.DocumentNote{Document: mapreduce.DocumentID(n.GetDocumentId()), Note: n.GetNote()}
		}),
		MoreNotes: p.GetMoreNoteCount(),
		Reviewed:  decodeReviewed(p.GetReviewed()),
	}
}

// EncodeFinding encodes one line of a check of the store.
func EncodeFinding(f mapreduce.Finding) *pb.Finding {
	return &pb.Finding{
		Severity: encodeChoice[pb.Severity](f.Severity),
		JobId:    string(f.Job),
		Key:      validText(f.Key),
		Message:  validText(f.Message),
	}
}

// DecodeFinding decodes one line of a check. What it cannot rank is wrong: an
// operator should look at it.
func DecodeFinding(p *pb.Finding) mapreduce.Finding {
	severity := mapreduce.Wrong
	if p.GetSeverity() == pb.Severity_SEVERITY_INFO {
		severity = mapreduce.Info
	}
	return mapreduce.Finding{
		Severity: severity,
		Job:      mapreduce.JobID(p.GetJobId()),
		Key:      p.GetKey(),
		Message:  p.GetMessage(),
	}
}

func encodeSkipped(p *pb.SkippedDocument, d *mapreduce.SkippedDocument) {
	p.DocumentId, p.Reason = string(d.Document), validText(d.Reason)
}

func decodeSkipped(p *pb.SkippedDocument) mapreduce.SkippedDocument {
	return mapreduce.SkippedDocument{Document: mapreduce.DocumentID(p.GetDocumentId()), Reason: p.GetReason()}
}
