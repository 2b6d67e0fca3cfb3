// Package drawn keeps pictures of pages of documents, so that a page is drawn once however often people
// look at it.
//
// Who may see a page is known where the document is read, so whoever asks here has asked there before.
// What draws is given to it: no document is decoded here.
package drawn

import (
	"container/list"
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Page is the picture of a page.
type Page struct {
	Width, Height float64 // of the page, in the unit of the boxes of citations
	MediaType     string  // of the data: image/png or image/jpeg
	Data          []byte
}

// A Draw draws a page, whose number counts from 1, of a document. Its error has a kind that tells whether
// the page cannot be drawn, or there is none.
type Draw func(ctx context.Context, document []byte, page int) (*Page, error)

// A Key says which page a picture is of. Documents of a job do not change.
type Key struct {
	Job      mapreduce.JobID
	Document mapreduce.DocumentID
	Page     int
}

// atOnce is how many pages are drawn at the same time, and how many documents are held for that.
const atOnce = 2

// DefaultRoom is how many bytes of pictures are kept: some 300 pages of text.
const DefaultRoom = 64 << 20

// Pages draws pages, and keeps those that were asked for last, as many as have room. It is safe for
// concurrent use.
type Pages struct {
	draw  Draw
	room  int
	turns *semaphore.Weighted // of those who draw

	mu   sync.Mutex // Guards the variables below.
	held int        // bytes of pictures
	used *list.List // of *entry, the one that was asked for last in front
	at   map[Key]*list.Element
	busy map[Key]chan struct{} // pages that somebody draws; closed when that is over
}

type entry struct {
	key  Key
	page *Page
}

// New returns pages that are drawn by draw, of which so many bytes are kept.
func New(draw Draw, room int) *Pages {
	return &Pages{draw: draw, room: room, turns: semaphore.NewWeighted(atOnce), used: list.New(), at: make(map[Key]*list.Element), busy: make(map[Key]chan struct{})}
}

// Get returns a page. If it has to be drawn, read returns the document. Of several who ask for a page at once one
// draws it.
func (p *Pages) Get(ctx context.Context, key Key, read func() ([]byte, error)) (*Page, error) {
	for {
		page, busy := p.begin(key)
		switch {
		case page != nil:
			return page, nil
		case busy == nil:
			defer p.end(key)
			return p.drawn(ctx, key, read)
		}

		// If it comes to nothing, this call tries by itself.
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// drawn draws a page and keeps it.
func (p *Pages) drawn(ctx context.Context, key Key, read func() ([]byte, error)) (*Page, error) {
	// The document is read in the turn, so that not all who wait hold one.
	if err := p.turns.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	defer p.turns.Release(1)

	document, err := read()
	if err != nil {
		return nil, err
	}
	page, err := p.draw(ctx, document, key.Page)
	if err != nil {
		return nil, err
	}
	p.keep(key, page)
	return page, nil
}

// begin returns a page that is kept, or else what tells when somebody else has drawn it; neither if the caller is to
// draw it, and to call end.
func (p *Pages) begin(key Key) (*Page, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if at := p.at[key]; at != nil {
		p.used.MoveToFront(at)
		return at.Value.(*entry).page, nil //nolint:forcetypeassert // the list has nothing else
	}
	if busy := p.busy[key]; busy != nil {
		return nil, busy
	}

	p.busy[key] = make(chan struct{})
	return nil, nil
}

// end says that the caller draws a page no more.
func (p *Pages) end(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.busy[key])
	delete(p.busy, key)
}

// keep keeps a page in place of those that were not asked for longest.
func (p *Pages) keep(key Key, page *Page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at[key] != nil || len(page.Data) > p.room {
		return
	}

	p.at[key] = p.used.PushFront(&entry{key, page})
	for p.held += len(page.Data); p.held > p.room; {
		last := p.used.Remove(p.used.Back()).(*entry) //nolint:forcetypeassert // the list has nothing else
		delete(p.at, last.key)
		p.held -= len(last.page.Data)
	}
}
