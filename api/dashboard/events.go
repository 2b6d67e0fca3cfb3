package dashboard

import (
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// An eventList is the page of a job's log.
type eventList struct {
	Rows     []eventRow
	Next     string
	First    string
	Verified string // what a check of the chain came to; empty if none was asked for
	Broken   string // what is wrong with the chain
	Check    string // address of the page that has the service check the chain
	Proofs   string // address of what a browser needs to check it
}

// An eventRow is what one transaction did.
type eventRow struct {
	*mapreduce.Checkpoint
	What   string // kind
	State  string // of the job afterwards; empty if it did not change
	Units  string // what happened to which units, shortened
	Sealed bool
}

const eventsOnPage = 100

// loadEvents makes the page of a job's log, oldest first. A check reads the whole chain.
func loadEvents(v *visit) (any, error) {
	p, err := openJob(v, "events")
	if err != nil {
		return nil, err
	}

	list := &eventList{Check: v.with("check", "1"), Proofs: v.jobPath(p.ID, "proofs")}
	if v.query.Has("check") {
		if err := list.verify(v, p.ID); err != nil {
			return nil, err
		}
	}

	page, err := v.jobs.ListEvents(v, mapreduce.ListEventsQuery{Job: p.ID, PageSize: eventsOnPage, PageToken: v.query.Get("page")})
	if err != nil {
		return nil, err
	}

	for _, c := range page.Checkpoints {
		list.Rows = append(list.Rows, viewEvent(c))
	}
	if page.NextPageToken != "" {
		list.Next = v.with("page", page.NextPageToken)
	}
	if v.query.Get("page") != "" {
		list.First = v.with()
	}
	p.Content = list
	return p, nil
}

// verify has the chain computed again.
func (l *eventList) verify(v *visit, id mapreduce.JobID) error {
	var events, seals int64
	query := mapreduce.ListEventsQuery{Job: id, Verify: true, PageSize: 1000}
	for {
		page, err := v.jobs.ListEvents(v, query)
		if err != nil {
			if isDamage(err) {
				l.Broken = err.Error()
				return nil
			}
			return err
		}

		events, seals = events+int64(len(page.Checkpoints)), seals+int64(len(page.Seals))
		query.PageToken = page.NextPageToken
		if query.PageToken == "" {
			l.Verified = count(events) + " / " + count(seals)
			return nil
		}
	}
}

func viewEvent(c *mapreduce.Checkpoint) eventRow {
	row := eventRow{Checkpoint: c, What: c.Kind.String()}
	if c.State != mapreduce.JobUnknown {
		row.State = c.State.String()
	}

	const shown = 3
	for i, u := range append(slices.Clip(c.Completed), c.Failed...) {
		if i == shown {
			row.Units += " +" + count(len(c.Completed)+len(c.Failed)-shown)
			break
		}
		if i > 0 {
			row.Units += ", "
		}
		row.Units += string(u.Unit)
	}
	return row
}

// isDamage reports whether an error says that what is stored is not what was stored.
func isDamage(err error) bool { return errs.KindOf(err) == errs.DataLoss }
