// Command pagetimes says how long the pages of a job take until one can use them, and what they hold in a browser:
//
//	go run ./internal/dev/pagetimes -server http://127.0.0.1:7680 -job mr_20260131_1a2b3c
//
// A page can be used when it shows what it is for: the first rows of a list, the first value of a review. It is whole
// when it also has what its scripts read behind that, such as where each of a million units stands.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/coditect/mapreduce/internal/dev/browse"
)

func main() {
	server := flag.String("server", "http://127.0.0.1:7680", "`address` of the pages")
	job := flag.String("job", "", "`id` of the job")
	unit := flag.String("unit", "0.0", "`place` of a unit: its level and its index")
	patience := flag.Duration("patience", 5*time.Minute, "how long a page is waited for")
	flag.Parse()
	if err := measure(context.Background(), *server, *job, *unit, *patience); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A page is one that is measured.
type page struct {
	path          string
	usable, whole string // expressions that hold then; whole is empty if nothing comes behind
}

// pagesOf returns the pages of a job.
func pagesOf(job, unit string) []page {
	of := "/jobs/" + job
	rows := func(part string) string { return `document.querySelector("` + part + ` tbody tr")` }
	return []page{
		{"/", rows("#part-jobs"), ""},
		{of, `document.querySelector("#part-progress dd")`, `document.getElementById("grid").dataset.drawn === document.getElementById("part-head").dataset.shape.split(".")[0]`},
		{of + "/units", `document.querySelector("#part-units tbody tr, #table-units tbody tr")`, `document.querySelector("#table-units table").getAttribute("aria-rowcount")`},
		{of + "/units?state=failed", `document.querySelector("main")`, ""},
		{of + "/units/" + unit, `document.querySelector("#part-unit")`, ""},
		{of + "/records", `document.querySelector("#part-records [role=status]")`, ""},
		{of + "/records?sort=total", `document.querySelector("#part-records [role=status]")`, ""},
		{of + "/review", `document.getElementById("part-head")`, `document.querySelector("#text[data-item]") || document.getElementById("progress").textContent`},
		{of + "/errors", `document.querySelector("#part-errors")`, ""},
		{of + "/history", `document.querySelector("#part-history")`, ""},
		{of + "/events", rows("#part-log"), ""},
	}
}

// measure opens each page and writes what it took.
func measure(ctx context.Context, server, job, unit string, patience time.Duration) error {
	ctx, stop, err := browse.Start(ctx)
	defer stop()
	if err != nil {
		return err
	}

	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "page\tusable, ms\twhole, ms\tholds, MB\t")
	for _, p := range pagesOf(job, unit) {
		usable, whole, heap, err := p.measure(ctx, server, patience)
		if err != nil {
			fmt.Fprintf(table, "%s\t%v\t\t\t\n", p.path, err)
			continue
		}
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.1f\t\n", p.path, usable, whole, float64(heap)/(1<<20))
	}
	return table.Flush()
}

// until is the time, in milliseconds since the page was asked for, at which an expression holds.
const until = `new Promise((resolve) => {
	const look = () => { let holds = false; try { holds = Boolean(%s); } catch {} if (holds) resolve(performance.now()); else requestAnimationFrame(look); };
	look();
})`

// measure opens the page, and returns after how many milliseconds it could be used and was whole, and how many
// bytes it held then.
func (p page) measure(ctx context.Context, server string, patience time.Duration) (usable, whole float64, heap int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(server+p.path)); err != nil {
		return 0, 0, 0, err
	}
	if usable, err = chromedp.Run(ctx, chromedp.Evaluate[float64](fmt.Sprintf(until, p.usable), chromedp.EvalAwaitPromise)); err != nil {
		return 0, 0, 0, err
	}
	whole = usable
	if p.whole != "" {
		if whole, err = chromedp.Run(ctx, chromedp.Evaluate[float64](fmt.Sprintf(until, p.whole), chromedp.EvalAwaitPromise)); err != nil {
			return 0, 0, 0, err
		}
	}

	err = chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		if _, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
			return err
		}
		used, err := chromedp.Call(ctx, runtime.GetHeapUsage, cdp.Empty{})
		if err == nil {
			heap = int64(used.UsedSize + used.EmbedderHeapUsedSize + used.BackingStorageSize)
		}
		return err
	}))
	return usable, whole, heap, err
}
