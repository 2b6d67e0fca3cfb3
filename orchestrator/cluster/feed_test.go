package cluster_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/store/jobs/nodes"
)

const job = mapreduce.JobID("mr_20261123_abc123")

// A feed is there while somebody follows it, and keeps the last of what was said for whoever
// reads slowly; a new feed has a number of its own.
func TestFeeds(t *testing.T) {
	var f cluster.Feeds
	now := time.Unix(1_800_000_000, 0)
	say := func(from, to int) {
		for i := from; i < to; i++ {
			f.Add(job, now, mapreduce.Activity{Note: fmt.Sprint(i)})
		}
	}
	read := func(r *cluster.Follower, want ...string) {
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
	var f cluster.Feeds
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

// notesOf returns the texts of what a follower has not read.
func notesOf(f *cluster.Follower) (all []string) {
	for _, a := range f.Next() {
		all = append(all, a.Note)
	}
	return all
}

// What units of one orchestrator's workers say reaches those who watch the job at another,
// once, though some signs of life are missed; nothing is told of a job that nobody watches.
func TestFeedsOfOtherOrchestrators(t *testing.T) {
	const other = mapreduce.JobID("mr_20261123_def456")
	var here, there cluster.Feeds
	now := time.Unix(1_800_000_000, 0)
	say := func(id mapreduce.JobID, text string) { there.Add(id, now, mapreduce.Activity{Unit: "u", Note: text}) }
	exchange := func() (fresh []mapreduce.JobID) {
		now = now.Add(time.Second)
		there.Hear(now, map[mapreduce.NodeID]nodes.News{"here": here.News()})
		return here.Hear(now, map[mapreduce.NodeID]nodes.News{"there": there.News()})
	}
	f := here.Follow(job)
	say(job, "unheard")
	exchange()
	if there.Number(job) == 0 || there.Number(other) != 0 {
		t.Fatal("what is watched elsewhere is not known")
	}
	say(job, "1")
	say(other, "of a job that nobody watches")
	say(job, "2")
	if fresh := exchange(); len(fresh) != 1 || fresh[0] != job {
		t.Errorf("there are new notes of %v", fresh)
	}
	if got := notesOf(f); fmt.Sprint(got) != "[1 2]" {
		t.Errorf("read %v", got)
	}
	say(job, "3")
	there.News() // a sign of life that nobody reads
	say(job, "4")
	exchange()
	exchange()
	if got := notesOf(f); fmt.Sprint(got) != "[3 4]" {
		t.Errorf("read %v, want what was not read before", got)
	}
	if n := there.News(); n.Told != 4 || len(n.Notes) > 2 {
		t.Errorf("%d notes were told, and are %v", n.Told, n.Notes)
	}
	for range 3 {
		exchange()
	}
	if n := there.News(); len(n.Notes) != 0 || len(n.Watched) != 0 {
		t.Errorf("it still tells %+v", n)
	}
	there = cluster.Feeds{} // another process by the same name
	exchange()
	say(job, "again")
	exchange()
	if got := notesOf(f); fmt.Sprint(got) != "[again]" {
		t.Errorf("read %v of an orchestrator that began anew", got)
	}
	f.Close()
	exchange()
	if there.Number(job) != 0 {
		t.Error("a job is watched elsewhere, where nobody does")
	}
}

// However much units say, and however many jobs are watched, what is told with a sign of life
// is bounded, and is the latest.
func TestNewsIsBounded(t *testing.T) {
	var here, there cluster.Feeds
	now := time.Unix(1_800_000_000, 0)
	var ids []mapreduce.JobID
	for i := range 200 {
		id := mapreduce.JobID(fmt.Sprintf("mr_20261123_%06d", i))
		ids = append(ids, id)
		here.Follow(id)
	}
	n := here.News()
	if len(n.Watched) != 64 || n.Watched[0] != ids[0] || n.Watched[63] != ids[63] {
		t.Fatalf("%d jobs are told to be watched", len(n.Watched))
	}
	there.Hear(now, map[mapreduce.NodeID]nodes.News{"here": n})
	for _, size := range []int{10, protocol.MaxNote, 2000} {
		for i := range 10_000 {
			there.Add(ids[i%64], now, mapreduce.Activity{Unit: "u", Number: int64(i), Note: strings.Repeat("x", size)})
		}
		now = now.Add(time.Minute)
		n, bytes := there.News(), 0
		for _, note := range n.Notes {
			bytes += len(note.Job) + len(note.Unit) + len(note.Note)
		}
		if len(n.Notes) == 0 || len(n.Notes) > 96 || bytes > 32<<10 {
			t.Errorf("notes of %d bytes: %d are told, of %d bytes", size, len(n.Notes), bytes)
		}
		if last := n.Notes[len(n.Notes)-1]; last.Number < 9_000 && size == 10 {
			t.Errorf("the last of them is %d", last.Number)
		}
	}
}
