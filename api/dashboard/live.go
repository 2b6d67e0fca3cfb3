package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"net/http"
	"time"

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

// stream sends the parts of a page, and each again when it differs. It ends with the request,
// and when the page cannot be made: then it says why, and the browser asks again.
func (d *Dashboard) stream(w http.ResponseWriter, r *http.Request, p page) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r = r.WithContext(ctx)

	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	if _, err := w.Write([]byte("retry: 500\n\n")); err != nil {
		return nil //nolint:nilerr // the browser has gone
	}

	changed := make(chan struct{}, 1)
	if p.watches {
		go d.watch(r, changed)
	}

	sent := &sentParts{sums: make(map[string]uint64, len(p.parts))}
	for {
		if err := d.sendParts(w, r, p, sent); err != nil {
			return nil //nolint:nilerr // it has been sent
		}
		if control.Flush() != nil {
			return nil
		}
		if !await(ctx, changed, d.config.Tick) {
			return nil
		}
	}
}

// await waits until something has changed, and for a while at most. It reports whether the
// request is still there.
func await(ctx context.Context, changed <-chan struct{}, most time.Duration) bool {
	least := time.NewTimer(min(pause, most))
	defer least.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-least.C:
	}

	rest := time.NewTimer(max(0, most-pause))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-rest.C:
	}
	return true
}

// watch notes that a job has changed, as long as it runs.
func (d *Dashboard) watch(r *http.Request, changed chan<- struct{}) {
	v := d.visit(r)
	id, err := v.job()
	if err != nil {
		return
	}

	// What goes wrong here shows when the page is made again.
	_ = v.jobs.WatchJob(v, id, func(*mapreduce.Job) error {
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
	sums    map[string]uint64 // of parts, by name
	version string            // of the job, as of a page that is still while its units are
}

// make makes what the parts of a page show; nil if nothing of it has changed.
func (s *sentParts) make(v *visit, p page) (any, error) {
	load := p.load
	if p.again != nil {
		load = p.again
	}
	if !p.still {
		return load(v)
	}

	head, err := openJob(v, p.name)
	if err != nil || head.Version == s.version {
		return nil, err
	}
	s.version = head.Version
	return load(v)
}

// sendParts makes the page again and sends the parts that differ from those of before.
func (d *Dashboard) sendParts(w http.ResponseWriter, r *http.Request, p page, sent *sentParts) error {
	v := d.visit(r)
	data, err := sent.make(v, p)
	if err != nil {
		return errors.Join(err, sendEvent(w, "failed", fault.Error(err).Error()), http.NewResponseController(w).Flush())
	}

	f := d.frame(v, r, p.name, data)
	for _, name := range p.parts {
		if data == nil {
			break
		}
		html, err := d.views.write(p.name, name, f)
		if err != nil {
			return errs.New(errs.Internal, "make a part of the page: %w", err)
		}

		sum := maphash.Bytes(seed, html)
		if sent.sums[name] == sum {
			continue
		}
		if err := sendEvent(w, "part", part{name, string(html)}); err != nil {
			return err
		}
		sent.sums[name] = sum
	}

	// A comment shows both ends that the other is there.
	_, err = w.Write([]byte(":\n\n"))
	return err
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
