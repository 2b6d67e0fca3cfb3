package states_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/dashboard/states"
	"github.com/coditect/mapreduce/api/mapreduce"
)

const jobID = mapreduce.JobID("mr_20260131_1a2b3c")

// A job lists units as a service does: an unit in each thousand has failed, and one is parked.
type job struct {
	units int
	takes time.Duration // to list a page
	older bool          // the service knows no standings

	mu    sync.Mutex // guards the variables below
	pages int        // that were listed
	now   int        // that are being listed
	most  int        // at the same time
	state mapreduce.UnitState
}

func (j *job) list(ctx context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	j.mu.Lock()
	j.pages++
	j.now++
	j.most = max(j.most, j.now)
	state := j.state
	j.mu.Unlock()
	defer func() {
		j.mu.Lock()
		j.now--
		j.mu.Unlock()
	}()

	select {
	case <-time.After(j.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	from := 0
	if q.PageToken != "" {
		if _, err := fmt.Sscanf(q.PageToken, "0:%d:0", &from); err != nil {
			return nil, err
		}
	}
	page := &mapreduce.UnitPage{}
	for i := from; i < min(j.units, from+q.PageSize); i++ {
		u := &mapreduce.Unit{Index: int64(i), State: state}
		switch i % 1000 {
		case 7:
			u.State = mapreduce.UnitFailed
		case 8:
			u.State, u.Parking = mapreduce.Pending, &mapreduce.Parking{}
		}
		if q.Standings && !j.older {
			page.Standings = append(page.Standings, mapreduce.UnitStanding{State: u.State, Parked: u.Parking != nil})
		} else {
			page.Units = append(page.Units, u)
		}
	}
	if next := from + len(page.Units) + len(page.Standings); next < j.units {
		page.NextPageToken = fmt.Sprintf("0:%d:0", next)
	}
	return page, nil
}

func (j *job) read() (pages, most int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pages, j.most
}

func (j *job) at(version string) states.Job {
	return states.Job{ID: jobID, Version: version, Units: int64(j.units), Running: true}
}

// A browser keeps what it is sent, as the pages do.
type browser struct {
	states string
	anew   int // how often it was sent from the first line on
}

func (b *browser) emit(l states.Line) error {
	if l.First == 0 {
		b.states = ""
		b.anew++
	}
	if l.First != len(b.states) {
		return fmt.Errorf("a line begins at %d, behind %d units", l.First, len(b.states))
	}
	b.states += l.States
	return nil
}

func newJob(units int) *job {
	return &job{units: units, takes: time.Second, state: mapreduce.UnitComplete}
}

func newIndex() *states.Index { return states.New(states.Config{Least: 2000, Room: 20_000}) }

// want is what a browser has of a job.
func want(units int, letter string) string {
	all := strings.Repeat(letter[:1], units)
	var out strings.Builder
	for at := 0; at < units; at += 1000 {
		out.WriteString(all[at:at+7] + "fp" + all[at+9:min(at+1000, units)])
	}
	return out.String()
}

func TestSharing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, x := newJob(9_500), newIndex()
		var seen [8]browser
		var group sync.WaitGroup
		for i := range seen {
			group.Go(func() {
				time.Sleep(time.Duration(i) * 300 * time.Millisecond) //nolint:forbidigo // in a synctest bubble
				if err := x.Send(t.Context(), j.at("1"), nil, j.list, seen[i].emit); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()

		for i := range seen {
			if seen[i] != (browser{want(9_500, "c"), 1}) {
				t.Errorf("request %d got %d units, and %d times from the first on", i, len(seen[i].states), seen[i].anew)
			}
		}
		if pages, most := j.read(); pages != 10 || most != 1 {
			t.Errorf("%d pages were read, %d at the same time; want 10 once", pages, most)
		}
	})
}

// TestAnOlderService: one that knows no standings answers with units.
func TestAnOlderService(t *testing.T) {
	j, x := newJob(3_000), newIndex()
	j.takes, j.older = 0, true
	var b browser
	if err := x.Send(t.Context(), j.at("1"), nil, j.list, b.emit); err != nil || b.states != want(3_000, "c") {
		t.Errorf("got %d units, and %v", len(b.states), err)
	}
}

// TestLeaving: what one has read who goes away, others go on with.
func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, x := newJob(9_500), newIndex()
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		var first, second browser
		var group sync.WaitGroup
		group.Go(func() {
			if err := x.Send(ctx, j.at("1"), nil, j.list, first.emit); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		group.Go(func() {
			if err := x.Send(t.Context(), j.at("1"), nil, j.list, second.emit); err != nil {
				t.Error(err)
			}
		})
		group.Wait()

		if second != (browser{want(9_500, "c"), 1}) {
			t.Errorf("the one who stayed got %d units, and %d times from the first on", len(second.states), second.anew)
		}
		if pages, most := j.read(); pages > 11 || most != 1 {
			t.Errorf("%d pages were read, %d at the same time; want at most one twice", pages, most)
		}
	})
}

// TestSlow: one that takes nothing holds up nobody.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, x := newJob(9_500), newIndex()
		stuck := make(chan struct{})
		var slow, quick browser
		var group sync.WaitGroup
		group.Go(func() {
			err := x.Send(t.Context(), j.at("1"), nil, j.list, func(l states.Line) error {
				<-stuck
				return slow.emit(l)
			})
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if err := x.Send(t.Context(), j.at("1"), nil, j.list, quick.emit); err != nil {
			t.Error(err)
		}
		close(stuck)
		group.Wait()

		if quick != slow || quick.states != want(9_500, "c") {
			t.Errorf("one got %d units, the other %d", len(quick.states), len(slow.states))
		}
	})
}

