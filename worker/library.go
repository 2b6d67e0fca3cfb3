package worker

import (
	"context"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/ground"
)

// A textCache lends the texts of documents, prepared for finding quotes, to units that
// have a chunk of the document. It holds a bounded number of bytes: if there is no room,
// a unit waits until other units return their texts. A text that no unit uses stays
// until its room is needed.
type textCache struct {
	most int64 // bytes of text

	mu       sync.Mutex // guards the variables below, and users and used of books
	books    map[textKey]*cachedText
	held     int64 // bytes of text of all books
	clock    uint64
	returned chan struct{} // closed, and replaced, when a unit returns a text
}

// A textKey names a text. Texts are lent within their job only.
type textKey struct {
	job    mapreduce.JobID
	sha256 string
}

// A cachedText is one text.
type cachedText struct {
	size  int64
	users int
	used  uint64        // clock of the latest use
	turn  chan struct{} // capacity 1: whoever fills it may look at text, and set it
	text  *ground.Text  // nil until it is loaded
}

func newLibrary(most int64) *textCache {
	return &textCache{most: most, books: make(map[textKey]*cachedText), returned: make(chan struct{})}
}

// lendText calls use with the text of that name and size, which load gets if it is
// not here.
func (l *textCache) lendText(ctx context.Context, key textKey, size int64, load func(context.Context) (string, error), use func(*ground.Text)) error {
	b, err := l.borrowText(ctx, key, size)
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

// borrowText waits for a book, which may yet have to be loaded.
func (l *textCache) borrowText(ctx context.Context, key textKey, size int64) (*cachedText, error) {
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
func (l *textCache) tryBorrow(key textKey, size int64) (*cachedText, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.books[key]
	if b == nil {
		if !l.makeRoom(size) {
			return nil, l.returned
		}
		b = &cachedText{size: size, turn: make(chan struct{}, 1)}
		l.books[key] = b
		l.held += size
	}
	l.clock++
	b.users, b.used = b.users+1, l.clock
	return b, nil
}

// makeRoom removes books that nobody uses, those used longest ago first, until
// there is room, and reports whether there is. mu is held.
func (l *textCache) makeRoom(size int64) bool {
	for l.held+size > l.most {
		var oldest textKey
		found := false
		for key, b := range l.books {
			if b.users == 0 && (!found || b.used < l.books[oldest].used) {
				oldest, found = key, true
			}
		}
		if !found {
			return false
		}
		l.removeText(oldest)
	}
	return true
}

// removeText takes a book out. mu is held.
func (l *textCache) removeText(key textKey) {
	l.held -= l.books[key].size
	delete(l.books, key)
}

// giveBack ends a use. A book that could not be loaded is taken out.
func (l *textCache) giveBack(key textKey, b *cachedText) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.users--; b.users > 0 {
		return
	}
	if b.text == nil {
		l.removeText(key)
	}
	close(l.returned)
	l.returned = make(chan struct{})
}

// loadText returns the text. If another unit is loading the text, loadText waits. If
// that load fails, the next waiting unit loads the text.
func (b *cachedText) loadText(ctx context.Context, load func(context.Context) (string, error)) (*ground.Text, error) {
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
