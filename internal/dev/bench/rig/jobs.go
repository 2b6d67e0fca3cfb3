package rig

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// NoopSpec is a job whose outputs are reduced ten at a time.
func NoopSpec(slots int) mapreduce.JobSpec {
	return mapreduce.JobSpec{
		Provider: Provider, Schema: []byte(`{"type":"object"}`), Parallelism: slots, ReduceContextLimit: 1,
	}
}

// letters are what noise is spelled with where it has to be text.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ."

// noiseDocuments yields n small documents, all different, which no compression makes
// much less.
func noiseDocuments(n, size int) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for i := range n {
			text := randomBytes(int64(i), size)
			for k, b := range text {
				text[k] = letters[b%64]
			}

			d := &mapreduce.Document{ID: mapreduce.DocumentID(UnitName(i)), Content: text}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// Documents yields n small documents, as those of SubmitDocuments.
func Documents(n int) iter.Seq2[*mapreduce.Document, error] { return noiseDocuments(n, TextBytes) }

// SubmitDocuments submits a job of n small documents, and returns its id.
func (s *System) SubmitDocuments(ctx context.Context, spec mapreduce.JobSpec, n int) (mapreduce.JobID, error) {
	job, err := s.SubmitJob(ctx, spec, Documents(n))
	if err != nil {
		return "", err
	}
	return job.ID, nil
}

// The sizes of a unit's text and output, unless a figure says otherwise.
const (
	TextBytes   = 256
	OutputBytes = 2048
)

// AwaitComplete waits until a job is complete.
func (s *System) AwaitComplete(ctx context.Context, id mapreduce.JobID) error {
	return s.AwaitJob(ctx, id, func(*mapreduce.Job) bool { return false })
}

var errSeen = errors.New("seen")

// AwaitJob watches a job until it is as wanted, or complete.
func (s *System) AwaitJob(ctx context.Context, id mapreduce.JobID, wanted func(*mapreduce.Job) bool) error {
	var last *mapreduce.Job
	err := s.WatchJob(ctx, id, func(j *mapreduce.Job) error {
		if last = j; wanted(j) {
			return errSeen
		}
		return nil
	})

	switch {
	case errors.Is(err, errSeen):
		return nil
	case err != nil:
		return err
	case last.State != mapreduce.JobComplete || last.FailedUnits > 0:
		return fmt.Errorf("job %s ended %v with %d failed units: %s", id, last.State, last.FailedUnits, last.Error)
	}
	return nil
}

// AwaitEnded waits until a job has ended, with failed units or without.
func (s *System) AwaitEnded(ctx context.Context, id mapreduce.JobID) (last *mapreduce.Job, err error) {
	err = s.WatchJob(ctx, id, func(j *mapreduce.Job) error {
		last = j
		return nil
	})
	if err == nil && last.State != mapreduce.JobComplete {
		err = fmt.Errorf("job %s ended %v: %s", id, last.State, last.Error)
	}
	return last, err
}

// WarmUp runs a few jobs, so that later ones find connections and caches made.
func (s *System) WarmUp(ctx context.Context, spec mapreduce.JobSpec) error {
	for range 5 {
		id, err := s.SubmitDocuments(ctx, spec, 1)
		if err != nil {
			return err
		}
		if err := s.AwaitComplete(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// JobDuration returns how long a job took from a state on until it ended, by its own
// record: a watcher of a job sees it ten times a second, and a thousand outputs are
// reduced in that time.
func (s *System) JobDuration(ctx context.Context, id mapreduce.JobID, since mapreduce.JobState) (time.Duration, error) {
	var began, ended time.Time
	err := s.eachCheckpoint(ctx, id, func(c *mapreduce.Checkpoint) {
		if began.IsZero() && c.Kind == mapreduce.EventState && c.State >= since {
			began = c.Time
		}
		ended = c.Time
	})
	return ended.Sub(began), err
}

// LastPhase returns how long a complete job took from its last level on, which is that of
// its result.
func (s *System) LastPhase(ctx context.Context, id mapreduce.JobID) (time.Duration, error) {
	var began, ended time.Time
	err := s.eachCheckpoint(ctx, id, func(c *mapreduce.Checkpoint) {
		if c.Kind == mapreduce.EventState {
			began, ended = ended, c.Time
		}
	})
	return ended.Sub(began), err
}

// eachCheckpoint visits the record of a job.
func (s *System) eachCheckpoint(ctx context.Context, id mapreduce.JobID, visit func(*mapreduce.Checkpoint)) error {
	q := mapreduce.ListEventsQuery{Job: id, PageSize: 1000}
	for more := true; more; more = q.PageToken != "" {
		page, err := s.ListEvents(ctx, q)
		if err != nil {
			return err
		}

		for _, c := range page.Checkpoints {
			visit(c)
		}
		q.PageToken = page.NextPageToken
	}
	return nil
}
