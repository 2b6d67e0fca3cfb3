package walk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// CheckFiles has the store check its files, if it can.
func (w *Walker) CheckFiles(ctx context.Context) error {
	v, ok := w.db.Store().Store.(store.Verifier)
	if !ok {
		return nil
	}

	damaged := 0
	n, err := v.Verify(ctx, func(d store.Damage) error {
		damaged++
		where := ""
		// It is not known of each file which keys it holds.
		if d.Keys.End != nil {
			where = fmt.Sprintf("; its keys are from %s up to %s, and what of them cannot be read is said below",
				boundName(d.Keys.Begin), boundName(d.Keys.End))
		}
		return w.Emit(mapreduce.Finding{
			Severity: mapreduce.Wrong, Key: d.File,
			Message: fmt.Sprintf("the file is damaged: %s%s; restore the store from a backup", errorLine(d.Err), where),
		})
	})
	if err != nil {
		return err
	}

	return w.Emit(mapreduce.Finding{Message: fmt.Sprintf("%s of the store checked, %d damaged", plural.Count(n, "file"), damaged)})
}

// boundName returns the bound of a range as people can read it. Bounds end in a
// byte that no tuple ends in.
func boundName(key []byte) string {
	switch {
	case len(key) == 0:
		return "the first"
	case key[0] == 0xff:
		return "the last"
	}

	if t, err := tuple.Unpack(key); err == nil {
		return t.String()
	}
	if t, err := tuple.Unpack(key[:len(key)-1]); err == nil {
		return t.String()
	}
	return KeyName(key)
}

// errorLine returns what err says, on one line and without the advice, which was
// given once.
func errorLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	text, _, _ = strings.Cut(text, "; restore ")
	return text
}

// IsDamage reports whether err says that something stored cannot be read.
func IsDamage(err error) bool {
	return errors.Is(err, store.ErrCorrupt) || errs.KindOf(err) == errs.DataLoss
}

// ReportDamage makes damage that kept a part from being checked a finding.
func (w *Walker) ReportDamage(id mapreduce.JobID, what string, err error) error {
	if err == nil || !IsDamage(err) {
		return err
	}
	return w.ReportUnreadable(id, nil, "the "+what+" cannot be read to the end", err)
}

// ReportUnreadable says what cannot be read, and why.
func (w *Walker) ReportUnreadable(id mapreduce.JobID, key []byte, what string, err error) error {
	w.Torn = true
	return w.Emit(mapreduce.Finding{
		Severity: mapreduce.Wrong, Job: id, Key: KeyName(key), Message: what + ": " + errorLine(err),
	})
}

// maxUnreadable bounds the keys of one walk that are reported because something that
// belongs to them cannot be read.
const maxUnreadable = 10

// A rangeWalk is where the visit of a range stands.
type rangeWalk struct {
	*Walker
	job     mapreduce.JobID
	r       store.Range
	options store.RangeOptions
	visit   func(l *Look, page []store.KeyValue) error

	more    bool
	last    []byte // key of the page that was read last; nil if none could be
	skipped int    // keys, as something of theirs cannot be read
	back    bool   // from the other end, since the way is blocked
	why     error  // it is
}

// WalkRange visits the pairs of r in pages, each in a transaction of its own. visit
// is called for each page that holds something, again if it has to be read
// again; then done, if it is not nil, is called once, outside the transaction.
//
// Pages get smaller towards what is damaged. A pair of which something cannot be read is
// left out. A walk forwards goes around what cannot be read itself: it goes on from the
// other end, so its visits must not rely on an order. A walk backwards ends there.
func (w *Walker) WalkRange(ctx context.Context, job mapreduce.JobID, r store.Range, o store.RangeOptions,
	visit func(l *Look, page []store.KeyValue) error, done func() error,
) error {
	ranged := &rangeWalk{Walker: w, job: job, r: r, options: o, visit: visit, more: true}
	return ranged.visitAll(ctx, done)
}

func (w *rangeWalk) visitAll(ctx context.Context, done func() error) error {
	limit := w.options.Limit

	for w.more {
		err := w.visitPage(ctx)
		switch {
		case err == nil:
			if w.last != nil && done != nil {
				if err := done(); err != nil {
					return err
				}
			}
			w.options.Limit = limit
			w.advanceCursor()
		case !IsDamage(err):
			return err
		case w.options.Limit != 1:
			// Something of the page is damaged: smaller pages tell it apart.
			w.options.Limit, w.more = max(1, w.options.Limit/2), true
		default:
			if err := w.skipDamaged(err); err != nil {
				return err
			}
		}
	}

	if w.back {
		return w.ReportUnreadable(w.job, nil, "keys from "+boundName(w.r.Begin)+" up to "+boundName(w.r.End)+" cannot be read", w.why)
	}
	return nil
}

// visitPage visits the next page.
func (w *rangeWalk) visitPage(ctx context.Context) error {
	return w.Look(ctx, w.job, func(l *Look) error {
		w.last = nil

		o := w.options
		o.Limit = l.PageLimit(o.Limit)
		page, more, err := l.GetRange(ctx, w.r, o)
		if w.more = err != nil || more && len(page) > 0; err != nil || len(page) == 0 {
			return err
		}

		w.last = page[len(page)-1].Key
		return w.visit(l, page)
	})
}

// advanceCursor goes behind the last key.
func (w *rangeWalk) advanceCursor() {
	switch {
	case w.last == nil:
	case w.options.Reverse:
		w.r.End = w.last
	default:
		w.r.Begin = store.Single(w.last).End
	}
}

// skipDamaged goes around what kept a page of one pair from being visited.
func (w *rangeWalk) skipDamaged(err error) error {
	switch {
	case w.last != nil && w.skipped < maxUnreadable:
		w.skipped++
		w.advanceCursor()
		return w.ReportUnreadable(w.job, w.last, "something that belongs to this key cannot be read", err)
	case w.last != nil || w.options.Reverse && !w.back:
		return err
	case w.back: // both ends of what is damaged are known
		w.more = false
	default:
		w.back, w.why, w.options.Reverse = true, err, true
	}

	return nil
}
