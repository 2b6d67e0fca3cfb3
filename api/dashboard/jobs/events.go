package jobs

import (
	"slices"

	"github.com/coditect/mapreduce/api/dashboard/visit"
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

// LoadEvents makes the page of a job's log, oldest first. A check reads the whole chain.
func LoadEvents(v *visit.Visit) (any, error) {
	p, err := OpenJob(v, "events")
	if err != nil {
		return nil, err
	}

	list := &eventList{Check: v.With("check", "1"), Proofs: v.JobPath(p.ID, "proofs")}
	if v.Query.Has("check") {
		if err := list.verify(v, p.ID); err != nil {
			return nil, err
		}
	}

	page, err := v.Jobs.ListEvents(v, mapreduce.ListEventsQuery{Job: p.ID, PageSize: eventsOnPage, PageToken: v.Query.Get("page")})
	if err != nil {
		return nil, err
	}

	for _, c := range page.Checkpoints {
		list.Rows = append(list.Rows, viewEvent(c))
	}
	if page.NextPageToken != "" {
		list.Next = v.With("page", page.NextPageToken)
	}
	if v.Query.Get("page") != "" {
		list.First = v.With()
	}
	p.Content = list
	return p, nil
}

// verify has the chain computed again.
func (l *eventList) verify(v *visit.Visit, id mapreduce.JobID) error {
	var events, seals int64
	query := mapreduce.ListEventsQuery{Job: id, Verify: true, PageSize: 1000}
	for {
		page, err := v.Jobs.ListEvents(v, query)
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
			l.Verified = visit.Count(events) + " / " + visit.Count(seals)
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
			row.Units += " +" + visit.Count(len(c.Completed)+len(c.Failed)-shown)
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
