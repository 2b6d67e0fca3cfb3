package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/coditect/mapreduce/store"
)

// FormatFile is the file that names the format of the folder. It is read before
// Pebble opens the folder, because Pebble may change what it opens.
//
// Its text is "coditect store format N STATE VERSION LOG...\n". A program refuses
// any other N than its own, and leaves the folder as it is.
//
// VERSION is the version of the last commit when Open or Close wrote the file.
// Pebble takes damage near the end of its log for the end, and would silently go
// on with an older state; VERSION reveals that. Each LOG is the number of a log
// that must exist, because Pebble replays only the logs that it finds.
const FormatFile = "CODITECT_STORE"

// formatNumber is the N of this program. Raise it together with Pebble's
// FormatMajorVersion, and with any other change that makes an older program misread
// the stored data.
const formatNumber = 2

const formatHead = "coditect store format "

// A State is the expected content of the folder.
type State string

// States of a folder.
const (
	StateNone     State = ""         // there is no file
	StateCreating State = "creating" // Pebble's files may be missing
	StateOpen     State = "open"     // in use, or the machine failed
	StateClosed   State = "closed"   // nothing is half written
)

func (s State) isKnown() bool {
	return s == StateCreating || s == StateOpen || s == StateClosed
}

// A Format is the content of FormatFile.
type Format struct {
	State   State
	Version uint64   // of the last commit when the file was written
	Logs    []uint64 // numbers of logs, ascending
}

// IsComplete reports whether the store was completely created.
func (f Format) IsComplete() bool { return f.State == StateOpen || f.State == StateClosed }

// encodeText returns the text of the file.
func (f Format) encodeText() string {
	b := fmt.Appendf(nil, "%s%d %s %d", formatHead, formatNumber, f.State, f.Version)
	for _, n := range f.Logs {
		b = fmt.Appendf(b, " %d", n)
	}
	return string(append(b, '\n'))
}

// parseFormat parses a file of this program's format.
func parseFormat(text string) (f Format, ok bool) {
	rest, ok := strings.CutPrefix(text, formatHead)
	line, whole := strings.CutSuffix(rest, "\n")
	words := strings.Split(line, " ")
	if !ok || !whole || len(words) < 3 {
		return Format{}, false
	}

	f.State = State(words[1])
	numbers := make([]uint64, 0, len(words))
	// All words but the state are numbers.
	for _, word := range append(words[:1:1], words[2:]...) {
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return Format{}, false
		}
		numbers = append(numbers, n)
	}

	f.Version, f.Logs = numbers[1], numbers[2:]
	return f, numbers[0] >= 1 && f.State.isKnown()
}

// ReadFormat reads the file of a folder; a folder without it is in StateNone. It returns
// store.ErrNewer or store.ErrOlder if another version of this program wrote the file.
func ReadFormat(files vfs.FS, folder string) (Format, error) {
	path := files.PathJoin(folder, FormatFile)
	read, err := readFile(files, path)
	if errors.Is(err, fs.ErrNotExist) {
		return Format{}, nil
	}
	if err != nil {
		return Format{}, fmt.Errorf("store/pebble: %w", err)
	}

	var number int
	n, _ := fmt.Sscanf(string(read), formatHead+"%d", &number) // n is 1 if there is a number
	if n == 1 && number > formatNumber {
		return Format{}, fmt.Errorf("%w: %s has format %d, this program knows formats up to %d",
			store.ErrNewer, folder, number, formatNumber)
	}
	if n == 1 && number >= 1 && number < formatNumber {
		return Format{}, fmt.Errorf("%w: %s has format %d, and this program reads format %d alone; read its jobs with the version that wrote them, and give this one another data directory",
			store.ErrOlder, folder, number, formatNumber)
	}

	f, ok := parseFormat(string(read))
	if !ok {
		return Format{}, Damaged(fmt.Sprintf("%s must hold the format of the store, and holds %q", path, read))
	}
	return f, nil
}

func readFile(files vfs.FS, path string) ([]byte, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}

// newSuffix ends the name of a file that will replace another.
const newSuffix = ".new"

// writeFormat replaces the file atomically and durably.
func writeFormat(files vfs.FS, folder string, f Format) error {
	path := files.PathJoin(folder, FormatFile)
	err := writeFile(files, path+newSuffix, f.encodeText())
	if err == nil {
		err = files.Rename(path+newSuffix, path)
	}
	if err == nil {
		err = syncFolder(files, folder)
	}

	if err != nil {
		return fmt.Errorf("store/pebble: write %s: %w", path, err)
	}
	return nil
}

func writeFile(files vfs.FS, path, text string) error {
	f, err := files.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncFolder(files vfs.FS, folder string) error {
	d, err := files.OpenDir(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
