package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/maphash"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/wire/fault"
)

// A part is a piece of an open page as it is now. It stands for all of what the piece was, so
// a part that is sent twice, or after others were missed, does no harm.
type part struct {
	Name string `json:"name"`
	HTML string `json:"html"`
}

// pause is the least time between two updates of a page: eyes see no more.
const pause = 200 * time.Millisecond

// An opened page is one that a browser shows.
type opened struct {
	build   string // of the server that has made it; empty if the browser does not say
	version string // of the job, as far as the page shows all of it
}

// stream sends the parts of a page, and each again when it differs. It ends with the request, with the session
// by which the caller is known, and when the page cannot be made: then it says why, and the browser asks again
// unless that is in vain.
func (d *Dashboard) stream(w http.ResponseWriter, r *http.Request, p page, of opened) error {
	ctx, cancel := context.WithCancel(r.Context())
	r = r.WithContext(ctx)
	slow := &rereading{dashboard: d, request: r, page: p, version: of.version, done: make(chan reread, 1)}
	defer slow.wait()
	defer cancel()

	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	if _, err := w.Write([]byte("retry: 250\n\n")); err != nil {
		return nil //nolint:nilerr // the browser has gone
	}
	// Parts of this server may not fit a page of another one, and its scripts may not know them.
	if of.build != "" && of.build != d.build {
		return sendEvent(w, "ended", "other")
	}

	changed := make(chan struct{}, 1)
	if p.watches {
		go d.watch(r, changed)
	}

	sent := &sentParts{sums: make(map[string]uint64, len(p.parts)+len(p.slow))}
	signed := d.sessions.Signed(r)
	for {
		if err := d.sendParts(w, r, p, sent); err != nil {
			return nil //nolint:nilerr // it has been sent
		}
		if control.Flush() != nil {
			return nil
		}

		slow.begin(sent.head)
		if !await(ctx, changed, slow, slow.within(sent.head, d.config.Tick)) {
			return nil
		}
		// The token of the request would do yet, but whoever has signed out must see nothing more.
		if signed && !d.sessions.Signed(r) {
			d.sendFailed(w, errs.New(errs.Unauthenticated, "the session has ended"))
			return nil
		}
		if !sent.sendRead(w, slow.take()) {
			return nil
		}
	}
}

// await waits until something has changed or was read, and for a while at most. It reports whether the
// request is still there.
func await(ctx context.Context, changed <-chan struct{}, slow *rereading, most time.Duration) bool {
	least := time.NewTimer(min(pause, most))
	defer least.Stop()
	select {
	case <-ctx.Done():
		return false
	case slow.made = <-slow.done:
		slow.reading = false
		return true
	case <-least.C:
	}

	rest := time.NewTimer(max(0, most-pause))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case slow.made = <-slow.done:
		slow.reading = false
	case <-rest.C:
	}
	return true
}

// watch notes that a job has changed, as long as it runs.
func (d *Dashboard) watch(r *http.Request, changed chan<- struct{}) {
	v := d.visit(r)
	id, err := v.Job()
	if err != nil {
		return
	}

	// What goes wrong here shows when the page is made again.
	_ = v.Jobs.WatchJob(v, id, func(*mapreduce.Job) error {
		select {
		case changed <- struct{}{}:
		default:
		}
		return nil
	})
}

var seed = maphash.MakeSeed()

// sentParts are what an open page has been sent.
type sentParts struct {
	sums map[string]uint64 // of parts, by name
	head string            // version of the job that the page shows now
}

// send sends a part, unless it is what was sent before.
func (s *sentParts) send(w http.ResponseWriter, one part) error {
	sum := maphash.String(seed, one.HTML)
	if s.sums[one.Name] == sum {
		return nil
	}
	if err := sendEvent(w, "part", one); err != nil {
		return err
	}
	s.sums[one.Name] = sum
	return nil
}

// sendRead sends slow parts, or why they could not be made; they are tried again. It reports whether the browser is
// still there.
func (s *sentParts) sendRead(w http.ResponseWriter, made reread) bool {
	if made.err != nil {
		return sendEvent(w, "failed", fault.Error(made.err).Error()) == nil
	}
	for _, one := range made.parts {
		if s.send(w, one) != nil {
			return false
		}
	}
	return true
}

