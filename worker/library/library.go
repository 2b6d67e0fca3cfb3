// Package library lends the texts of documents, prepared for finding quotes, to the units of
// a worker that have a chunk of the document. Units of one document share one text.
//
// It knows no unit: whoever borrows says how a text is got that is not here.
package library

import (
	"context"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/text/ground"
)

// A Library lends texts. It holds a bounded number of bytes: if there is no room, a
// borrower waits until others return their texts. A text that nobody uses stays until its
// room is needed. It is safe for concurrent use.
type Library struct {
	most int64 // bytes of text

	mu       sync.Mutex // guards the variables below, and users and used of books
	books    map[Key]*book
	held     int64 // bytes of text of all books
	clock    uint64
	returned chan struct{} // closed, and replaced, when a text is returned
}

// A Key names a text. Texts are lent within their job only.
type Key struct {
	Job    mapreduce.JobID
	SHA256 string // of the text, as bytes
}

// A book is a text of the library.
type book struct {
	size  int64
	users int
	used  uint64        // clock of the latest use
	turn  chan struct{} // capacity 1: whoever fills it may look at text, and set it
	text  *ground.Text  // nil until it is loaded
}

// New returns an empty library for so many bytes of text.
func New(most int64) *Library {
	return &Library{most: most, books: make(map[Key]*book), returned: make(chan struct{})}
}

// Lend calls use with the text of that name and size in bytes, which load gets if it is not
// here. The text is not to be used after that.
func (l *Library) Lend(ctx context.Context, key Key, size int64, load func(context.Context) (string, error), use func(*ground.Text)) error {
	b, err := l.borrow(ctx, key, size)
	if err != nil {
		return err
	}
	defer l.giveBack(key, b)

	text, err := b.loadText(ctx, load)
	if err != nil {
		return err
	}

	use(text)
	return nil
}

// borrow waits until it may use a text, which may yet have to be loaded.
func (l *Library) borrow(ctx context.Context, key Key, size int64) (*book, error) {
	for {
		b, returned := l.tryBorrow(key, size)
		if b != nil {
			return b, nil
		}

		select {
		case <-returned:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// tryBorrow returns a text, or if there is no room for it, a channel that closes when
// there may be room.
func (l *Library) tryBorrow(key Key, size int64) (*book, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()

	b := l.books[key]
	if b == nil {
		if !l.makeRoom(size) {
			return nil, l.returned
		}
		b = &book{size: size, turn: make(chan struct{}, 1)}
		l.books[key] = b
		l.held += size
	}

	l.clock++
	b.users, b.used = b.users+1, l.clock
	return b, nil
}

// makeRoom removes texts that nobody uses, those used longest ago first, until there is
// room, and reports whether there is. mu is held.
func (l *Library) makeRoom(size int64) bool {
	for l.held+size > l.most {
		var oldest Key
		found := false
		for key, b := range l.books {
			if b.users == 0 && (!found || b.used < l.books[oldest].used) {
				oldest, found = key, true
			}
		}

		if !found {
			return false
		}
		l.remove(oldest)
	}
	return true
}

// remove takes a text out. mu is held.
func (l *Library) remove(key Key) {
	l.held -= l.books[key].size
	delete(l.books, key)
}

// giveBack ends a use. A text that could not be loaded is taken out.
func (l *Library) giveBack(key Key, b *book) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if b.users--; b.users > 0 {
		return
	}

	if b.text == nil {
		l.remove(key)
	}

	// Whoever waits for room looks again, even if the text stays: it may go now.
	close(l.returned)
	l.returned = make(chan struct{})
}

// loadText returns the text. If somebody else is loading the text, loadText waits. If
// that load fails, the next who waits loads the text.
func (b *book) loadText(ctx context.Context, load func(context.Context) (string, error)) (*ground.Text, error) {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-b.turn }()

	// Others may have loaded the text while this one waited for its turn.
	if b.text != nil {
		return b.text, nil
	}

	text, err := load(ctx)
	if err != nil {
		return nil, err
	}

	b.text = ground.New(text)
	return b.text, nil
}
