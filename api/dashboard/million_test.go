package dashboard_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// A large is a job of many units, each made when it is asked for.
type large struct {
	*stub
	total int
	moved chan struct{} // closed when the job has moved, for all that watch it
}

func (l large) WatchJob(ctx context.Context, _ mapreduce.JobID, fn func(*mapreduce.Job) error) error {
	select {
	case <-l.moved:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := fn(nil)
	<-ctx.Done()
	return err
}

func (l large) GetJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	job, err := l.stub.GetJob(ctx, id)
	if err != nil {
		return nil, err
	}
	seen := *job
	seen.TotalUnits, seen.CompletedUnits = int64(l.total), int64(l.total)
	return &seen, nil
}

// The token is that of the service: LEVEL:INDEX:0. Every tenth unit has failed.
func (l large) ListUnits(_ context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	var level, from int
	if q.PageToken != "" {
		if _, err := fmt.Sscanf(q.PageToken, "%d:%d:0", &level, &from); err != nil {
			return nil, err
		}
	}

	page := &mapreduce.UnitPage{}
	for i := from; i < l.total; i++ {
		state := mapreduce.UnitComplete
		if i%10 == 9 {
			state = mapreduce.UnitFailed
		}
		if len(q.States) > 0 && state != q.States[0] {
			continue
		}
		if len(page.Units) == max(1, q.PageSize) {
			page.NextPageToken = fmt.Sprintf("0:%d:0", i)
			break
		}
		page.Units = append(page.Units, &mapreduce.Unit{
			ID: mapreduce.UnitID("unit-" + strconv.Itoa(i)), Job: q.Job, Index: int64(i), State: state, Stage: "extract", Attempts: 1,
		})
	}
	return page, nil
}

// TestAMillionUnits: the table of a job of a million units leads to each of them, and the browser holds
// few of them.
func TestAMillionUnits(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	s := newStub("plain")
	server := open(t, s, func(c *dashboard.Config) { c.Jobs, c.Tick = large{s, 1_000_000, nil}, time.Hour })
	b := newBrowser(t, server.URL)
	const shown = `document.querySelector("[data-index]").dataset.shown`
	const visible = `(() => { const box = document.querySelector("[data-index]").getBoundingClientRect();
		return [...document.querySelectorAll("#table-units tbody tr[data-key]")].filter((r) => {
			const at = r.getBoundingClientRect(); return at.top >= box.top && at.bottom <= box.bottom; }).map((r) => r.querySelector("bdi").textContent).join(" "); })()`

	b.open("/jobs/" + string(jobID) + "/units")
	b.await(`document.querySelector("table").getAttribute("aria-rowcount") === "1000001"`)
	b.await(shown + ` === "0-200" || ` + shown + ` === "0-100"`)

	for name, c := range map[string]struct{ scroll, want string }{
		"the end":    {"s.scrollHeight", "unit-999999"},
		"the middle": {"(s.scrollHeight - s.clientHeight) / 2", "unit-500000"},
		"near":       {"2000", "unit-70"},
		"the top":    {"0", "unit-0"},
	} {
		b.eval(`(() => { const s = document.querySelector("[data-index]"); s.scrollTop = ` + c.scroll + `; return ""; })()`)
		b.await(`(` + visible + ` + " ").includes("` + c.want + ` ")`)
		if rows, _ := strconv.Atoi(b.eval(`String(document.querySelectorAll("tr").length)`)); rows > 1000 {
			t.Errorf("at %s the page holds %d rows", name, rows)
		}
	}

	// By keyboard alone.
	b.run(chromedp.Focus(chromedp.CSS("[data-index]")), chromedp.KeyEvent(kb.End))
	b.await(`(` + visible + ` + " ").includes("unit-999999 ")`)

	heap := b.heap()
	t.Logf("the page holds %d kB", heap>>10)
	if heap > 200<<20 {
		t.Errorf("the page holds %d MB", heap>>20)
	}

	// Only some states.
	b.open("/jobs/" + string(jobID) + "/units?state=failed")
	b.await(`document.querySelector("table").getAttribute("aria-rowcount") === "100001"`)
	b.run(chromedp.Focus(chromedp.CSS("[data-index]")), chromedp.KeyEvent(kb.End))
	b.await(`(` + visible + ` + " ").includes("unit-999999 ")`)

	// The grid has a dot for some units each.
	b.open("/jobs/" + string(jobID))
	b.await(`document.getElementById("grid").dataset.drawn === "1000000"`)
	if heap := b.heap(); heap > 200<<20 {
		t.Errorf("the page of the job holds %d MB", heap>>20)
	}
	b.checkQuiet()
}

// TestAHundredPages: a hundred open pages of such a job cost a server little memory, and one that reads
// nothing holds up no other.
func TestAHundredPages(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	s := newStub("plain")
	moved := make(chan struct{})
	server := open(t, s, func(c *dashboard.Config) { c.Jobs, c.Tick = large{s, 1_000_000, moved}, time.Hour })
	stuck := follow(t, server.URL+"/jobs/"+string(jobID)+"?live=1")
	before := memoryInUse()

	var pages []*bufio.Reader
	for range 50 {
		for _, page := range []string{"?live=1", "/units?live=1"} {
			pages = append(pages, follow(t, server.URL+"/jobs/"+string(jobID)+page))
		}
	}
	awaitLine := func(of *bufio.Reader, part string) {
		t.Helper()
		for {
			line, err := of.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(line, part) {
				return
			}
		}
	}
	for i, page := range pages {
		awaitLine(page, `{"name":"`+[]string{"notes", "units"}[i%2])
	}
	if more := memoryInUse() - before; more > 64<<20 {
		t.Errorf("100 pages cost %d MiB, of their clients and the server", more>>20)
	} else {
		t.Logf("100 pages cost %d KiB, of their clients and the server", more>>10)
	}

	s.change(func(j *mapreduce.Job) { j.Error = "it has moved" })
	close(moved)
	for _, page := range pages {
		awaitLine(page, "it has moved")
	}
	awaitLine(stuck, "it has moved")
}

// follow opens a stream of a page, of which nothing is read yet.
func follow(t *testing.T, address string) *bufio.Reader {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return bufio.NewReader(answer.Body)
}

// memoryInUse returns the bytes of this process's heap and stacks that are in use.
func memoryInUse() int64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// heap returns what the page and its scripts hold, in bytes.
func (b *browser) heap() int64 {
	b.t.Helper()
	var used float64
	b.run(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		got, err := chromedp.Call(ctx, runtime.GetHeapUsage, cdp.Empty{})
		if err == nil {
			used = got.UsedSize + got.EmbedderHeapUsedSize + got.BackingStorageSize
		}
		return err
	}))
	return int64(used)
}

// Of more failed units than a page reads, it says how many there are, and of how many it knows what they failed for; what it
// offers is to try all of a cause again.
func TestMoreFailedUnitsThanAPageReads(t *testing.T) {
	s := newStub("plain")
	s.job.State, s.job.FailedUnits = mapreduce.JobPaused, 60_000
	server := open(t, s, func(c *dashboard.Config) { c.Jobs = large{s, 600_000, nil} })
	_, body, _ := get(t, server.URL+"/jobs/"+string(jobID)+"/errors?whole=1")
	for _, want := range []string{"60\u202f000 units failed. The first 50\u202f000 of them failed for 1 reasons", "Try all units of this cause again"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q:\n%.3000s", want, body)
		}
	}
	if strings.Contains(body, "Try these") {
		t.Error("the page offers to try some units of a cause again")
	}
}
