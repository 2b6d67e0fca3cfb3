package browser_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/browser"
	"github.com/coditect/mapreduce/worker/tool/policy"
)

// long skips what takes much time of the machine.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("CODITECT_TEST_BROWSER") != "all" {
		t.Skip("CODITECT_TEST_BROWSER is not all; make test-browser sets it")
	}
}

// aged is a clock which is an hour on whenever it is read. A browser that ended young is not
// started again at once.
func aged(c *browser.Config) {
	var reads atomic.Int64
	c.Now = func() time.Time { return time.Now().Add(time.Duration(reads.Add(1)) * time.Hour) }
}

// A browser that takes too much memory is ended, and another page opens in a new one.
func TestBrowserEnds(t *testing.T) {
	long(t)
	host := site(t, map[string]http.HandlerFunc{
		"/good": says(`<p>All is well`),
		"/eats": says(`<p>x<script>window.all = []; setInterval(() => { if (all.length < 40) { const a = new Uint8Array(32 << 20); crypto.getRandomValues(a.subarray(0, 65536)); a.fill(1); all.push(a); } }, 20)</script>`),
	})
	k := newKit(t, []string{host}, aged, func(c *browser.Config) { c.MaxMemory = 700 << 20 })
	s := unit(t, k)
	must(t, s, "browser_open", map[string]any{"url": "http://" + host + "/good"})
	limit := regexp.MustCompile(`MiB of memory, and may take 700|crashed`)
	for said := ""; !limit.MatchString(said); { // a busy page may not answer first
		_, err := call(t, s, "browser_open", map[string]any{"url": "http://" + host + "/eats"})
		for err == nil {
			_, err = call(t, s, "browser_read", nil)
		}
		said = err.Error()
		t.Log(said)
	}
	if _, text := must(t, s, "browser_open", map[string]any{"url": "http://" + host + "/good"}); !strings.Contains(text, "All is well") {
		t.Errorf("in a new browser the page says %q", text)
	}
}

// A unit whose browser a page of another one took down opens its page again by itself. What
// it would do in an open page is told to have failed.
func TestOtherUnitsOpenAgain(t *testing.T) {
	var asked atomic.Int64
	opening, never := make(chan struct{}), make(chan struct{})
	host := site(t, map[string]http.HandlerFunc{
		"/good": says(`<p>All is well`),
		"/slow": func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) == 1 { // the browser ends meanwhile
				close(opening)
				select {
				case <-never:
				case <-r.Context().Done():
				}
				return
			}
			says("<p>At last")(w, r)
		},
	})
	t.Cleanup(func() { close(never) })
	k := newKit(t, []string{host}, aged)
	browser.SetTimes(k, enough, enough)
	reads, opens := unit(t, k), unit(t, k)
	must(t, reads, "browser_open", map[string]any{"url": "http://" + host + "/good"})
	var result *tool.Result
	var err error
	var calling sync.WaitGroup
	calling.Go(func() {
		result, err = call(t, opens, "browser_open", map[string]any{"url": "http://" + host + "/slow"})
	})
	<-opening
	browser.End(k, errors.New("a page of another unit took too much"))
	calling.Wait()
	if err != nil || len(result.Evidence) != 1 || result.Evidence[0].Text != "At last" || asked.Load() != 2 {
		t.Errorf("the page was asked for %d times, and has %+v, error %v", asked.Load(), result, err)
	}
	if _, err := call(t, reads, "browser_read", nil); err == nil || !strings.Contains(err.Error(), "no page is open: open one with browser_open first") {
		t.Errorf("a unit without its page reads it: %v", err)
	}
	if _, text := must(t, reads, "browser_open", map[string]any{"url": "http://" + host + "/good"}); !strings.Contains(text, "All is well") {
		t.Errorf("in a new browser the page says %q", text)
	}
}

