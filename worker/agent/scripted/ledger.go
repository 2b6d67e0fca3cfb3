package scripted

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// An Entry is the begin or the end of one call.
type Entry struct {
	Job     mapreduce.JobID  `json:"job"`
	Unit    mapreduce.UnitID `json:"unit"`
	Attempt int              `json:"attempt"`
	Call    int              `json:"call"`
	Hash    string           `json:"hash"`
	End     bool             `json:"end,omitempty"`
}

// A Ledger is where tests learn which calls were made, whatever became of the
// process that made them. Record is called concurrently and returns once the
// entry is safe.
type Ledger interface {
	Record(Entry) error
}

// A FileLedger keeps a ledger in a file, a line of JSON for each entry, synced
// one by one. Several processes may write to one file.
type FileLedger struct {
	mu   sync.Mutex // one write and sync at a time
	file *os.File
}

var _ Ledger = (*FileLedger)(nil)

// OpenFileLedger opens the ledger in a file, and makes it if there is none.
func OpenFileLedger(path string) (*FileLedger, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &FileLedger{file: f}, nil
}

// Record implements Ledger.
func (l *FileLedger) Record(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return l.file.Sync()
}

// Close closes the file.
func (l *FileLedger) Close() error { return l.file.Close() }

// ReadLedger returns the entries in a file. A last line that was cut off by the
// end of its process is left out.
func ReadLedger(path string) ([]Entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}

	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	var entries []Entry
	lines := bufio.NewScanner(bytes.NewReader(whole))
	for lines.Scan() {
		var e Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, len(entries)+1, err)
		}
		entries = append(entries, e)
	}
	return entries, lines.Err()
}