// sendParts makes the page again and sends the parts that differ from those of before.
func (d *Dashboard) sendParts(w http.ResponseWriter, r *http.Request, p page, sent *sentParts) error {
	v := d.visit(r)
	load := p.load
	if p.again != nil {
		load = p.again
	}
	data, err := load(v)
	if err != nil {
		d.sendFailed(w, err)
		return err
	}

	if of, ok := data.(*jobs.JobPage); ok {
		sent.head = of.Version
	}
	f := d.frame(v, r, p.name, data)
	for _, name := range p.parts {
		html, err := d.views.write(p.name, name, f)
		if err != nil {
			return errs.New(errs.Internal, "make a part of the page: %w", err)
		}
		if err := sent.send(w, part{name, string(html)}); err != nil {
			return err
		}
	}

	// A comment shows both ends that the other is there.
	_, err = w.Write([]byte(":\n\n"))
	return err
}

// sendFailed says why a page cannot be made, and whether it is in vain to ask again. A browser that is gone cannot
// be told.
func (d *Dashboard) sendFailed(w http.ResponseWriter, err error) {
	err = fault.Error(err)
	_ = sendEvent(w, "failed", err.Error())
	switch kind := errs.KindOf(err); {
	case kind == errs.NotFound:
		_ = sendEvent(w, "ended", "gone")
	case kind == errs.Unauthenticated && d.config.SignIn:
		_ = sendEvent(w, "ended", "signed-out")
	}
	_ = http.NewResponseController(w).Flush()
}

// sendEvent sends one event, whose data is JSON on one line.
func sendEvent(w http.ResponseWriter, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	out.WriteString("event: " + name + "\ndata: ")
	out.Write(data)
	out.WriteString("\n\n")
	_, err = w.Write(out.Bytes())
	return err
}

// readingsAtOnce is how many slow parts are made at once, of all open pages.
const readingsAtOnce = 2

// A rereading makes the slow parts of an open page again when its job has moved, beside what the page does. The
// stream alone uses it.
type rereading struct {
	dashboard *Dashboard
	request   *http.Request
	page      page

	version string    // of the job, as of the last reading, or of the page as it came
	next    time.Time // no reading begins before
	reading bool      // one is under way
	done    chan reread
	made    reread // by one that is over
}

// A reread is what came of making the slow parts of a page.
type reread struct {
	parts []part
	err   error
}

// behind reports whether slow parts show another version of the job than this.
func (r *rereading) behind(version string) bool {
	return len(r.page.slow) > 0 && version != "" && version != r.version
}

// within returns how long the page may do nothing: no longer than until what it is behind with may be read.
func (r *rereading) within(version string, most time.Duration) time.Duration {
	if r.reading || !r.behind(version) {
		return most
	}
	return max(min(pause, most), min(most, time.Until(r.next)))
}

// begin begins to read if the job has moved and it is time.
func (r *rereading) begin(version string) {
	if r.reading || !r.behind(version) || time.Now().Before(r.next) {
		return
	}

	r.version, r.reading = version, true
	go func() {
		parts, took, err := r.read()
		// The stream looks at these when it has the parts.
		r.next = time.Now().Add(spaced(took) - took)
		if parts == nil {
			r.version = "" // it is tried again
		}
		r.done <- reread{parts, err}
	}()
}

// spaced returns after how long a page is read again, beginning with the reading that took so long. What takes up to a
// fifth of a second keeps within a second of its job; what takes longer comes to take a tenth of the time. There is no
// step between the two: readings of a busy server, which take a little longer, wait a little longer.
func spaced(took time.Duration) time.Duration {
	return max(3*took, 11*took-1500*time.Millisecond)
}

// read makes the parts, and says how long that took once it was its turn. Like any handler of a request it may panic
// without ending the server.
func (r *rereading) read() (parts []part, took time.Duration, err error) {
	d, ctx := r.dashboard, r.request.Context()
	select {
	case d.readings <- struct{}{}:
		defer func() { <-d.readings }()
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}

	began := time.Now()
	defer func() {
		took = time.Since(began)
		if p := recover(); p != nil {
			d.config.Logger.Error("panic while a page is read", "page", r.page.name, "panic", p, "stack", string(debug.Stack()))
			parts, err = nil, errs.New(errs.Internal, "the page could not be read")
		}
	}()

	v := d.visit(r.request)
	data, err := r.page.load(v)
	if err != nil {
		return nil, 0, err
	}
	f := d.frame(v, r.request, r.page.name, data)
	for _, name := range r.page.slow {
		html, err := d.views.write(r.page.name, name, f)
		if err != nil {
			d.config.Logger.Error("a part of a page cannot be made", "page", r.page.name, "part", name, "error", err)
			return nil, 0, errs.New(errs.Internal, "make a part of the page: %w", err)
		}
		parts = append(parts, part{name, string(html)})
	}
	return parts, 0, nil
}

// take returns what was made, once.
func (r *rereading) take() (made reread) {
	made, r.made = r.made, reread{}
	return made
}

// wait waits until nothing is read any more.
func (r *rereading) wait() {
	if r.reading {
		<-r.done
	}
}
