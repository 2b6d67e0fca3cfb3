//go:build fdb

package fdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"github.com/coditect/mapreduce/store"
)

// A Store is a FoundationDB cluster.
type Store struct {
	db     fdb.Database
	file   string // the cluster file, which handles are counted by
	config Config

	mu      sync.Mutex // guards the variables below
	closed  bool
	watches sync.WaitGroup
	ended   chan struct{} // closed by Close
}

var _ store.Store = (*Store)(nil)

const defaultConnectTimeout = 5 * time.Second

// Open connects to the cluster that a cluster file names. These things might
// happen:
//  1. a store, once the cluster has answered;
//  2. an error that names what is wrong with the file, or with the client
//     library;
//  3. an error that names the coordinators, none of which led to an answer
//     within the time-out.
func Open(clusterFile string, c Config) (store.Store, error) {
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = defaultConnectTimeout
	}
	text, err := os.ReadFile(clusterFile)
	if err != nil {
		return nil, fmt.Errorf("store/fdb: cluster file: %w", err)
	}
	names := coordinators(string(text))
	if names == "" {
		return nil, malformed(clusterFile, string(text))
	}
	db, err := handles.take(clusterFile)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, file: clusterFile, config: c, ended: make(chan struct{})}
	err = s.ping(c.ConnectTimeout)
	switch {
	case err == nil:
		return s, nil
	case codeOf(err) == invalidConnection:
		err = malformed(clusterFile, string(text))
	default:
		err = fmt.Errorf("store/fdb: the cluster of %s: its coordinators are %s: %w", clusterFile, names, err)
	}
	return nil, errors.Join(err, s.Close())
}

// ping waits until the cluster hands out a read version. A cluster that speaks
// another version's protocol does not answer either.
func (s *Store) ping(timeout time.Duration) error {
	unanswered := fmt.Errorf("none has led to an answer within %v; they may be stopped, out of reach, of a release other than 7.3, "+
		"or of another cluster than the file names, or no database was made there yet", timeout)
	ctx, cancel := context.WithTimeoutCause(context.Background(), timeout, unanswered)
	defer cancel()
	t, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer t.Discard()
	if _, err = t.ReadVersion(ctx); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// coordinators returns the addresses in a cluster file's text:
// description:id@address,address,… There are none in what is not a cluster file.
func coordinators(text string) string {
	_, addresses, _ := strings.Cut(significant(text), "@")
	return addresses
}

// significant returns a cluster file's text without comments.
func significant(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// malformed says of a cluster file that it is none.
func malformed(file, text string) error {
	return fmt.Errorf("store/fdb: cluster file %s: beside comments it must have one line, DESCRIPTION:ID@HOST:PORT,HOST:PORT…, and what it has is %.100q",
		file, significant(text))
}

// Begin implements store.Store.
func (s *Store) Begin(context.Context) (store.Tx, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	t, err := s.db.CreateTransaction()
	if err != nil {
		return nil, mapped(err)
	}
	if s.config.MaxTxSize > 0 {
		if err := t.Options().SetSizeLimit(int64(s.config.MaxTxSize)); err != nil {
			return nil, mapped(err)
		}
	}
	return &tx{store: s, t: t}, nil
}

// Watch implements store.Store. The watch has a transaction of its own, because
// arming one adds a read conflict.
func (s *Store) Watch(ctx context.Context, key []byte) (<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	t, err := s.db.CreateTransaction()
	if err != nil {
		return nil, mapped(err)
	}
	armed := t.Watch(fdb.Key(key))
	stop := context.AfterFunc(ctx, t.Cancel)
	// Reading the value first makes the watch wait for a change of what is there
	// now, whenever the cluster gets to arming it.
	if _, err = t.Snapshot().Get(fdb.Key(key)).Get(); err == nil {
		err = t.Commit().Get()
	}
	stop()
	if err != nil {
		armed.Cancel()
		return nil, ended(ctx, mapped(err))
	}
	fired := make(chan struct{})
	s.watches.Go(func() { s.wait(ctx, armed, fired) })
	return fired, nil
}

// wait closes fired when the watch fires, is lost, or is not wanted any more.
func (s *Store) wait(ctx context.Context, armed fdb.FutureNil, fired chan struct{}) {
	defer close(fired)
	done := make(chan struct{})
	go func() { // ends when the watch does, which Cancel makes it
		armed.BlockUntilReady()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		armed.Cancel()
		<-done
	case <-s.ended:
		armed.Cancel()
		<-done
	}
}

func (s *Store) isClosed() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.ended)
	s.mu.Unlock()
	s.watches.Wait()
	handles.release(s.file)
	return nil
}
