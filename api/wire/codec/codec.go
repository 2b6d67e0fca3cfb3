// Package codec encodes and decodes messages for gRPC in buffers of our own sizes. What goes over the wire is
// what gRPC's own codec would send, so the other end need not have it. It must not import anything of the
// project: it takes any message.
package codec

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// poolSizes are the sizes of pooled buffers, as powers of two. A pooled buffer
// is cleared whole before it is used again, and gRPC's own pool has nothing
// between 32 kB and 1 MB, which is where batches of units lie: clearing would
// take as long as all of their encoding. Nor has it anything between 4 and
// 16 kB: frames of 5 kB, as a peer may send them, would take three times what
// they bring.
var poolSizes = []uint8{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}

// NewPool returns a pool of buffers for messages and frames.
func NewPool() (mem.BufferPool, error) { return mem.NewBinaryTieredBufferPool(poolSizes...) }

// New returns a codec for clients and servers: what goes over the wire is
// what gRPC's own would send.
func New() (encoding.CodecV2, error) {
	pool, err := NewPool()
	return codec{pool}, err
}

type codec struct {
	pool mem.BufferPool
}

func (codec) Name() string { return "proto" }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("marshal %T: not a protobuf message", v)
	}

	size := proto.Size(m)
	opts := proto.MarshalOptions{UseCachedSize: true} // of the line above
	if mem.IsBelowBufferPoolingThreshold(size) {
		data, err := opts.Marshal(m)
		return mem.BufferSlice{mem.SliceBuffer(data)}, err
	}

	buf := c.pool.Get(size)
	data, err := opts.MarshalAppend((*buf)[:0], m)
	if err != nil {
		c.pool.Put(buf)
		return nil, err
	}

	*buf = data
	return mem.BufferSlice{mem.NewBuffer(buf, c.pool)}, nil
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("unmarshal %T: not a protobuf message", v)
	}
	buf := data.MaterializeToBuffer(c.pool)
	defer buf.Free()
	return proto.Unmarshal(buf.ReadOnlyData(), m) // copies what it keeps
}
