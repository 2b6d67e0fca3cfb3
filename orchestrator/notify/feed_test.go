package notify_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/notify"
)

const job = mapreduce.JobID("mr_20261123_abc123")

// A feed is there while somebody follows it, and keeps the last of what was said for whoever
// reads slowly; a new feed has a number of its own.
func TestFeeds(t *testing.T) {
	var f notify.Feeds
	now := time.Unix(1_800_000_000, 0)
	say := func(from, to int) {
		for i := from; i < to; i++ {
			f.Add(job, now, mapreduce.Activity{Note: fmt.Sprint(i)})
		}
	}
	read := func(r *notify.Follower, want ...string) {
		t.Helper()
		var got []string
		for _, a := range r.Next() {
			got = append(got, a.Note)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("read %v, want %v", got, want)
		}
	}
	say(0, 5)
	if f.Number(job) != 0 {
		t.Error("there is a feed that nobody follows")
	}
	a := f.Follow(job)
	number := f.Number(job)
	read(a)
	say(5, 7)
	b := f.Follow(job)
	read(a, "5", "6")
	read(a)
	read(b, "5", "6")
	a.Close()
	if f.Number(job) != number {
		t.Error("the feed ended with the first of two followers")
	}
	say(7, 8)
	read(b, "7")
	b.Close()
	c := f.Follow(job)
	defer c.Close()
	if f.Number(job) == number {
		t.Error("a new feed has the number of an old one")
	}
	read(c)
	for range 10 { // it may say 256 at once, and 64 a second after that
		say(0, 1000)
		now = now.Add(time.Second)
	}
	if got := c.Next(); len(got) != 256 {
		t.Errorf("%d notes are kept of what nobody reads", len(got))
	}
	now = now.Add(500 * time.Millisecond)
	say(0, 1000)
	if got := c.Next(); len(got) != 96 {
		t.Errorf("%d notes after one and a half seconds, want 96", len(got))
	}
}

// E7: many units say something at once while followers come, read and go. Each follower sees
// everything once, and of each unit in the order in which it was said.
func TestE7ManyTellAndFollowAtOnce(t *testing.T) {
	var f notify.Feeds
	const units, each = 8, 30 // as many notes as a feed keeps
	keeper := f.Follow(job)
	defer keeper.Close()
	var telling, following sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		following.Go(func() {
			r := f.Follow(job)
			defer r.Close()
			last := make(map[mapreduce.UnitID]int64)
			for ended := false; !ended; {
				select {
				case <-done:
					ended = true // and what is left is read
				default:
				}
				for _, a := range r.Next() {
					if a.Number != last[a.Unit]+1 {
						t.Errorf("unit %s: note %d came behind %d", a.Unit, a.Number, last[a.Unit])
					}
					last[a.Unit] = a.Number
				}
			}
			for u := range units {
				if n := last[mapreduce.UnitID(fmt.Sprint(u))]; n != each {
					t.Errorf("a follower saw %d notes of unit %d, want %d", n, u, each)
				}
			}
		})
	}
	start := time.Unix(1_800_000_000, 0)
	var passed atomic.Int64 // seconds
	for u := range units {
		telling.Go(func() {
			for n := range int64(each) { // a second passes between two notes: none is too many
				f.Add(job, start.Add(time.Duration(passed.Add(1))*time.Second), mapreduce.Activity{Unit: mapreduce.UnitID(fmt.Sprint(u)), Number: n + 1})
			}
		})
	}
	telling.Wait()
	close(done)
	following.Wait()
}