// TestVersions: of a later version what is known is sent, and then what is so now; of the same one nothing is read
// again, unless the job has run on for long.
func TestVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, x := newJob(3_000), newIndex()
		for _, c := range []struct {
			name    string
			version string
			state   mapreduce.UnitState
			wait    time.Duration
			want    string
			anew    int
			pages   int
		}{
			{"first", "1", mapreduce.Pending, 0, "w", 1, 3},
			{"again", "1", mapreduce.Pending, 0, "w", 1, 3},
			{"moved", "2", mapreduce.UnitComplete, 0, "c", 2, 6},
			{"still", "2", mapreduce.UnitComplete, time.Second, "c", 1, 6},
			{"later", "2", mapreduce.UnitCancelled, time.Minute, "x", 2, 9},
		} {
			time.Sleep(c.wait) //nolint:forbidigo // in a synctest bubble
			j.state = c.state
			var b browser
			if err := x.Send(t.Context(), j.at(c.version), nil, j.list, b.emit); err != nil {
				t.Fatal(err)
			}
			if b != (browser{want(3_000, c.want), c.anew}) {
				t.Errorf("%s: got %q... of %d units, %d times from the first on", c.name, b.states[:10], len(b.states), b.anew)
			}
			if pages, _ := j.read(); pages != c.pages {
				t.Errorf("%s: %d pages were read, want %d", c.name, pages, c.pages)
			}
		}
	})
}

// TestMeanwhile: whoever comes while an earlier version is read has that first, and then what is so now; of those
// that wait one reads that.
func TestMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, x := newJob(5_000), newIndex()
		var early browser
		var late [3]browser
		var group sync.WaitGroup
		group.Go(func() {
			if err := x.Send(t.Context(), j.at("1"), nil, j.list, early.emit); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(4500 * time.Millisecond) //nolint:forbidigo // in a synctest bubble
		j.mu.Lock()
		j.state = mapreduce.UnitCancelled
		j.mu.Unlock()
		for i := range late {
			group.Go(func() {
				if err := x.Send(t.Context(), j.at("2"), nil, j.list, late[i].emit); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()

		if early.states != want(5_000, "c") {
			t.Errorf("the first got %d units", len(early.states))
		}
		for i := range late {
			if late[i] != (browser{want(5_000, "x"), 2}) {
				t.Errorf("request %d got %d units, and %d times from the first on", i, len(late[i].states), late[i].anew)
			}
		}
		if pages, most := j.read(); pages != 10 || most != 1 {
			t.Errorf("%d pages were read, %d at the same time; want 10 once", pages, most)
		}
	})
}

// TestRoom: few units are not kept, more than there is room for neither, and those asked for last are.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newIndex()
		send := func(id mapreduce.JobID, units int) (pages int) {
			j := newJob(units)
			of := j.at("1")
			of.ID, of.Running = id, false
			if err := x.Send(t.Context(), of, nil, j.list, new(browser).emit); err != nil {
				t.Fatal(err)
			}
			pages, _ = j.read()
			return pages
		}

		got := []int{
			send("a", 1_000), send("a", 1_000), send("b", 21_000), send("b", 21_000), // none of them is kept
			send("c", 9_000), send("d", 9_000), send("c", 9_000),
			send("e", 9_000), send("c", 9_000), send("d", 9_000), // there was room for c and e
		}
		if diff := cmp.Diff([]int{1, 1, 21, 21, 9, 9, 0, 9, 0, 9}, got); diff != "" {
			t.Errorf("pages that were read (-want +got):\n%s", diff)
		}
	})
}

// TestChosen: units in some states, and where the first one is.
func TestChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, x := newJob(3_000), newIndex()
		if _, _, known := x.First(j.at("1"), []mapreduce.UnitState{mapreduce.UnitFailed}); known {
			t.Error("it is known where units are that nobody has read")
		}

		var b browser
		var starts []states.Line
		err := x.Send(t.Context(), j.at("1"), []mapreduce.UnitState{mapreduce.Pending, mapreduce.UnitFailed}, j.list, func(l states.Line) error {
			starts = append(starts, l)
			return b.emit(l)
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]states.Line{{"fp", "", 0}, {"fp", "0:1000:0", 2}, {"fp", "0:2000:0", 4}}, starts); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}

		for state, want := range map[mapreduce.UnitState]bool{mapreduce.UnitFailed: true, mapreduce.Pending: true, mapreduce.Blocked: false} {
			if token, found, known := x.First(j.at("1"), []mapreduce.UnitState{state}); token != "" || found != want || !known {
				t.Errorf("%s begins at %q, found %t, known %t", state, token, found, known)
			}
		}
		if _, _, known := x.First(j.at("2"), []mapreduce.UnitState{mapreduce.UnitFailed}); known {
			t.Error("of a later version it is known where units are")
		}
	})
}

// TestErrors: what cannot be read is said to whoever reads it, and the next one tries it.
func TestErrors(t *testing.T) {
	j, x := newJob(3_000), newIndex()
	j.takes = 0
	broken := errors.New("the store is away")
	fails := func(ctx context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
		if q.PageToken != "" {
			return nil, broken
		}
		return j.list(ctx, q)
	}
	if err := x.Send(t.Context(), j.at("1"), nil, fails, new(browser).emit); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	var b browser
	if err := x.Send(t.Context(), j.at("1"), nil, j.list, b.emit); err != nil || b.states != want(3_000, "c") {
		t.Errorf("then got %d units, and %v", len(b.states), err)
	}
}
