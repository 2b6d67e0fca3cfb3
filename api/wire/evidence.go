package wire

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

func encodeEvidence(e *mapreduce.Evidence) *pb.Evidence {
	if e == nil {
		return nil
	}
	return &pb.Evidence{
		DocumentId: validText(string(e.Document)), Uri: validText(e.URI), Title: validText(e.Title),
		Tool: validText(e.Tool), MediaType: validText(e.Media), RetrieveTime: encodeTime(e.Retrieved),
		Sha256: e.SHA256, SizeBytes: e.Bytes, CharCount: e.Characters, Metadata: textMap(e.Metadata),
	}
}

// decodeEvidence refuses what cannot be the hash or the length of a text. The bounds of
// evidence are those of Evidence.Check.
func decodeEvidence(d *decoder, p *pb.Evidence) mapreduce.Evidence {
	return mapreduce.Evidence{
		Document: mapreduce.DocumentID(d.decodeName("document_id", p.GetDocumentId(), MaxNames)),
		URI:      p.GetUri(), Title: p.GetTitle(), Tool: p.GetTool(), Media: p.GetMediaType(),
		Retrieved:  decodeTime(p.GetRetrieveTime()),
		SHA256:     d.decodeHash("sha256", p.GetSha256()),
		Bytes:      d.decodeCount64("size_bytes", p.GetSizeBytes()),
		Characters: d.decodeCount64("char_count", p.GetCharCount()),
		Metadata:   p.GetMetadata(),
	}
}
