package worker

import (
	"context"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/ground"
)

// A library lends the texts of documents, prepared for finding quotes, to units
// that have a chunk of one. It holds a bounded number of bytes: a unit waits until
// others have given back what there is no room for beside. What nobody uses is
// kept for the next until its room is needed.
type library struct {
	most int64 // bytes of text

	mu       sync.Mutex // guards the variables below, and users and used of books
	books    map[bookKey]*book
	held     int64 // bytes of text of all books
	clock    uint64
	returned chan struct{} // closed, and made anew, when a book is given back
}

// A bookKey names a text. Texts are lent within their job only.
type bookKey struct {
	job    mapreduce.JobID
	sha256 string
}

// A book is one text.
type book struct {
	size  int64
	users int
	used  uint64        // clock of the latest use
	turn  chan struct{} // capacity 1: whoever fills it may look at text, and set it
	text  *ground.Text  // nil until it is loaded
}

func newLibrary(most int64) *library {
	return &library{most: most, books: make(map[bookKey]*book), returned: make(chan struct{})}
}

// lend calls use with the text of that name and size, which load gets if it is
// not here.
func (l *library) lend(ctx context.Context, key bookKey, size int64, load func(context.Context) (string, error), use func(*ground.Text)) error {
	b, err := l.borrow(ctx, key, size)
	if err != nil {
		return err
	}
	defer l.giveBack(key, b)
	text, err := b.read(ctx, load)
	if err != nil {
		return err
	}
	use(text)
	return nil
}

// borrow waits for a book, which may yet have to be loaded.
func (l *library) borrow(ctx context.Context, key bookKey, size int64) (*book, error) {
	for {
		b, returned := l.take(key, size)
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

// take returns a book, or if there is no room for it, a channel that closes when
// there may be.
func (l *library) take(key bookKey, size int64) (*book, <-chan struct{}) {
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

// makeRoom removes books that nobody uses, those used longest ago first, until
// there is room, and reports whether there is. mu is held.
func (l *library) makeRoom(size int64) bool {
	for l.held+size > l.most {
		var oldest bookKey
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

// remove takes a book out. mu is held.
func (l *library) remove(key bookKey) {
	l.held -= l.books[key].size
	delete(l.books, key)
}

// giveBack ends a use. A book that could not be loaded is taken out.
func (l *library) giveBack(key bookKey, b *book) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.users--; b.users > 0 {
		return
	}
	if b.text == nil {
		l.remove(key)
	}
	close(l.returned)
	l.returned = make(chan struct{})
}

// read returns the text, once nobody else is loading it. One who could not load
// it leaves it to the next.
func (b *book) read(ctx context.Context, load func(context.Context) (string, error)) (*ground.Text, error) {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-b.turn }()
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
