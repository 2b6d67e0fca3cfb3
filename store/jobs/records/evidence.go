package records

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

// StoredEvidence returns evidence as it is stored.
func StoredEvidence(e *mapreduce.Evidence) *storagev1.Evidence {
	out := &storagev1.Evidence{
		Document: string(e.Document), Uri: e.URI, Title: e.Title, Tool: e.Tool, MediaType: e.Media, Sha256: e.SHA256,
		Bytes: e.Bytes, Characters: e.Characters, Metadata: e.Metadata,
	}
	if !e.Retrieved.IsZero() {
		out.RetrievedMicros = e.Retrieved.UnixMicro()
	}
	return out
}

// EvidenceFrom returns stored evidence.
func EvidenceFrom(e *storagev1.Evidence) mapreduce.Evidence {
	out := mapreduce.Evidence{
		Document: mapreduce.DocumentID(e.GetDocument()), URI: e.GetUri(), Title: e.GetTitle(), Tool: e.GetTool(), Media: e.GetMediaType(),
		SHA256: e.GetSha256(), Bytes: e.GetBytes(), Characters: e.GetCharacters(), Metadata: e.GetMetadata(),
	}
	if e.GetRetrievedMicros() != 0 {
		out.Retrieved = time.UnixMicro(e.RetrievedMicros).UTC()
	}
	return out
}
