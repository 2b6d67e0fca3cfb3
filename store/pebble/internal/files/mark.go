package files

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// MarkFile holds the version of the newest group that may have been acknowledged, and
// how much of the newest manifest is synced. Pebble takes damage at the end of its
// newest log, or of its manifest, for the end: what was committed behind it, or the
// tables that are named behind it, would be gone without a trace. The mark reveals that.
//
// The version is written after the log was synced and before the commits of the group
// are acknowledged; the length of a manifest is written after each sync of it. Neither
// is synced itself. When a process is killed, the operating system still has them. When
// the machine fails, older ones may be left, or none, but never one of what was not
// synced. So a mark that is above what is stored always means that something is lost,
// and an unreadable one means nothing.
const MarkFile = "CODITECT_SYNCED"

// The file has two slots for versions and two for manifests. Those for versions are
// written in turn, so that the other one is whole if a write is torn. Those for
// manifests hold the two newest, because a process may be killed before the newest one
// is in use. All are in different blocks of the disk. A slot is two numbers of eight
// bytes, big-endian, and the CRC-32C of these bytes in four: the version and 0, or the
// number of the manifest and its synced length in bytes.
const (
	versionSlots  = 2
	manifestSlots = 2
	markSlots     = versionSlots + manifestSlots
	markSpacing   = 4096
	markSize      = 16 + crc32.Size
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A markSlot is the content of a slot.
type markSlot [markSize]byte

func newMarkSlot(first, second uint64) (s markSlot) {
	binary.BigEndian.PutUint64(s[:], first)
	binary.BigEndian.PutUint64(s[8:], second)
	binary.BigEndian.PutUint32(s[16:], crc32.Checksum(s[:16], castagnoli))
	return s
}

// decodeMarkSlot returns the numbers of a slot, and false if the slot is not whole.
func decodeMarkSlot(text []byte) (first, second uint64, ok bool) {
	if len(text) < markSize || crc32.Checksum(text[:16], castagnoli) != binary.BigEndian.Uint32(text[16:]) {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(text), binary.BigEndian.Uint64(text[8:]), true
}

// A Mark writes MarkFile of an open store.
type Mark struct {
	file vfs.File

	mu       sync.Mutex // guards the variable below, and the slots for manifests
	manifest int        // index of the slot of the newest manifest
}

// OpenMark opens the mark of a store whose newest group has a version and whose manifest
// in use has a number (0: there is none), and creates it if necessary. Of manifests it
// keeps what it holds of that one: the number of another may be given again. All slots
// then have their place on the disk, so a full disk does not keep them from being written.
func OpenMark(files vfs.FS, folder string, version, manifest uint64) (*Mark, error) {
	had, err := ReadMark(files, folder)
	if err != nil {
		return nil, err
	}

	file, err := files.OpenReadWrite(files.PathJoin(folder, MarkFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("store/pebble: %w", err)
	}

	// What the slots hold of other manifests means nothing any more.
	all := make([]byte, (markSlots-1)*markSpacing+markSize)
	for i, slot := range [markSlots]markSlot{
		newMarkSlot(version, 0), newMarkSlot(version, 0), newMarkSlot(manifest, had.LengthOf(manifest)), newMarkSlot(0, 0),
	} {
		copy(all[i*markSpacing:], slot[:])
	}

	if _, err := file.WriteAt(all, 0); err != nil {
		return nil, fmt.Errorf("store/pebble: %w", errors.Join(err, file.Close()))
	}

	return &Mark{file: file}, nil
}

// SetVersion records that the group of a version is synced, and all before it. The
// publisher alone calls it.
func (m *Mark) SetVersion(version uint64) error {
	return m.write(int(version%versionSlots), newMarkSlot(version, 0))
}

// addManifest forgets the older manifest in favour of a new one, of which nothing is
// synced. It is synced, because the number of the new one may have been another's that
// was never used.
func (m *Mark) addManifest(number uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.manifest = (m.manifest + 1) % manifestSlots
	if err := m.write(versionSlots+m.manifest, newMarkSlot(number, 0)); err != nil {
		return err
	}
	return m.file.Sync()
}

// setManifest records how much of the newest manifest is synced, in bytes.
func (m *Mark) setManifest(number, length uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.write(versionSlots+m.manifest, newMarkSlot(number, length))
}

func (m *Mark) write(slot int, content markSlot) error {
	_, err := m.file.WriteAt(content[:], int64(slot)*markSpacing)
	return err
}

// Close closes the file, if there is one. What is written to it stays.
func (m *Mark) Close() error {
	if m == nil {
		return nil
	}
	return m.file.Close()
}

// A Marked is what MarkFile holds. What it does not hold, or what cannot be read, is 0.
type Marked struct {
	Version   uint64 // of the newest group that may have been acknowledged
	manifests [manifestSlots]markedManifest
}

type markedManifest struct {
	number, length uint64 // length is in bytes
}

// LengthOf returns how many bytes of a manifest were synced at least.
func (m Marked) LengthOf(manifest uint64) (length uint64) {
	for _, of := range m.manifests {
		if of.number == manifest {
			length = max(length, of.length)
		}
	}
	return length
}

// ReadMark reads the mark of a store.
func ReadMark(files vfs.FS, folder string) (m Marked, err error) {
	text, err := readFile(files, files.PathJoin(folder, MarkFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Marked{}, fmt.Errorf("store/pebble: %w", err)
	}

	for i := range markSlots {
		first, second, ok := decodeMarkSlot(text[min(i*markSpacing, len(text)):])
		switch {
		case !ok:
		case i < versionSlots:
			m.Version = max(m.Version, first)
		default:
			m.manifests[i-versionSlots] = markedManifest{number: first, length: second}
		}
	}
	return m, nil
}

const manifestPrefix = "MANIFEST-"

// ManifestNumber returns the number of a manifest, if name is that of a manifest.
func ManifestNumber(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, manifestPrefix)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

// A MarkedFS marks how much of each manifest is synced.
type MarkedFS struct {
	vfs.FS
	Mark     *Mark
	Unmarked func(error) // called with each failure to write the mark
}

// Create creates a file.
func (f MarkedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	number, ok := ManifestNumber(f.PathBase(name))
	if !ok {
		return f.FS.Create(name, category)
	}

	// Without the mark, only the warning of later damage is missing.
	if err := f.Mark.addManifest(number); err != nil {
		f.Unmarked(err)
	}

	file, err := f.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	return &markedManifestFile{File: file, of: f, number: number}, nil
}

// Unwrap returns the underlying file system.
func (f MarkedFS) Unwrap() vfs.FS { return f.FS }

// A markedManifestFile is a manifest that is being written. Pebble writes it by Write and
// syncs it by Sync, one at a time.
type markedManifestFile struct {
	vfs.File
	of      MarkedFS
	number  uint64
	written uint64 // bytes
}

// Write appends b.
func (f *markedManifestFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.written += uint64(n)
	return n, err
}

// Sync syncs the file and marks that it is.
func (f *markedManifestFile) Sync() error {
	if err := f.File.Sync(); err != nil {
		return err
	}
	if err := f.of.Mark.setManifest(f.number, f.written); err != nil {
		f.of.Unmarked(err)
	}
	return nil
}
