package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store/failpoint"
)

const reviewedSchema = `
title: receipt
type: object
properties:
  number: {type: string, x-coditect: {labels: [NUMBER]}}
  shop: {type: string, x-coditect: {labels: [SHOP]}}
  city: {type: string, x-coditect: {labels: [CITY]}}
  total: {type: number, x-coditect: {labels: [TOTAL]}}
  paid: {type: number, x-coditect: {labels: [PAID]}}
`

var reviewedFields = []string{"number", "shop", "city", "total", "paid"}

// A desk is a server that is killed again and again, and somebody who decides about values of its job.
type desk struct {
	h       *house
	job     string
	address string
	serve   func() // starts the server anew
	deaths  int
}

// post sends a decision until the server has answered: it is killed after some, before or behind the
// transaction that keeps one, and started again.
func (d *desk) post(decision map[string]any) {
	d.h.t.Helper()
	body, err := json.Marshal(decision)
	if err != nil {
		d.h.t.Fatal(err)
	}
	for {
		answer, err := http.Post("http://"+d.address+"/v1/jobs/"+d.job+"/decisions", "application/json", strings.NewReader(string(body)))
		if err != nil {
			d.deaths++
			d.serve()
			continue
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			d.deaths++
			d.serve()
			continue
		}
		if answer.StatusCode != http.StatusOK {
			d.h.t.Fatalf("%s: %s\n%s", body, answer.Status, text)
		}
		return
	}
}

// Of 500 values that are decided about while the server is killed at each end of the transaction that
// keeps a decision, none is lost and none is there twice; result, eval and audit agree about them, and a
// job over the records has the corrected values.
func TestDecisionsSurviveKills(t *testing.T) {
	testenv.Lengthy(t)
	testenv.SlowOnFDB(t)

	h := newHouse(t, &corpus{program: build(t)})
	const documents = 100
	receiptsToReview(t, h, documents)
	h.want(0, "run", "--input", "docs", "--schema", "schema.yaml", "--output", "out")
	job, _ := h.job()

	d := &desk{h: h, job: job.JobID}
	stop := func() {}
	d.serve = func() {
		stop()
		at := []string{"decide.before:90", "decide.after:80"}[d.deaths%2]
		said := &output{more: make(chan struct{})}
		cmd := h.command([]string{failpoint.Variable + "=" + at}, "serve", "--listen", "unix", "--http", "127.0.0.1:0")
		cmd.Stdout, cmd.Stderr = said, said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stop = func() {
			_ = cmd.Process.Kill() // it may be dead
			_ = cmd.Wait()
		}
		d.address = said.await(t, `msg="HTTP is served" http=(\S+)`)
	}
	d.serve()
	defer func() { stop() }()

	// Every fifth value is corrected, every fifth is not in its document, and the others are right.
	for i := range documents {
		for n, field := range reviewedFields {
			decision := map[string]any{"recordId": fmt.Sprintf("%d.0", int64(i)<<20), "field": field, "requestId": fmt.Sprintf("%d-%s", i, field), "verdict": "REVIEW_VERDICT_ACCEPT"}
			switch n {
			case 3:
				decision["verdict"], decision["value"] = "REVIEW_VERDICT_CORRECT", fmt.Sprintf("%d.75", i)
			case 2:
				decision["verdict"] = "REVIEW_VERDICT_ABSENT"
			}
			d.post(decision)
		}
	}
	if d.deaths < 5 {
		t.Errorf("the server was killed %d times", d.deaths)
	}
	stop()

	wantReviewed(t, h, d.job, documents)
	report, err := os.ReadFile(h.path(filepath.Join("after", "report.md")))
	if err != nil || !strings.Contains(string(report), "1.75 (reviewed: correct by local; the job found 1.5)") {
		t.Errorf("report.md does not mark the corrected value: %v", err)
	}
	page, err := os.ReadFile(h.path(filepath.Join("after", "report.html")))
	if err != nil || !strings.Contains(string(page), "reviewed: correct by local") {
		t.Errorf("report.html does not mark the corrected value: %v", err)
	}

	h.want(0, "run", "--input", "job:"+d.job, "--schema", "schema.yaml", "--output", "chained")
	chained, err := os.ReadFile(h.path(filepath.Join("chained", "result.json")))
	if err != nil || !strings.Contains(string(chained), "42.75") || strings.Contains(string(chained), "42.5,") || strings.Contains(string(chained), "City 42") {
		t.Errorf("a job over the records does not have the corrected values: %v", err)
	}
	h.healthy()
}
