// Command scans measures how pictures are read by a built program, beside Tesseract alone, in turns: pages
// a second, processor time and memory; the first page from a cold start; how fast commands start that see no
// picture; and a job of scans beside busy processes. It prints a table for BENCHMARKS.md.
//
// It measures and decides nothing, and imports nothing of what it measures.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scans:", err)
		stop()
		os.Exit(1)
	}
}

// A bench is what is measured, and on what.
type bench struct {
	program, before string   // the program, and an older one whose start is compared
	tesseract       string   // path
	pictures        []string // that are read again and again, each time as others
	dir             string   // for everything that is written
	pages, laps     int
	busy            int // pages that are read beside busy processes
}

func run(ctx context.Context, args []string) (err error) {
	b := &bench{}
	flags := flag.NewFlagSet("scans", flag.ContinueOnError)
	flags.StringVar(&b.program, "program", "bin/coditect", "the program to measure")
	flags.StringVar(&b.before, "before", "", "an older `program` whose start is compared")
	flags.IntVar(&b.pages, "pages", 1000, "pages in all")
	flags.IntVar(&b.laps, "laps", 10, "into so many laps they are divided, each beside one of Tesseract")
	flags.IntVar(&b.busy, "busy", 200, "pages of the job beside busy processes")
	folder := flags.String("pictures", "", "folder of JPEG pictures (default: those below scans in the data of CODITECT_TESTDATA)")
	if err := flags.Parse(args); err != nil {
		return err
	}

	if b.tesseract, err = exec.LookPath("tesseract"); err != nil {
		return err
	}
	if b.program, err = filepath.Abs(b.program); err != nil {
		return err
	}
	if b.pictures, err = picturesIn(*folder); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "scans-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()

	fmt.Printf("%d pictures, %s, %d processors, load %s\n\n| figure | value | beside it, in the same run |\n|---|---|---|\n", len(b.pictures), runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU(), load())
	for _, measure := range []func(context.Context) error{b.measurePages, b.measureCold, b.measureStarts, b.measureBusy} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("\nat the end: load %s\n", load())
	return nil
}

// picturesIn returns the pictures of a folder, or those of the data for tests.
func picturesIn(folder string) ([]string, error) {
	pattern := filepath.Join(folder, "*.jpg")
	if folder == "" {
		pattern = filepath.Join(os.Getenv("CODITECT_TESTDATA"), "scans", "*", "*.jpg")
	}
	all, err := filepath.Glob(pattern)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no pictures at %s; name a folder with -pictures", pattern)
	}
	return all, err
}

// load returns the load averages of the system, as far as it tells.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(data))[:3], " ")
}

// pagesOf writes n pictures, no two of which have equal bytes, and returns their folder: a comment in each
// counts them, from first on.
func (b *bench) pagesOf(first, n int) (dir string, err error) {
	if dir, err = os.MkdirTemp(b.dir, "pages-"); err != nil {
		return "", err
	}
	for i := first; i < first+n; i++ {
		data, err := os.ReadFile(b.pictures[i%len(b.pictures)])
		if err != nil {
			return "", err
		}
		if len(data) < 2 || data[0] != 0xff || data[1] != 0xd8 {
			return "", fmt.Errorf("%s is no JPEG picture", b.pictures[i%len(b.pictures)])
		}
		note := fmt.Sprintf("page %d", i)
		comment := append([]byte{0xff, 0xfe, 0, byte(len(note) + 2)}, note...)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d.jpg", i)), slices.Concat(data[:2], comment, data[2:]), 0o600); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// schema is that of a field of any document.
const schema = "type: object\nproperties:\n  total: {type: number, x-coditect: {labels: [TOTAL]}}\n"

// read has a program read a folder, in a folder of its own, and returns what that took and the result.
func (b *bench) read(ctx context.Context, program, pages string) (u use, r result, err error) {
	own, err := os.MkdirTemp(b.dir, "run-")
	if err != nil {
		return u, r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(own)) }()
	file := filepath.Join(own, "schema.yaml")
	if err := os.WriteFile(file, []byte(schema), 0o600); err != nil {
		return u, r, err
	}

	out := filepath.Join(own, "out")
	cmd := exec.CommandContext(ctx, program, "mapreduce", "run", pages, "--schema", file, "--output", out, "--data-dir", filepath.Join(own, "data"), "--no-report")
	if u, err = measured(cmd); err != nil {
		return u, r, err
	}
	data, err := os.ReadFile(filepath.Join(out, "result.json"))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return u, r, err
}

// A result is what is looked at of result.json.
type result struct {
	Skipped []struct {
		Document string `json:"document_id"`
		Reason   string `json:"reason"`
	} `json:"skipped_documents"`
	Coverage struct {
		Documents struct {
			Total  int `json:"total"`
			Mapped int `json:"mapped"`
		} `json:"documents"`
	} `json:"coverage"`
}

// slow counts the documents that were refused for the time they take.
func (r *result) slow() (n int) {
	for _, s := range r.Skipped {
		if strings.Contains(s.Reason, "--document-time") {
			n++
		}
	}
	return n
}

// median returns the middle one of some values.
func median[T int64 | float64 | time.Duration](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
