package apart

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/dashboard/drawn"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/program"
	"github.com/coditect/mapreduce/worker/child"
)

// Pages is the value of Variable for a process that draws pages of documents, and does nothing else.
const Pages = "pages"

// Bounds of drawing.
const (
	drawnPixels = 2000             // how wide and high a picture is: a page of A4 has 170 pixels an inch
	maxDrawTime = 90 * time.Second // of the clock, for a page. PDFium may have to be compiled first
	maxDrawn    = 32 << 20         // bytes of a picture
	maxFrame    = 4 << 10          // bytes of what is said of one
	keptIdle    = 2                // processes that wait for more
	idleTime    = time.Minute      // how long they do
)

// A Drawer draws pages of documents in processes of their own: they get the documents, and see nothing
// else of this process, neither its memory nor the keys in its environment. It is safe for concurrent use.
type Drawer struct {
	command Command
	allowed runners.Drawing

	mu     sync.Mutex // Guards the variables below.
	idle   []*drawing
	closed bool
}

// Drawer returns what draws pages, within what is allowed; nil if no process can be started. The caller
// must close it.
func (c Command) Drawer(allowed runners.Drawing) *Drawer {
	if c.Path == "" {
		return nil
	}
	return &Drawer{command: c, allowed: allowed}
}

// Func returns Draw; nil of a nil Drawer.
func (d *Drawer) Func() drawn.Draw {
	if d == nil {
		return nil
	}
	return d.Draw
}

// A drawing is a process that draws pages, one after the other.
type drawing struct {
	program *child.Process
	expires *time.Timer // while it is idle
}

// A request asks for a page of the document that follows.
type request struct {
	Allowed runners.Drawing
	Page    int
	Most    int // pixels
}

// An answer says what the picture is of that follows, or why there is none.
type answer struct {
	Width, Height float64
	MediaType     string
	Refused       string // why the page cannot be drawn
}

// Draw draws a page: it is a drawn.Draw.
func (d *Drawer) Draw(ctx context.Context, doc []byte, page int) (*drawn.Page, error) {
	p, err := d.take()
	if err != nil {
		return nil, errs.New(errs.Unavailable, "the page cannot be drawn: %w", err)
	}

	within, cancel := context.WithTimeout(ctx, maxDrawTime)
	defer cancel()
	stop := context.AfterFunc(within, func() { _ = p.program.Kill() })
	said, data, err := p.draw(request{d.allowed, page, drawnPixels}, doc)
	if !stop() || err != nil {
		p.program.Stop()
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case within.Err() != nil:
		return nil, errs.New(errs.Precondition, "page %d takes more than %v to be drawn", page, maxDrawTime)
	case err != nil:
		return nil, errs.New(errs.Precondition, "page %d cannot be drawn: %w", page, errors.Join(err, p.program.Err()))
	}

	d.put(p)
	switch {
	case said.Refused != "":
		return nil, errs.New(errs.Precondition, "page %d cannot be drawn: %s", page, said.Refused)
	case len(data) == 0:
		return nil, errs.New(errs.NotFound, "there is no page %d, or it cannot be drawn", page)
	}
	return &drawn.Page{Width: said.Width, Height: said.Height, MediaType: said.MediaType, Data: data}, nil
}

// draw asks the process for a page.
func (p *drawing) draw(r request, doc []byte) (said answer, data []byte, err error) {
	if err := writeFrame(p.program.Stdin, r, doc); err != nil {
		return said, nil, err
	}
	data, err = readFrame(p.program.Stdout, &said, maxDrawn)
	return said, data, err
}

// take returns a process that is idle, or a new one.
func (d *Drawer) take() (*drawing, error) {
	d.mu.Lock()
	if n := len(d.idle); n > 0 {
		p := d.idle[n-1]
		d.idle = d.idle[:n-1]
		d.mu.Unlock()
		p.expires.Stop()
		return p, nil
	}
	d.mu.Unlock()

	env := program.Environment()
	for _, v := range d.command.Env {
		if strings.HasPrefix(v, "XDG_CACHE_HOME=") { // where PDFium is, compiled
			env = append(env, v)
		}
	}
	started, err := child.Start(child.Config{Path: d.command.Path, Env: append(env, Variable+"="+Pages)})
	if err != nil {
		return nil, err
	}
	return &drawing{program: started}, nil
}

// put keeps a process for the next page, for a while.
func (d *Drawer) put(p *drawing) {
	d.mu.Lock()
	kept := !d.closed && len(d.idle) < keptIdle
	if kept {
		p.expires = time.AfterFunc(idleTime, func() { d.expire(p) })
		d.idle = append(d.idle, p)
	}
	d.mu.Unlock()
	if !kept {
		p.program.Stop()
	}
}

// expire ends a process that is still idle.
func (d *Drawer) expire(p *drawing) {
	d.mu.Lock()
	at := slices.Index(d.idle, p)
	if at >= 0 {
		d.idle = slices.Delete(d.idle, at, at+1)
	}
	d.mu.Unlock()
	if at >= 0 {
		p.program.Stop()
	}
}

// Close ends the processes that are idle. Others end with the pages that they draw.
func (d *Drawer) Close() {
	if d == nil {
		return
	}

	d.mu.Lock()
	all := d.idle
	d.idle, d.closed = nil, true
	d.mu.Unlock()

	for _, p := range all {
		p.expires.Stop()
		p.program.Stop()
	}
}

// DrawPages is a process that draws pages: it answers requests until its input ends.
func DrawPages(ctx context.Context, in io.Reader, out io.Writer) error {
	preferAsVictim()
	var drawer runners.PageDrawer
	for {
		var r request
		doc, err := readFrame(in, &r, document.DefaultMaxBytes)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if drawer == nil { // what is allowed stays the same
			drawer = r.Allowed.Drawer()
		}

		var said answer
		var data []byte
		err = drawer.Draw(ctx, doc, []int{r.Page}, document.Within(r.Most), func(p document.Picture) error {
			said = answer{Width: p.Width, Height: p.Height, MediaType: p.MediaType}
			data = p.Data
			return nil
		})
		if err != nil {
			said, data = answer{Refused: err.Error()}, nil
		}
		if err := writeFrame(out, said, data); err != nil {
			return err
		}
	}
}

// A frame is two lengths in bytes, of four bytes each; then something as JSON; then bytes.

// writeFrame writes a frame.
func writeFrame(w io.Writer, head any, data []byte) error {
	said, err := json.Marshal(head)
	if err != nil {
		return err
	}

	frame := binary.BigEndian.AppendUint32(nil, uint32(len(said)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(data)))
	if _, err := w.Write(append(frame, said...)); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// readFrame reads a frame with so many bytes at most. It returns io.EOF if there is none any more.
func readFrame(r io.Reader, head any, most int64) ([]byte, error) {
	var lengths [8]byte
	if _, err := io.ReadFull(r, lengths[:]); err != nil {
		return nil, err
	}
	first, second := binary.BigEndian.Uint32(lengths[:]), binary.BigEndian.Uint32(lengths[4:])
	if first > maxFrame || int64(second) > most {
		return nil, fmt.Errorf("%d and %d bytes are more than are read", first, second)
	}

	said, data := make([]byte, first), make([]byte, second)
	for _, b := range [][]byte{said, data} {
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, fmt.Errorf("cut off: %w", err)
		}
	}
	return data, json.Unmarshal(said, head)
}
