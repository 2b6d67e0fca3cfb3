// Package parts sends what is too large for one message in several, and puts it together on the other side:
// documents in pieces, blobs in parts, messages of a worker's session, and plans.
//
// What comes out is what went in, in its order, and no message is larger than both ends agree on (wire.PartSize,
// wire.SplitSize) unless a single thing is. What a message says is package wire's; this one must not import
// what is on either side of the wire, nor anything of connections.
package parts
