package wire

import "github.com/coditect/mapreduce/api/protocol"

// Sizes on which both ends agree, in bytes.
//
// A server takes less than a client does: small messages bound what a stranger
// can make it hold, since a message of empty parts takes some hundred times its
// size in memory. Nothing that a client or a worker sends needs more: documents
// and blobs come in parts, and session messages are split. A client chose its
// server, and gets lists that grow with its own job.
const (
	MaxRequest = 8 << 20           // of a message to a server
	MaxReply   = 64 << 20          // of a message to a client or worker
	SplitSize  = 4 << 20           // above which messages of a session are split, and pages shortened
	PartSize   = protocol.PartSize // of the content that a part of a document or of a blob carries
)
