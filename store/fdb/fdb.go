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
	file   string // the cluster file, the key of the shared handle
	config Config

	life context.Context // ends with the store

	mu      sync.Mutex         // guards the variables below; not held while waiting for the cluster
	end     context.CancelFunc // ends life
	watches sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

const defaultConnectTimeout = 5 * time.Second

// Open connects to the cluster that a cluster file names. It returns one of these:
//  1. a store, once the cluster has answered;
//  2. an error that names a fault of the file or of the client library;
//  3. an error that names the coordinators, if the cluster did not answer within
//     the time-out.
func Open(clusterFile string, c Config) (store.Store, error) {
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = defaultConnectTimeout
	}

	text, err := os.ReadFile(clusterFile)
	if err != nil {
		return nil, fmt.Errorf("store/fdb: cluster file: %w", err)
	}

	names := coordinatorsOf(string(text))
	if names == "" {
		return nil, malformedError(clusterFile, string(text))
	}

	db, err := handles.acquire(clusterFile)
	if err != nil {
		return nil, err
	}

	// Opening a database reaches nobody yet, so the cluster is asked for a version.
	s := newStore(db, clusterFile, c)
	err = s.pingCluster(c.ConnectTimeout)
	switch {
	case err == nil:
		return s, nil
	case codeOf(err) == invalidConnection:
		err = malformedError(clusterFile, string(text))
	default:
		err = fmt.Errorf("store/fdb: the cluster of %s: its coordinators are %s: %w", clusterFile, names, err)
	}

	return nil, errors.Join(err, s.Close())
}

// newStore returns the store of a database. The cluster may not answer.
func newStore(db fdb.Database, clusterFile string, c Config) *Store {
	s := &Store{db: db, file: clusterFile, config: c}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// pingCluster waits until the cluster returns a read version. A cluster of another
// protocol version does not answer either.
func (s *Store) pingCluster(timeout time.Duration) error {
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

// coordinatorsOf returns the addresses in a cluster file's text,
// description:id@address,address,… or "" if it is not a cluster file.
func coordinatorsOf(text string) string {
	_, addresses, _ := strings.Cut(stripComments(text), "@")
	return addresses
}

// stripComments returns a cluster file's text without comments and empty lines.
func stripComments(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// malformedError returns an error for a file that is not a cluster file.
func malformedError(file, text string) error {
	return fmt.Errorf("store/fdb: cluster file %s: beside comments it must have one line, DESCRIPTION:ID@HOST:PORT,HOST:PORT…, and what it has is %.100q",
		file, stripComments(text))
}

// Begin implements store.Store.
func (s *Store) Begin(context.Context) (store.Tx, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.isClosed() {
		return nil, store.ErrClosed
	}

	t, err := s.db.CreateTransaction()
	if err != nil {
		return nil, mapError(err)
	}

	if s.config.MaxTxSize > 0 {
		if err := t.Options().SetSizeLimit(int64(s.config.MaxTxSize)); err != nil {
			return nil, mapError(err)
		}
	}

	return &tx{store: s, t: t}, nil
}

// Watch implements store.Store. The watch has a transaction of its own, because
// arming a watch adds a read conflict.
func (s *Store) Watch(ctx context.Context, key []byte) (<-chan struct{}, error) {
	s.mu.Lock()
	if s.isClosed() {
		s.mu.Unlock()
		return nil, store.ErrClosed
	}
	s.watches.Add(1) // Close waits for it
	s.mu.Unlock()

	armed, err := s.armWatch(ctx, fdb.Key(key))
	if err != nil {
		s.watches.Done()
		return nil, err
	}

	fired := make(chan struct{})
	go func() {
		defer s.watches.Done()
		s.awaitWatch(ctx, armed, fired)
	}()

	return fired, nil
}

// armWatch returns a watch that the cluster has registered.
func (s *Store) armWatch(ctx context.Context, key fdb.Key) (fdb.FutureNil, error) {
	t, err := s.db.CreateTransaction()
	if err != nil {
		return nil, mapError(err)
	}

	armed := t.Watch(key)
	stop, stay := context.AfterFunc(ctx, t.Cancel), context.AfterFunc(s.life, t.Cancel)

	// Reading the value first makes the watch wait for a change of the current
	// value, whenever the cluster arms it.
	if _, err = t.Snapshot().Get(key).Get(); err == nil {
		err = t.Commit().Get()
	}
	stop()
	stay()

	switch {
	case err == nil:
		return armed, nil
	case s.isClosed():
		err = store.ErrClosed
	default:
		err = mapError(err)
	}

	armed.Cancel()
	return nil, withCause(ctx, err)
}

// awaitWatch closes fired when the watch fires or is lost, or ctx or the store ends.
func (s *Store) awaitWatch(ctx context.Context, armed fdb.FutureNil, fired chan struct{}) {
	defer close(fired)

	done := make(chan struct{})
	go func() { // ends with the watch, at the latest after Cancel
		armed.BlockUntilReady()
		close(done)
	}()

	select {
	case <-done:
	case <-ctx.Done():
		armed.Cancel()
		<-done
	case <-s.life.Done():
		armed.Cancel()
		<-done
	}
}

func (s *Store) isClosed() bool { return s.life.Err() != nil }

// Close implements store.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.isClosed()
	s.end()
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.watches.Wait()
	handles.release(s.file)
	return nil
}
