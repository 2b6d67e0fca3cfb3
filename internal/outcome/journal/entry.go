package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

// An Entry is one thing that an attempt has done.
type Entry struct {
	Key     string // what was done: 1 to protocol.MaxJournalKey bytes of text
	Attempt int    // that did it
	Begun   bool   // it had begun; another entry with the same key says what came of it
	Result  []byte // what came of it
}

// errEntry is what is refused as an entry.
var errEntry = errors.New("journal: this is no entry")

// maxLength is the most bytes that the length before an entry takes.
const maxLength = binary.MaxVarintLen32

// Encode returns the entry as it is stored.
func (e *Entry) Encode() ([]byte, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(&storagev1.JournalEntry{
		Key: e.Key, Attempt: int64(e.Attempt), Begun: e.Begun, Result: e.Result,
	})
	if err != nil {
		return nil, fmt.Errorf("journal: entry %q: %w", e.Key, err)
	}
	return raw, nil
}

// Decode returns an entry that was encoded.
func Decode(raw []byte) (Entry, error) {
	var m storagev1.JournalEntry
	if err := proto.Unmarshal(raw, &m); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", errEntry, err)
	}

	if m.Key == "" || len(m.Key) > protocol.MaxJournalKey || !utf8.ValidString(m.Key) || m.Attempt < 1 || m.Begun && len(m.Result) > 0 {
		return Entry{}, fmt.Errorf("%w: key %.40q of attempt %d", errEntry, m.Key, m.Attempt)
	}

	return Entry{Key: m.Key, Attempt: int(m.Attempt), Begun: m.Begun, Result: m.Result}, nil
}

// AppendEntry appends an encoded entry to what goes over the wire: the length of the
// entry as a varint, and the entry.
func AppendEntry(b, raw []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(raw))), raw...)
}

// Split takes entries apart that AppendEntry has put together. They are parts of data.
func Split(data []byte) ([][]byte, error) {
	var all [][]byte
	for len(data) > 0 {
		size, n := binary.Uvarint(data)
		if n <= 0 || size == 0 || size > uint64(len(data)-n) {
			return nil, fmt.Errorf("%w: %d bytes are left behind the entry %d", errEntry, len(data), len(all))
		}

		data = data[n:]
		all = append(all, data[:size:size])
		data = data[size:]
	}
	return all, nil
}
