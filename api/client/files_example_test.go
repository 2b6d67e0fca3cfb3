package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/plain"
)

// A folder of documents is submitted with a schema, and its records and result.json are
// read. The server of the example is in this process; a program would call client.Dial.
func ExampleSubmitFolder() {
	service := new(servertest.Service)
	s, err := server.New(service, new(servertest.Fleet), server.Config{Logger: slog.New(slog.DiscardHandler)})
	must(err)
	c, err := client.NewInProcess(s, client.Config{})
	must(err)
	defer c.Close()

	folder, err := os.MkdirTemp("", "documents")
	must(err)
	defer func() { must(os.RemoveAll(folder)) }()
	must(os.WriteFile(filepath.Join(folder, "a.txt"), []byte("Seller: Acme"), 0o600))
	must(os.WriteFile(filepath.Join(folder, "b.html"), []byte("<p>Seller: Bolt</p>"), 0o600))
	must(os.WriteFile(filepath.Join(folder, "c.pdf"), []byte("%PDF-1.7"), 0o600))
	formats, err := document.NewRegistry(plain.TextFormat(), html.Format())
	must(err)

	ctx := context.Background()
	job, err := client.SubmitFolder(ctx, c, client.FolderJob{
		Folder:  folder,
		Formats: registry{formats},
		Schema:  []byte("type: object\nproperties:\n  seller: {type: string}\n"),
		Spec:    mapreduce.JobSpec{Parallelism: 4},
	})
	must(err)
	_, err = service.Finish(job.ID) // what workers do
	must(err)
	job, err = client.Wait(ctx, c, job.ID)
	must(err)
	fmt.Println(job.State, "documents:", job.Coverage.Documents.Mapped, "skipped:", job.Coverage.Documents.Skipped)

	must(client.WriteRecords(ctx, c, job.ID, os.Stdout))

	var result bytes.Buffer
	must(c.GetResultFile(ctx, job.ID, false, &result))
	var got struct {
		Status  string                      `json:"status"`
		Records []map[string]any            `json:"aggregated_data"`
		Skipped []mapreduce.SkippedDocument `json:"skipped_documents"`
	}
	must(json.Unmarshal(result.Bytes(), &got))
	fmt.Println("result.json:", got.Status, len(got.Records), "records,", got.Skipped[0].Reason)
	// Output:
	// complete documents: 2 skipped: 1
	// {"document":"a.txt"}
	// {"document":"b.html"}
	// result.json: complete 2 records, a PDF file, not text
}
