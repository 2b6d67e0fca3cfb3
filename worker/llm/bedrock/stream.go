package bedrock

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"iter"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// A stream is frames, as AWS has them in application/vnd.amazon.eventstream:
//
//	4 bytes  length of the frame, from here to its end
//	4 bytes  length of its headers
//	4 bytes  CRC-32 of the eight bytes before
//	…        headers: length of the name (1 byte), name, type (1 byte), value
//	…        payload
//	4 bytes  CRC-32 of all before
//
// Numbers are big-endian.
const (
	preludeBytes = 12
	sumBytes     = 4
	maxFrame     = 16 << 20
)

// readFrames returns the events of a stream: each is the payload of a frame, under the name of its
// type. If the stream breaks off, or a frame is damaged, an error is the last that is returned.
func readFrames(r io.Reader) iter.Seq2[wire.Event, error] {
	return func(yield func(wire.Event, error) bool) {
		buffered := bufio.NewReader(r)
		for {
			e, err := readFrame(buffered)
			if err == io.EOF { //nolint:errorlint // the end between two frames is this very value
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// readFrame reads one frame. It is io.EOF if there is none.
func readFrame(r io.Reader) (wire.Event, error) {
	prelude := make([]byte, preludeBytes)
	if _, err := io.ReadFull(r, prelude); err != nil {
		return wire.Event{}, err
	}
	total, headers := binary.BigEndian.Uint32(prelude), binary.BigEndian.Uint32(prelude[4:])
	if crc32.ChecksumIEEE(prelude[:8]) != binary.BigEndian.Uint32(prelude[8:]) {
		return wire.Event{}, garbled("the beginning of a frame is damaged")
	}
	// Lengths are checked before as much as they say is read.
	if total > maxFrame || uint64(total) < preludeBytes+sumBytes+uint64(headers) {
		return wire.Event{}, garbled("a frame has %d bytes, %d of them headers", total, headers)
	}

	rest := make([]byte, total-preludeBytes)
	if _, err := io.ReadFull(r, rest); err != nil {
		return wire.Event{}, io.ErrUnexpectedEOF
	}
	end := len(rest) - sumBytes
	sum := crc32.Update(crc32.ChecksumIEEE(prelude), crc32.IEEETable, rest[:end])
	if sum != binary.BigEndian.Uint32(rest[end:]) {
		return wire.Event{}, garbled("a frame is damaged")
	}

	name, err := eventName(rest[:headers])
	return wire.Event{Name: name, Data: rest[headers:end]}, err
}

func garbled(format string, args ...any) error {
	return llm.NewError(llm.Garbled, "the stream is no stream of events: %s", fmt.Sprintf(format, args...))
}

// valueBytes are the lengths of values by their type; -1 is a value with its length in two bytes.
var valueBytes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

// eventName returns the name of an event, or of an exception, from the headers of its frame.
func eventName(headers []byte) (name string, err error) {
	for len(headers) > 0 {
		var key, value []byte
		if key, value, headers, err = cutHeader(headers); err != nil {
			return "", err
		}
		switch string(key) {
		case ":event-type", ":exception-type", ":error-code":
			name = string(value)
		}
	}
	return name, nil
}

// cutHeader cuts the first header off.
func cutHeader(in []byte) (key, value, rest []byte, err error) {
	bad := garbled("its headers are damaged")

	size := int(in[0])
	if len(in) < 1+size+1 {
		return nil, nil, nil, bad
	}

	key, in = in[1:1+size], in[1+size:]
	kind := int(in[0])
	in = in[1:]
	if kind >= len(valueBytes) {
		return nil, nil, nil, bad
	}

	// Values of some types have their length before them.
	length := valueBytes[kind]
	if length < 0 {
		if len(in) < 2 {
			return nil, nil, nil, bad
		}
		length, in = int(binary.BigEndian.Uint16(in)), in[2:]
	}
	if len(in) < length {
		return nil, nil, nil, bad
	}
	return key, bytes.Clone(in[:length]), in[length:], nil
}
