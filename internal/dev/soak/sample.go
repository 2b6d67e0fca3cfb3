package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// A sample is every figure at a moment, by its name.
type sample map[string]float64

// names of the figures that are not of a process or of a kind of key.
const (
	allKeys   = "keys of the store"
	allBytes  = "bytes of the store"
	diskBytes = "bytes of its folder"
	jobsKept  = "jobs kept"
)

// take takes a sample. What a check of the store finds wrong is an error, as is a process that is
// not there.
func (h *house) take(ctx context.Context) (sample, error) {
	s := make(sample)
	for _, p := range []*process{h.server, h.steady, h.mortal} {
		if err := p.measure(ctx, s); err != nil {
			return nil, fmt.Errorf("the %s: %w", p.name, err)
		}
	}

	if h.config.store == "" {
		n, err := folderBytes(h.dir)
		if err != nil {
			return nil, err
		}
		s[diskBytes] = float64(n)
	}

	n, err := h.countJobs(ctx)
	if err != nil {
		return nil, err
	}
	s[jobsKept] = float64(n)
	return s, h.check(ctx, s)
}

// measure notes memory, descriptors and goroutines of a process.
func (p *process) measure(ctx context.Context, s sample) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.admin+"/metrics", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()

	read, err := readMetrics(res.Body)
	if err != nil {
		return err
	}
	for name, figure := range map[string]string{
		"coditect_process_resident_memory_bytes": "memory", "coditect_process_open_fds": "descriptors", "coditect_go_goroutines": "goroutines",
		"coditect_go_memstats_heap_objects": "objects", "coditect_process_cpu_seconds_total": cpuSeconds,
	} {
		v, ok := read[name]
		if !ok {
			return fmt.Errorf("/metrics has no %s", name)
		}
		s[p.name+": "+figure] = v
	}
	return nil
}

// cpuSeconds is how much of a processor a process has used. It has to grow.
const cpuSeconds = "processor"

// readMetrics reads the metrics that have no labels.
func readMetrics(r io.Reader) (map[string]float64, error) {
	all := make(map[string]float64)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.HasPrefix(name, "#") || strings.Contains(name, "{") {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", lines.Text(), err)
		}
		all[name] = v
	}
	return all, lines.Err()
}

// folderBytes returns the sizes of all files of a folder, some of which may go meanwhile.
func folderBytes(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				n += info.Size()
			}
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	return n, err
}

// countJobs returns how many jobs there are.
func (h *house) countJobs(ctx context.Context) (n int, err error) {
	for token := ""; ; {
		page, err := pb.NewMapReduceServiceClient(h.conn).ListJobs(ctx, &pb.ListJobsRequest{PageSize: 1000, PageToken: token})
		if err != nil {
			return 0, fmt.Errorf("list: %w", err)
		}
		n += len(page.GetJobs())
		if token = page.GetNextPageToken(); token == "" {
			return n, nil
		}
	}
}

// counted is how a check says how many keys of a kind there are.
var counted = regexp.MustCompile(`^(all kinds|kind "([a-z]+)"): (\d+) \w+ of (\d+) \w+$`)

// check checks the whole store, and notes its keys.
func (h *house) check(ctx context.Context, s sample) error {
	stream, err := pb.NewAdminServiceClient(h.conn).CheckStore(ctx, &pb.CheckStoreRequest{CountKeys: true})
	if err != nil {
		return err
	}

	var wrong []error
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("check of the store: %w", err)
		}
		f := m.GetFinding()
		if f.GetSeverity() == pb.Severity_SEVERITY_WRONG {
			wrong = append(wrong, fmt.Errorf("check of the store: %s %s: %s", f.GetJobId(), f.GetKey(), f.GetMessage()))
		}
		s.noteKeys(f.GetMessage())
	}
	if _, ok := s[allKeys]; !ok {
		wrong = append(wrong, errors.New("the check of the store did not say how many keys there are"))
	}
	return errors.Join(wrong...)
}

// noteKeys notes what a line of a check says of keys, if it does.
func (s sample) noteKeys(line string) {
	m := counted.FindStringSubmatch(line)
	if m == nil {
		return
	}
	keys, _ := strconv.ParseFloat(m[3], 64) // digits
	bytes, _ := strconv.ParseFloat(m[4], 64)
	if m[2] == "" {
		s[allKeys], s[allBytes] = keys, bytes
		return
	}
	s["keys of kind "+m[2]] = keys
}
