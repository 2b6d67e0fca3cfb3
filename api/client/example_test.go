package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
)

// exampleServer returns a client of a service in this process, whose jobs complete as soon
// as they are watched. A program would dial: client.Dial("jobs.example.org:7600", …).
func exampleServer() (*client.Client, *servertest.Service, error) {
	service := new(servertest.Service)
	s, err := server.New(finishing{service}, new(servertest.Fleet), server.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	c, err := client.NewInProcess(s, client.Config{Patience: time.Minute})
	return c, service, err
}

// finishing is a service whose jobs complete when they are watched: there are no workers.
type finishing struct{ *servertest.Service }

func (f finishing) WatchJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, fn func(*mapreduce.Job) error) error {
	if job, err := f.GetJob(ctx, by, id); err != nil {
		return err
	} else if err := fn(job); err != nil || job.State.Ended() || job.State == mapreduce.JobPaused {
		return err
	}
	if _, err := f.Finish(id); err != nil {
		return err
	}
	return f.Service.WatchJob(ctx, by, id, fn)
}

// orders yields documents one by one, so that none has to be in memory before it is sent. A
// submission that the service refuses for a while begins again from the first.
func orders(n int) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for i := range n {
			doc := &mapreduce.Document{
				ID: mapreduce.DocumentID(fmt.Sprintf("orders/%d.txt", i)), MediaType: "text/plain",
				Content: fmt.Appendf(nil, "Seller: Acme\nTotal: %d.50\n", 10*(i+1)),
			}
			if !yield(doc, nil) {
				return
			}
		}
	}
}

const exampleSchema = `{"type": "object", "properties": {"seller": {"type": "string"}, "total": {"type": "number"}}}`

// Submit and wait: a job is submitted and followed until it has ended.
func Example_submitAndWait() {
	c, _, err := exampleServer()
	must(err)
	defer c.Close()
	ctx := context.Background()

	job, err := c.SubmitJob(ctx, mapreduce.JobSpec{
		RequestID: "orders of May", // a second submission with it would get the same job
		Schema:    []byte(exampleSchema),
	}, orders(2))
	must(err)
	must(c.WatchJob(ctx, job.ID, func(now *mapreduce.Job) error {
		job = now
		return nil
	}))
	fmt.Println(job.State, job.Coverage.Documents.Mapped)

	again, err := c.SubmitJob(ctx, mapreduce.JobSpec{RequestID: "orders of May", Schema: []byte(exampleSchema)}, orders(2))
	must(err)
	fmt.Println("the same job:", again.ID == job.ID)
	// Output:
	// complete 2
	// the same job: true
}

// Stream documents: they are read while they are sent, and large ones go in pieces.
func ExampleClient_SubmitJob() {
	c, service, err := exampleServer()
	must(err)
	defer c.Close()

	job, err := c.SubmitJob(context.Background(), mapreduce.JobSpec{Schema: []byte(exampleSchema)},
		func(yield func(*mapreduce.Document, error) bool) {
			yield(&mapreduce.Document{ID: "large.txt", Content: []byte(strings.Repeat("a line of text\n", 100_000))}, nil)
		})
	must(err)
	for _, doc := range service.Documents(job.ID) { // what the service has got
		fmt.Println(doc.ID, len(doc.Content), "bytes")
	}
	// Output: large.txt 1500000 bytes
}

// Watch: a function is told of each change, and may end the watch by an error.
func ExampleClient_WatchJob() {
	c, _, err := exampleServer()
	must(err)
	defer c.Close()
	ctx := context.Background()
	job, err := c.SubmitJob(ctx, mapreduce.JobSpec{Schema: []byte(exampleSchema)}, orders(3))
	must(err)
	must(c.WatchJob(ctx, job.ID, func(now *mapreduce.Job) error {
		fmt.Printf("%s: %d of %d units\n", now.State, now.CompletedUnits, now.TotalUnits)
		return nil
	}))
	// Output:
	// mapping: 0 of 3 units
	// complete: 3 of 3 units
}

// Read results: as parts, one after another, or as the file result.json.
func ExampleClient_GetResult() {
	c, _, err := exampleServer()
	must(err)
	defer c.Close()
	ctx := context.Background()
	job, err := c.SubmitJob(ctx, mapreduce.JobSpec{Schema: []byte(exampleSchema)}, orders(2))
	must(err)
	must(c.WatchJob(ctx, job.ID, func(*mapreduce.Job) error { return nil }))

	must(c.GetResult(ctx, job.ID, false, func(p *mapreduce.ResultPart) error {
		switch {
		case p.Record != nil:
			fmt.Printf("record %s\n", p.Record)
		case p.Citation != nil:
			fmt.Printf("cites %s %d–%d: %q\n", p.Citation.Document, p.Citation.Start, p.Citation.End, p.Citation.Quote)
		}
		return nil
	}))

	var file strings.Builder // or a file
	must(c.GetResultFile(ctx, job.ID, false, &file))
	fmt.Println("result.json is JSON:", json.Valid([]byte(file.String())))
	// Output:
	// record {"document":"orders/0.txt"}
	// record {"document":"orders/1.txt"}
	// cites orders/0.txt 0–26: "Seller: Acme\nTotal: 10.50\n"
	// cites orders/1.txt 0–26: "Seller: Acme\nTotal: 20.50\n"
	// result.json is JSON: true
}

// Resume: a job that was paused, or that failed, goes on where it was, here with a larger
// budget.
func ExampleClient_ResumeJob() {
	c, _, err := exampleServer()
	must(err)
	defer c.Close()
	ctx := context.Background()
	job, err := c.SubmitJob(ctx, mapreduce.JobSpec{Schema: []byte(exampleSchema), Budget: 1000}, orders(1))
	must(err)
	job, err = c.PauseJob(ctx, job.ID)
	must(err)
	fmt.Println(job.State)
	job, err = c.ResumeJob(ctx, job.ID, mapreduce.Resume{Budget: 2000})
	must(err)
	must(c.WatchJob(ctx, job.ID, func(now *mapreduce.Job) error {
		job = now
		return nil
	}))
	fmt.Println(job.State)
	// Output:
	// paused
	// complete
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		panic(err)
	}
}