// A page of 4 GB in a few MB, which Chromium unpacks, ends the browser at most.
func TestPackedPages(t *testing.T) {
	long(t)
	host := site(t, map[string]http.HandlerFunc{
		"/good": says(`<p>All is well`),
		"/packed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", "gzip")
			z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
			if err != nil {
				panic(err)
			}
			for block, i := []byte(strings.Repeat("<p>x", 1<<18)), 0; i < 4096; i++ {
				if _, err := z.Write(block); err != nil {
					return
				}
			}
			_ = z.Close() // the browser may have gone
		},
	})
	k := newKit(t, []string{host}, aged, func(c *browser.Config) { c.MaxMemory = 700 << 20 })
	s, most := unit(t, k), int64(0)
	watching, stop := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() {
		for watching.Err() == nil {
			most = max(most, memoryOf(t, chromiums(t, "coditect-browser-")))
			<-time.After(100 * time.Millisecond)
		}
	})
	r, err := call(t, s, "browser_open", map[string]any{"url": "http://" + host + "/packed"})
	stop()
	watch.Wait()
	t.Logf("it took %d MiB at most: %v", most>>20, err)
	if err == nil {
		t.Errorf("it was opened: %.500s", r.Text)
	}
	if most > 2<<30 {
		t.Errorf("the browser took %d MiB, and may take 700", most>>20)
	}
	if _, text := must(t, s, "browser_open", map[string]any{"url": "http://" + host + "/good"}); !strings.Contains(text, "All is well") {
		t.Errorf("in a new browser the page says %q", text)
	}
}

// memoryOf returns what processes have of their own in memory, in bytes.
func memoryOf(t *testing.T, pids []int) (n int64) {
	t.Helper()
	for _, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if m := regexp.MustCompile(`RssAnon:\s+(\d+) kB`).FindSubmatch(status); err == nil && m != nil {
			kb, _ := strconv.ParseInt(string(m[1]), 10, 64)
			n += kb << 10
		}
	}
	return n
}

// chromiums returns the processes below a process whose command line holds a text.
func chromiums(t *testing.T, holds string) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(all) == 0 {
		t.Skip("processes cannot be looked at: there is no /proc")
	}
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(line), holds) {
			if pid, err := strconv.Atoi(strings.Split(path, "/")[2]); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Chromium runs in its sandbox, has nothing of this process's environment, and is gone with
// a worker that is killed.
func TestSandboxAndEnd(t *testing.T) {
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("no Chromium is installed")
	}
	dir, err := os.MkdirTemp("/tmp", "cb") // the path of a socket in it has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	worker := exec.CommandContext(context.Background(), os.Args[0])
	worker.Env = append(os.Environ(), "CODITECT_TEST_PARENT=1", "TMPDIR="+dir, "ANTHROPIC_API_KEY=swordfish-17")
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 500)
	n, _ := out.Read(said)
	if !strings.HasPrefix(string(said[:n]), "started") {
		_ = worker.Process.Kill()
		_ = worker.Wait()
		t.Fatalf("the browser does not start: %s", said[:n])
	}
	pids := chromiums(t, dir)
	sandboxed := 0
	for _, pid := range pids {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if strings.Contains(string(environment), "swordfish") {
			t.Errorf("process %d has a key of the worker", pid)
		}
		if strings.Contains(string(line), "--no-sandbox") {
			t.Errorf("process %d runs without a sandbox", pid)
		}
		if strings.Contains(string(line), "--type=renderer") && strings.Contains(string(status), "Seccomp:\t2") {
			sandboxed++
		}
	}
	if len(pids) < 2 || sandboxed == 0 {
		t.Errorf("of %d processes %d render in a sandbox", len(pids), sandboxed)
	}
	if err := worker.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	for begun := time.Now(); len(chromiums(t, dir)) > 0; {
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("processes are left: %v", chromiums(t, dir))
		}
		<-time.After(20 * time.Millisecond)
	}
}

// A Chromium that says that it has no sandbox is not run without one.
func TestNoSandbox(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chromium")
	script := `#!/bin/sh
case "$*" in *--no-sandbox*) echo "WITHOUT A SANDBOX" >&2;; esac
echo "[1:1:FATAL:zygote_host_impl_linux.cc] No usable sandbox! Update your kernel" >&2
exit 1
`
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := config(&policy.Policy{})
	c.Path = path
	if _, err := browser.New(t.Context(), c); !errors.Is(err, browser.ErrNoSandbox) {
		t.Errorf("got %v", err)
	}
	c.NoSandbox = true
	if _, err := browser.New(t.Context(), c); err == nil || errors.Is(err, browser.ErrNoSandbox) {
		t.Errorf("without a sandbox: %v", err)
	}
}

func TestNoChromium(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := browser.New(t.Context(), config(&policy.Policy{})); !errors.Is(err, browser.ErrNone) || !strings.Contains(err.Error(), "install the package chromium") {
		t.Errorf("got %v", err)
	}
	c := config(&policy.Policy{})
	c.Path = "/no/such/chromium"
	if _, err := browser.New(t.Context(), c); err == nil || !strings.Contains(err.Error(), "/no/such/chromium cannot be run") {
		t.Errorf("got %v", err)
	}
}
