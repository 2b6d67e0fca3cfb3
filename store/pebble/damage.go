package pebble

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

// checkManifest looks for damage in the list of all tables. Pebble reads it up
// to the first record that is not valid, takes that for its end, forgets the
// tables that later records name, and deletes them.
//
// A machine that fails may leave one record half written: each is synced before
// the next. So nothing may follow it, it is not the first, which is there before
// the manifest is used, and a store that was closed has none.
func checkManifest(files vfs.FS, path string, closed bool) error {
	text, err := readFile(files, path)
	if errors.Is(err, fs.ErrNotExist) {
		return corruptError(path + " is missing")
	}
	if err != nil {
		return fmt.Errorf("store/pebble: %w", err)
	}
	end, err := validRecords(text)
	if errors.Is(err, io.EOF) || !closed && end > 0 && !recordAfter(text, end) {
		return nil
	}
	return corruptError(fmt.Sprintf("%s has a damaged record at byte %d of %d: %v", path, end, len(text), err))
}

// validRecords returns where the last valid record of text ends, and io.EOF or
// why the next is not valid.
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

// Records are cut into chunks, none of which crosses the border of a block. A
// chunk begins with a check sum, four bytes; its length, two; and its kind.
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

// recordAfter reports whether a valid chunk that begins a record is somewhere
// after the record, damaged, that begins at begin.
func recordAfter(text []byte, begin int) bool {
	if blockSize-begin%blockSize < chunkHead { // a head does not fit
		begin += blockSize - begin%blockSize
	}
	for at := begin + 1; at+chunkHead <= len(text); at++ {
		if kind := text[at+kindAt]; kind == chunkFull || kind == chunkFirst {
			if validChunk(text, at) {
				return true
			}
		}
	}
	return false
}

func validChunk(text []byte, at int) bool {
	end := at + chunkHead + int(binary.LittleEndian.Uint16(text[at+lengthAt:]))
	if end > len(text) || (end-1)/blockSize != at/blockSize {
		return false
	}
	sum := crc32.Checksum(text[at+kindAt:end], crc32.MakeTable(crc32.Castagnoli))
	sum = (sum>>crcMaskBits | sum<<(32-crcMaskBits)) + crcMask
	return sum == binary.LittleEndian.Uint32(text[at:])
}
