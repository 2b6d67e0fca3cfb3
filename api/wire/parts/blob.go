package parts

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"iter"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/wire"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// split yields data cut into parts of at most wire.PartSize bytes. They share its
// bytes; of no data there is no part.
func split(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			n := min(len(data), wire.PartSize)
			if !yield(data[:n:n]) {
				return
			}
			data = data[n:]
		}
	}
}

// A Cutter cuts a blob into parts and computes its hash.
type Cutter struct {
	send func(*pb.BlobPart) error
	at   int64 // where the next part begins
	sum  hash.Hash
}

// NewCutter returns a cutter of what begins at a byte of a blob. It calls send
// with one part after the other; a part is valid only during the call.
func NewCutter(start int64, send func(*pb.BlobPart) error) *Cutter {
	return &Cutter{send: send, at: start, sum: sha256.New()}
}

// Add sends the next bytes of the blob.
func (c *Cutter) Add(data []byte) error {
	for part := range split(data) {
		c.sum.Write(part)
		if err := c.send(&pb.BlobPart{StartByte: c.at, Data: part}); err != nil {
			return err
		}
		c.at += int64(len(part))
	}
	return nil
}

// Sum returns the SHA-256 of all bytes so far.
func (c *Cutter) Sum() []byte { return c.sum.Sum(nil) }

// A Checker puts the parts of a blob in order: it refuses what does not follow
// on what came before.
type Checker struct {
	at  int64 // where the next part has to begin
	sum hash.Hash
}

// NewChecker returns a checker of parts that begin at a byte of a blob.
func NewChecker(start int64) *Checker {
	return &Checker{at: start, sum: sha256.New()}
}

// Add returns the bytes of the next part. No part at all has none.
func (c *Checker) Add(p *pb.BlobPart) ([]byte, error) {
	data := p.GetData()
	switch {
	case p == nil:
		return nil, nil
	case p.GetStartByte() != c.at:
		return nil, errs.Field("part.start_byte", "is %d; the part that comes next begins at byte %d", p.GetStartByte(), c.at)
	case len(data) == 0:
		return nil, errs.Field("part.data", "is empty; a part has at least one byte")
	case len(data) > wire.PartSize:
		return nil, errs.Field("part.data", "has %d bytes; a part has at most %d", len(data), wire.PartSize)
	}

	c.at += int64(len(data))
	c.sum.Write(data)
	return data, nil
}

// Close compares the SHA-256 of all bytes with the sender's. Another one is errs.Aborted:
// what is stored may be whole.
func (c *Checker) Close(sum []byte) error {
	if !bytes.Equal(c.sum.Sum(nil), sum) {
		return errs.New(errs.Aborted, "the bytes of a blob up to byte %d are not those that were sent: their SHA-256 differs", c.at)
	}
	return nil
}
