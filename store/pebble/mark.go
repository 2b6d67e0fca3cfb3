package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// markFile holds the version of the newest group that may have been acknowledged.
// Pebble takes damage at the end of its newest log for the end, and what was
// committed behind it would be gone without a trace; the mark reveals that.
//
// The mark is written after the log was synced and before the commits of the group
// are acknowledged, and it is not synced itself. When a process is killed, the
// operating system still has it. When the machine fails, an older mark may be left,
// or none, but never one of a group that was not synced. So a mark that is above
// the stored version always means that commits are lost, and an unreadable one
// means nothing.
const markFile = "CODITECT_SYNCED"

// The file has two slots, which are written in turn, so that the other one is whole
// if a write is torn. They are in different blocks of the disk. A slot is a version
// of eight bytes, big-endian, and the CRC-32C of these bytes in four.
const (
	markSlots   = 2
	markSpacing = 4096
	markSize    = 8 + crc32.Size
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A syncMark writes markFile of an open store. The publisher alone uses it.
type syncMark struct {
	file vfs.File
	slot [markSize]byte
}

// openMark opens the mark of a store whose newest group has a version, and creates
// it if necessary. Both slots then have their place on the disk, so a full disk does
// not keep them from being written.
func openMark(files vfs.FS, folder string, version uint64) (*syncMark, error) {
	file, err := files.OpenReadWrite(files.PathJoin(folder, markFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("store/pebble: %w", err)
	}
	m := &syncMark{file: file}
	m.encodeSlot(version)
	both := make([]byte, (markSlots-1)*markSpacing+markSize)
	for at := 0; at < len(both); at += markSpacing {
		copy(both[at:], m.slot[:])
	}
	if _, err := file.WriteAt(both, 0); err != nil {
		return nil, fmt.Errorf("store/pebble: %w", errors.Join(err, file.Close()))
	}
	return m, nil
}

// setVersion records that the group of a version is synced, and all before it.
func (m *syncMark) setVersion(version uint64) error {
	m.encodeSlot(version)
	_, err := m.file.WriteAt(m.slot[:], int64(version%markSlots)*markSpacing)
	return err
}

// close closes the file, if there is one. What is written to it stays.
func (m *syncMark) close() error {
	if m == nil {
		return nil
	}
	return m.file.Close()
}

func (m *syncMark) encodeSlot(version uint64) {
	binary.BigEndian.PutUint64(m.slot[:], version)
	binary.BigEndian.PutUint32(m.slot[8:], crc32.Checksum(m.slot[:8], castagnoli))
}

// readMark returns the version that the mark of a store holds: 0 if there is no mark,
// or none that can be read.
func readMark(files vfs.FS, folder string) (version uint64, err error) {
	text, err := readFile(files, files.PathJoin(folder, markFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("store/pebble: %w", err)
	}
	for at := 0; at+markSize <= min(len(text), markSlots*markSpacing); at += markSpacing {
		slot := text[at : at+markSize]
		if crc32.Checksum(slot[:8], castagnoli) == binary.BigEndian.Uint32(slot[8:]) {
			version = max(version, binary.BigEndian.Uint64(slot))
		}
	}
	return version, nil
}
