// Command pictures makes the pictures of docs/page.md: it runs the README's first job on a server of its own
// and has Chromium show its pages.
//
//	go run ./internal/dev/pictures -program bin/coditect -out docs/images
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/coditect/mapreduce/internal/dev/browse"
)

func main() {
	program := flag.String("program", "bin/coditect", "`file` of the program")
	out := flag.String("out", "docs/images", "`folder` of the pictures")
	flag.Parse()
	if err := draw(context.Background(), *program, *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// draw makes all pictures.
func draw(ctx context.Context, program, out string) (err error) {
	dir, err := os.MkdirTemp("", "pictures")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	address, stop, err := serve(ctx, program, dir)
	if err != nil {
		return err
	}
	defer stop()

	job, err := run(ctx, program, dir)
	if err != nil {
		return err
	}
	passage, err := firstPassage(ctx, address, job)
	if err != nil {
		return err
	}

	ctx, leave, err := browse.Start(ctx, chromedp.WindowSize(1200, 900))
	defer leave()
	if err != nil {
		return err
	}

	for name, path := range map[string]string{
		"page-jobs": "/", "page-job": "/jobs/" + job, "page-units": "/jobs/" + job + "/units", "page-records": "/jobs/" + job + "/records",
		"page-document": passage, "page-history": "/jobs/" + job + "/history", "page-log": "/jobs/" + job + "/events", "page-new": "/new?like=" + job,
		"page-try": "/try?job=" + job, "page-fleet": "/fleet", "page-review": "/jobs/" + job + "/review",
	} {
		if err := shoot(ctx, address+path, filepath.Join(out, name+".png")); err != nil {
			return err
		}
	}
	return nil
}

var served = regexp.MustCompile(`HTTP is served" http=(\S+)`)

// serve starts a server and returns its address.
func serve(ctx context.Context, program, dir string) (address string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, program, "serve", "--data-dir", filepath.Join(dir, "data"), "--http", "127.0.0.1:0") //nolint:gosec // the program is named by whoever starts this one
	log, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() }

	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if m := served.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return "http://" + m[1], stop, nil
		}
	}
	stop()
	return "", nil, errors.New("the server does not say where it serves HTTP")
}

var jobID = regexp.MustCompile(`mr_\d{8}_\w{6}`)

// run runs the README's first job and returns its id.
func run(ctx context.Context, program, dir string) (string, error) {
	cache, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		return "", err
	}
	args := []string{
		"mapreduce", "run", "--data-dir", filepath.Join(dir, "data"), "--input", strings.TrimSpace(string(cache)), "--include", "**/LICENSE*",
		"--schema", "examples/licences/schema.yaml", "--output", filepath.Join(dir, "results"),
	}
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput() //nolint:gosec // the program is named by whoever starts this one
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return string(jobID.Find(out)), nil
}

var documentLink = regexp.MustCompile(`href="(/jobs/[^"]*/document\?[^"#]*#here)"`)

// firstPassage returns the address of the first passage that a value of a job rests on.
func firstPassage(ctx context.Context, address, job string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/jobs/"+job+"/records", nil)
	if err != nil {
		return "", err
	}

	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()

	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	m := documentLink.FindSubmatch(body)
	if m == nil {
		return "", errors.New("no value of the job has a passage")
	}
	return strings.ReplaceAll(string(m[1]), "&amp;", "&"), nil
}

// shoot writes the picture of a page.
func shoot(ctx context.Context, address, file string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	shown := "#main"
	switch {
	case strings.Contains(address, "/try"):
		shown = "#try[data-ready]" // once it has tried the schema
	case strings.HasSuffix(address, "/review"):
		shown = "#text[data-item]" // once the first value has its document
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(address), chromedp.WaitReady(chromedp.CSS(shown))); err != nil {
		return err
	}

	// What scripts draw is there two frames later.
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[string](`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(""))))`, chromedp.EvalAwaitPromise)); err != nil {
		return err
	}
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	return os.WriteFile(file, picture, 0o600)
}
