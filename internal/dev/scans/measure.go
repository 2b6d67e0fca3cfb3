package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A use is what a command took.
type use struct {
	clock     time.Duration
	processor time.Duration // of it and of all that it has started and waited for
	memory    int64         // bytes of all of these together, at most
}

// sampling is how often the memory of processes is looked at.
const sampling = 50 * time.Millisecond

// measured runs a command. Its error has the end of what it said.
func measured(cmd *exec.Cmd) (u use, err error) {
	var said strings.Builder
	cmd.Stderr = &said
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return u, err
	}

	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticks := time.NewTicker(sampling)
		defer ticks.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticks.C:
				u.memory = max(u.memory, residentOf(cmd.Process.Pid))
			}
		}
	})
	err = cmd.Wait()
	u.clock = time.Since(begun)
	close(ended)
	watching.Wait()

	u.processor = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.ExitCode() == partial {
		err = nil // some documents were skipped, which is counted
	}
	if err != nil {
		text := said.String()
		err = fmt.Errorf("%s: %w: %s", cmd, err, text[max(0, len(text)-500):])
	}
	return u, err
}

// partial is the exit code of a job of which some documents have no result.
const partial = 3

// residentOf returns the resident memory of a process and of all that it has started; 0 where the system does
// not tell.
func residentOf(root int) (total int64) {
	parents := make(map[int]int)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	sizes := make(map[int]int64)
	for _, file := range stats {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		const parent, pages = 1, 21 // places behind the name: see proc_pid_stat(5)
		if len(fields) <= pages {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parents[pid], _ = strconv.Atoi(fields[parent])
		resident, _ := strconv.ParseInt(fields[pages], 10, 64)
		sizes[pid] = resident * int64(os.Getpagesize())
	}

	for pid := range sizes {
		for at := pid; at > 1; at = parents[at] {
			if at == root {
				total += sizes[pid]
				break
			}
		}
	}
	return total
}

// measurePages reads pages in laps, beside Tesseract alone with as many processes as there are processors.
func (b *bench) measurePages(ctx context.Context) error {
	var own, alone []float64 // pages a second
	var ownCPU, aloneCPU []time.Duration
	var memory int64
	unread, n := 0, max(b.pages/b.laps, 1)
	joules, energy := joulesUsed()
	for lap := range b.laps {
		pages, err := b.pagesOf(lap*n, n)
		if err != nil {
			return err
		}
		u, r, err := b.read(ctx, b.program, pages)
		if err != nil {
			return err
		}
		t, err := b.tesseractOf(ctx, pages)
		if err != nil {
			return err
		}

		own, alone = append(own, float64(n)/u.clock.Seconds()), append(alone, float64(n)/t.clock.Seconds())
		ownCPU, aloneCPU = append(ownCPU, u.processor/time.Duration(n)), append(aloneCPU, t.processor/time.Duration(n))
		memory, unread = max(memory, u.memory), unread+r.Coverage.Documents.Total-r.Coverage.Documents.Mapped
		if err := os.RemoveAll(pages); err != nil {
			return err
		}
	}

	fmt.Printf("| pages of %d pictures, in %d laps, median | %.2f pages/s | Tesseract alone %.2f |\n", n*b.laps, b.laps, median(own), median(alone))
	fmt.Printf("| — processor time a page | %.3f s | Tesseract alone %.3f s |\n", median(ownCPU).Seconds(), median(aloneCPU).Seconds())
	fmt.Printf("| — memory of all processes, at most | %d MiB | |\n", memory>>20)
	fmt.Printf("| — pictures without text, or refused | %d | |\n", unread)
	if after, _ := joulesUsed(); energy {
		fmt.Printf("| — energy of the processor a page, both programs | %.1f J | |\n", (after-joules)/float64(2*n*b.laps))
	} else {
		fmt.Println("| — energy | not measured: the machine does not tell (powercap) | |")
	}
	return nil
}

// tesseractOf has Tesseract read a folder, a process for each page.
func (b *bench) tesseractOf(ctx context.Context, pages string) (all use, err error) {
	files, err := filepath.Glob(filepath.Join(pages, "*.jpg"))
	if err != nil {
		return all, err
	}

	var mu sync.Mutex // guards the variables below
	var failed []error
	left := make(chan string, len(files))
	for _, f := range files {
		left <- f
	}
	close(left)

	begun := time.Now()
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for file := range left {
				cmd := exec.CommandContext(ctx, b.tesseract, file, "-", "--psm", "3", "-c", "tessedit_create_tsv=1")
				cmd.Env = append(os.Environ(), "OMP_THREAD_LIMIT=1")
				u, err := measured(cmd)
				mu.Lock()
				all.processor += u.processor
				if err != nil {
					failed = append(failed, err)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	all.clock = time.Since(begun)
	return all, errors.Join(failed...)
}

// joulesUsed returns the energy that the processor has used, if the system tells.
func joulesUsed() (joules float64, ok bool) {
	data, err := os.ReadFile("/sys/class/powercap/intel-rapl:0/energy_uj")
	if err != nil {
		return 0, false
	}
	micro, err := strconv.ParseFloat(strings.TrimSpace(string(data)), 64)
	return micro / 1e6, err == nil
}

// colds is how often a cold start is measured.
const colds = 5

// measureCold reads one page with nothing in memory, as far as the system lets that be.
func (b *bench) measureCold(ctx context.Context) error {
	var own, alone []time.Duration
	cold := "cold"
	for i := range colds {
		pages, err := b.pagesOf(i, 1)
		if err != nil {
			return err
		}
		if os.WriteFile("/proc/sys/vm/drop_caches", []byte("1"), 0) != nil {
			cold = "files in memory, which this user may not drop"
		}
		u, _, err := b.read(ctx, b.program, pages)
		if err != nil {
			return err
		}
		_ = os.WriteFile("/proc/sys/vm/drop_caches", []byte("1"), 0) // as above
		t, err := b.tesseractOf(ctx, pages)
		if err != nil {
			return err
		}
		own, alone = append(own, u.clock), append(alone, t.clock)
	}
	fmt.Printf("| the first page: a whole run of one picture, %s, median of %d | %.2f s | Tesseract alone %.2f s |\n", cold, colds, median(own).Seconds(), median(alone).Seconds())
	return nil
}

// starts is how often a start is measured.
const starts = 20

// measureStarts starts commands that see no picture.
func (b *bench) measureStarts(ctx context.Context) error {
	text := filepath.Join(b.dir, "text")
	if err := os.Mkdir(text, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(text, "a.txt"), []byte("TOTAL 12.50\n"), 0o600); err != nil {
		return err
	}

	programs := []string{b.program}
	if b.before != "" {
		programs = append(programs, b.before)
	}
	version, whole := make([][]time.Duration, len(programs)), make([][]time.Duration, len(programs))
	for range starts {
		for i, p := range programs {
			u, err := measured(exec.CommandContext(ctx, p, "version"))
			if err != nil {
				return err
			}
			w, _, err := b.read(ctx, p, text)
			if err != nil {
				return err
			}
			version[i], whole[i] = append(version[i], u.clock), append(whole[i], w.clock)
		}
	}

	beside := []string{"", ""}
	if b.before != "" {
		beside[0], beside[1] = fmt.Sprintf("before %d ms", median(version[1]).Milliseconds()), fmt.Sprintf("before %d ms", median(whole[1]).Milliseconds())
	}
	fmt.Printf("| a start that sees no picture: `version`, median of %d | %d ms | %s |\n", starts, median(version[0]).Milliseconds(), beside[0])
	fmt.Printf("| — a whole run of one text | %d ms | %s |\n", median(whole[0]).Milliseconds(), beside[1])
	return nil
}

// busyProcesses is how many processes use a processor beside a job.
const busyProcesses = 4

// measureBusy reads pages in one job beside processes that want the processor all the time.
func (b *bench) measureBusy(ctx context.Context) error {
	pages, err := b.pagesOf(0, b.busy)
	if err != nil {
		return err
	}

	within, stop := context.WithCancel(ctx)
	var busy sync.WaitGroup
	for range busyProcesses {
		cmd := exec.CommandContext(within, "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			stop()
			return err
		}
		busy.Go(func() { _ = cmd.Wait() }) // it is killed
	}
	u, r, err := b.read(ctx, b.program, pages)
	stop()
	busy.Wait()
	if err != nil {
		return err
	}

	d := r.Coverage.Documents
	fmt.Printf("| a job of %d scans beside %d busy processes: refused for time | %d | %d of %d read in %.0f s, %.3f s of a processor a page |\n",
		b.busy, busyProcesses, r.slow(), d.Mapped, d.Total, u.clock.Seconds(), u.processor.Seconds()/float64(b.busy))
	if n := r.slow(); n > 0 {
		return fmt.Errorf("%d scans were refused for their time", n)
	}
	return nil
}
