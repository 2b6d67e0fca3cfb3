// Package payload has the encodings of what units read and make beside outputs: the
// documents that a unit reads which has several, the inputs of a reduce as they are
// streamed to it, what a document was parsed into, and the calls of models that travel
// with an output and that no reader of it sees.
//
// Nothing that is decoded is believed: each decoder bounds what it allocates, and says what
// is wrong. It is pure and imports api/mapreduce, the stored messages and internal/text/layout
// alone.
package payload
