package payload

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

// An InputHeader comes before the data of an input in a protocol.BlobInputs: the
// length of the encoded header as a varint, the header, and then the data.
type InputHeader struct {
	Unit       mapreduce.UnitID
	First, End int64
	Failed     bool
	Referred   bool
	Calls      bool   // the data may have calls of models, which no reduce is given
	Length     int64  // bytes of data
	SHA256     []byte // of data; empty if that is not known beforehand
}

func (h *InputHeader) toMessage() *storagev1.InputHeader {
	return &storagev1.InputHeader{
		Unit: string(h.Unit), First: h.First, End: h.End, Failed: h.Failed, Referred: h.Referred,
		Calls: h.Calls, Length: h.Length, Sha256: h.SHA256,
	}
}

// Append appends the encoded header to b.
func (h *InputHeader) Append(b []byte) ([]byte, error) {
	m, opts := h.toMessage(), proto.MarshalOptions{Deterministic: true}
	b = binary.AppendUvarint(b, uint64(opts.Size(m)))
	b, err := opts.MarshalAppend(b, m)
	if err != nil {
		return nil, fmt.Errorf("payload: header of input %s: %w", h.Unit, err)
	}
	return b, nil
}

// Size returns the bytes of an input with this header.
func (h *InputHeader) Size() int64 {
	n := proto.Size(h.toMessage())
	return int64(protowire.SizeVarint(uint64(n))+n) + h.Length
}

// maxHeader bounds an encoded header, in bytes: a unit's id is the longest part.
const maxHeader = 16 << 10

// errInputs is what is refused as the inputs of a unit.
var errInputs = errors.New("payload: these are no inputs of a unit")

// An InputDecoder takes a protocol.BlobInputs apart, as it comes. It holds the
// inputs without what no reduce is given.
type InputDecoder struct {
	// Most bounds the data of all inputs, in bytes. Beyond that Add returns
	// ErrInputsTooLarge.
	Most int

	inputs []protocol.Input
	bytes  int // of inputs
	head   []byte
	open   *InputHeader // of the input whose data comes; nil while a header does
	data   []byte
}

// ErrInputsTooLarge is what a unit's inputs fail with that are more than fits.
var ErrInputsTooLarge = errors.New("payload: the inputs of the unit are too large together")

// Add takes the next bytes of the blob.
func (d *InputDecoder) Add(part []byte) error {
	for {
		if d.open == nil {
			rest, err := d.readHeader(part)
			if err != nil || d.open == nil {
				return err
			}
			part = rest
		}

		// A part of the blob may end anywhere: within a header, within data, or behind
		// several inputs.
		n := min(int64(len(part)), d.open.Length-int64(len(d.data)))
		d.data = append(d.data, part[:n]...)
		part = part[n:]

		if int64(len(d.data)) < d.open.Length {
			return nil
		}
		if err := d.endInput(); err != nil {
			return err
		}
	}
}

// readHeader adds to the header that comes, and returns what is behind it once it is
// whole.
func (d *InputDecoder) readHeader(part []byte) (rest []byte, err error) {
	// A header may come in several parts. No more is kept of one than the longest that is
	// taken.
	before := len(d.head)
	d.head = append(d.head, part[:min(len(part), maxHeader+binary.MaxVarintLen64-before)]...)

	size, n := binary.Uvarint(d.head)
	if n < 0 || n > 0 && size > maxHeader {
		return nil, fmt.Errorf("%w: the header of input %d is too long", errInputs, len(d.inputs))
	}

	if n == 0 || uint64(len(d.head)-n) < size {
		return nil, nil
	}

	whole := n + int(size)
	m := new(storagev1.InputHeader)
	if err := proto.Unmarshal(d.head[n:whole], m); err != nil {
		return nil, fmt.Errorf("%w: header of input %d: %w", errInputs, len(d.inputs), err)
	}

	if m.Length < 0 || len(m.Sha256) != 0 && len(m.Sha256) != sha256.Size {
		return nil, fmt.Errorf("%w: the header of input %d has a length of %d and a hash of %d bytes", errInputs, len(d.inputs), m.Length, len(m.Sha256))
	}
	if m.Length > int64(d.Most-d.bytes) {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrInputsTooLarge, d.Most)
	}

	d.open = &InputHeader{
		Unit: mapreduce.UnitID(m.Unit), First: m.First, End: m.End, Failed: m.Failed, Referred: m.Referred,
		Calls: m.Calls, Length: m.Length, SHA256: m.Sha256,
	}
	d.data, d.head = make([]byte, 0, m.Length), d.head[:0]

	return part[whole-before:], nil
}

// endInput ends the input that is open.
func (d *InputDecoder) endInput() error {
	h := d.open
	if sum := sha256.Sum256(d.data); len(h.SHA256) > 0 && string(sum[:]) != string(h.SHA256) {
		return fmt.Errorf("%w: what came of unit %s is not what it made: its hash differs", errInputs, h.Unit)
	}

	data := d.data
	if h.Calls {
		if bare, err := WithoutCalls(data); err == nil { // else the reduce says so
			data = bare
		}
	}

	// An input without data is nil, whether anything was left out of it or not.
	if len(data) == 0 {
		data = nil
	}

	d.inputs = append(d.inputs, protocol.Input{
		Unit: h.Unit, First: h.First, End: h.End, Failed: h.Failed, Referred: h.Referred, Data: data,
	})
	d.bytes += len(data)
	d.open, d.data = nil, nil
	return nil
}

// Inputs returns what came. It refuses a blob that ends within an input.
func (d *InputDecoder) Inputs() ([]protocol.Input, error) {
	if d.open != nil || len(d.head) > 0 {
		return nil, fmt.Errorf("%w: input %d is cut short", errInputs, len(d.inputs))
	}
	return d.inputs, nil
}

// NamesRecords reports whether an encoded output of a reduce names records that it
// does not hold. It looks at no more than the beginnings of fields.
func NamesRecords(data []byte) bool {
	const open = 3 // the field of storagev1.Output
	for len(data) > 0 {
		number, typ, n := protowire.ConsumeTag(data)
		if n < 0 || number == open {
			return n >= 0
		}

		m := protowire.ConsumeFieldValue(number, typ, data[n:])
		if m < 0 {
			return false // the reduce says what is wrong
		}
		data = data[n+m:]
	}
	return false
}
