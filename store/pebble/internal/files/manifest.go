package files

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// CheckManifest searches the manifest, the list of all tables, for damage. Pebble
// treats the first invalid record as the end of the manifest, and deletes the
// tables that later records name.
//
// A machine that fails may leave one record half written, because each record is
// synced before the next. Such a record is the last, and it is behind the synced bytes
// of the manifest, if the mark of the store has their number. It is not the first, which
// is written before the manifest is used. A store that was closed has none.
func CheckManifest(files vfs.FS, path string, synced uint64, closed bool) error {
	text, err := readFile(files, path)
	if errors.Is(err, fs.ErrNotExist) {
		return Damaged(path + " is missing")
	}
	if err != nil {
		return fmt.Errorf("store/pebble: %w", err)
	}

	end, err := validRecords(text)
	if uint64(skipPadding(end)) < synced {
		return Damaged(fmt.Sprintf("%s has valid records up to byte %d, and %d bytes were synced: its end is cut short or damaged, and what was stored last may be lost with it", path, end, synced))
	}
	if errors.Is(err, io.EOF) || !closed && end > 0 && !recordAfter(text, end) {
		return nil
	}
	return Damaged(fmt.Sprintf("%s has a damaged record at byte %d of %d: %v", path, end, len(text), err))
}

// validRecords returns the end of the last valid record of text, and io.EOF or the
// reason why the next record is not valid.
func validRecords(text []byte) (end int, err error) {
	for r := record.NewReader(bytes.NewReader(text), 0); ; {
		next, err := r.Next()
		if err != nil {
			return end, err
		}
		if _, err := io.Copy(io.Discard, next); err != nil {
			return end, err
		}
		end = int(r.Offset())
	}
}

// Records are split into chunks that do not cross blocks. A chunk begins with a
// checksum of four bytes, its length in two bytes, and its kind in one.
const (
	blockSize   = 32 << 10
	chunkHead   = 7
	chunkFull   = 1 // a whole record
	chunkFirst  = 2 // the first of several
	lengthAt    = 4
	kindAt      = 6
	crcMaskBits = 15
	crcMask     = 0xa282ead8
)

// recordAfter reports whether any valid record begins behind the damaged record at
// begin.
func recordAfter(text []byte, begin int) bool {
	for at := skipPadding(begin) + 1; at+chunkHead <= len(text); at++ {
		if kind := text[at+kindAt]; kind == chunkFull || kind == chunkFirst {
			if validChunk(text, at) {
				return true
			}
		}
	}
	return false
}

// skipPadding returns where the record behind one that ends at a byte can begin. The rest
// of a block is left empty if no head fits there.
func skipPadding(end int) int {
	if left := blockSize - end%blockSize; left < chunkHead {
		return end + left
	}
	return end
}

func validChunk(text []byte, at int) bool {
	end := at + chunkHead + int(binary.LittleEndian.Uint16(text[at+lengthAt:]))
	if end > len(text) || (end-1)/blockSize != at/blockSize {
		return false
	}
	sum := crc32.Checksum(text[at+kindAt:end], castagnoli)
	sum = (sum>>crcMaskBits | sum<<(32-crcMaskBits)) + crcMask
	return sum == binary.LittleEndian.Uint32(text[at:])
}
