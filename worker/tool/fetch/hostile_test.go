package fetch_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/fetch"
	"github.com/coditect/mapreduce/worker/tool/policy"
)

// TestAttacksAreRefused sends what a hostile page or model asks for. Each is refused, and
// the refusal names what was tried. None reaches the server inside.
func TestAttacksAreRefused(t *testing.T) {
	var reached atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		fmt.Fprint(w, "secret")
	}))
	defer inside.Close()
	_, port, err := net.SplitHostPort(inside.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w := newSite(t)
	var to string // where the public server redirects to
	w.mux.HandleFunc("/to", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Location", to)
		rw.WriteHeader(http.StatusTemporaryRedirect)
	})
	w.mux.HandleFunc("/hop", func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/to", http.StatusFound) })
	network := w.network(t, map[string]string{"inside.example": "10.0.0.1", "metadata.google.internal": "169.254.169.254"}, "*", "*:"+port)
	network.Connect = nil // the network of the machine, on which the server inside is
	for _, url := range []string{
		"http://127.0.0.1:" + port + "/", "http://localhost.:" + port + "/", "http://2130706433:" + port + "/", "http://0177.0.0.1:" + port + "/", "http://0x7f000001:" + port + "/",
		"http://127.1:" + port + "/", "http://[::1]:" + port + "/", "http://[::ffff:127.0.0.1]:" + port + "/", "http://[::ffff:7f00:1]:" + port + "/",
		"http://inside.example:" + port + "/", "http://metadata.google.internal/computeMetadata/v1/", "http://169.254.169.254/latest/meta-data/",
		"http://user:secret@public.example/", "file:///etc/passwd", "gopher://127.0.0.1:" + port + "/_GET", "http://0.0.0.0:" + port + "/",
	} {
		network.Resolver = resolver{"inside.example": "10.0.0.1", "metadata.google.internal": "169.254.169.254", "localhost": "127.0.0.1"}
		direct := open(t, fetch.Config{Network: network})
		_, err := call(t, direct, url)
		t.Log(refused(t, err))

		public := w.network(t, network.Resolver.(resolver), "*", "*:"+port) // the server inside cannot be reached but by its own address
		redirected := open(t, fetch.Config{Network: public})
		to = url
		for _, way := range []string{"/to", "/hop"} {
			_, err = call(t, redirected, "http://public.example"+way)
			if got := refused(t, err); strings.Contains(got, "secret") {
				t.Errorf("the refusal has the credentials: %s", got)
			}
		}
	}
	if reached.Load() != 0 {
		t.Errorf("the server inside was reached %d times", reached.Load())
	}
}

// TestRebinding has a name that leads to a public server first and inside afterwards, in
// the middle of the work of one unit.
func TestRebinding(t *testing.T) {
	w := newSite(t)
	w.page("/page", "text/plain", "public")
	network := w.network(t, nil, "rebind.example")
	var lookups atomic.Int64
	network.Resolver = resolverFunc(func() netip.Addr {
		if lookups.Add(1) == 1 {
			return netip.MustParseAddr("93.184.216.34")
		}
		return netip.MustParseAddr("127.0.0.1")
	})
	kit, err := fetch.New(fetch.Config{Network: network, Formats: formats(t), Pause: -1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := kit.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text(t, s, "http://rebind.example/page")
	if err := kit.Close(); err != nil { // its connections
		t.Fatal(err)
	}
	_, err = call(t, s, "http://rebind.example/page")
	if got := refused(t, err); !strings.Contains(got, "rebind.example") || !strings.Contains(got, "127.0.0.1") || len(w.pages()) != 1 {
		t.Errorf("%s, and %d requests", got, len(w.pages()))
	}
}

type resolverFunc func() netip.Addr

func (r resolverFunc) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{r()}, nil
}

// zeros is a reader of as many bytes as one likes.
type zeros struct{ of byte }

func (z zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = z.of
	}
	return len(p), nil
}

// bomb returns bytes that gunzip to size bytes.
func bomb(t testing.TB, size int64) []byte {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(z, zeros{' '}, size); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestPacked: pages may be packed; a bomb is told from a page, and named.
func TestPacked(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	packed := bomb(t, 64<<20)
	w := newSite(t)
	w.mux.HandleFunc("/packed", func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("Accept-Encoding is %q", r.Header.Get("Accept-Encoding"))
		}
		rw.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(rw)
		fmt.Fprint(z, "a packed page")
		_ = z.Close() // the client may have gone
	})
	w.page("/bomb", "text/html", string(packed), "Content-Encoding", "gzip")
	w.page("/twice", "text/html", string(packed), "Content-Encoding", "gzip, gzip")
	w.page("/br", "text/html", "x", "Content-Encoding", "br")
	w.page("/not", "text/html", "x", "Content-Encoding", "gzip")
	w.page("/half", "text/html", string(packed[:len(packed)/2]), "Content-Encoding", "gzip")
	s := open(t, fetch.Config{Network: w.network(t, nil, "*")})
	if e := text(t, s, "http://a.example/packed"); e.Text != "a packed page" {
		t.Errorf("got %q", e.Text)
	}
	for path, want := range map[string]string{"/bomb": "decompression bomb", "/twice": "gzip, gzip", "/br": "br", "/not": "EOF", "/half": "bomb"} {
		if _, err := call(t, s, "http://a.example"+path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

// TestServersThatNeverEnd: of a text that does not end, slowly or not, there is the
// beginning, and a note; of another document there is an error. The connection is closed.
func TestServersThatNeverEnd(t *testing.T) {
	var open1, closed atomic.Int64
	w := newSite(t)
	endless := func(contentType string, first string, every time.Duration) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			open1.Add(1)
			defer closed.Add(1)
			rw.Header().Set("Content-Type", contentType)
			fmt.Fprint(rw, first)
			for r.Context().Err() == nil {
				if every > 0 {
					rw.(http.Flusher).Flush()
					select {
					case <-time.After(every):
					case <-r.Context().Done():
					}
				}
				if _, err := fmt.Fprint(rw, "and so on "); err != nil {
					return
				}
			}
		}
	}
	w.mux.HandleFunc("/fast", endless("text/html", "<p>it begins ", 0))
	w.mux.HandleFunc("/trickle", endless("text/html", "<p>it begins ", time.Millisecond))
	w.mux.HandleFunc("/stuck", endless("text/plain", "it begins ", time.Hour))
	w.mux.HandleFunc("/pdf", endless("application/pdf", "%PDF-1.4\n", time.Millisecond))
	asked, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	w.mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) {
		giveUp()
		<-r.Context().Done()
	})
	// Each server meets one bound; the others are far away, however busy the machine is.
	bounded := func(body, idle time.Duration) tool.Session {
		return open(t, fetch.Config{Network: w.network(t, nil, "*"), MaxBody: 1 << 20, BodyTime: body, IdleTime: idle})
	}
	// A body has to begin within the short time, which runs from its head.
	const short, long = time.Second, time.Hour
	for path, test := range map[string]struct {
		session tool.Session
		want    string
	}{
		"/fast": {bounded(long, long), "1048576 bytes"}, "/trickle": {bounded(short, long), "did not end in time"}, "/stuck": {bounded(long, short), "nothing more came"},
	} {
		want := test.want
		r, err := call(t, test.session, "http://a.example"+path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if e := r.Evidence[0]; !strings.HasPrefix(e.Text, "it begins") || !strings.Contains(r.Text, "the end of the page is missing") || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %.60q, %s", path, e.Text, r.Text)
		}
	}
	if _, err := call(t, bounded(short, long), "http://a.example/pdf"); err == nil || !strings.Contains(err.Error(), "did not end in time") {
		t.Errorf("a PDF: %v", err)
	}
	if _, err := bounded(long, long).Call(asked, fetch.Name, json.RawMessage(`{"url":"http://a.example/silent"}`)); err == nil || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("a silent server: %v", err)
	}
	for deadline := time.Now().Add(time.Minute); closed.Load() < open1.Load(); {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d answers were ended", closed.Load(), open1.Load())
		}
		runtime.Gosched()
	}
}

// TestMemory reads bodies of 1 GB, plain and packed, many at a time, and prints what that
// takes at most.
func TestMemory(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	const size, readers = 1 << 30, 8
	packed := bomb(t, 64<<20)
	w := newSite(t)
	w.mux.HandleFunc("/plain", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		_, _ = io.CopyN(rw, zeros{'a'}, size) // the client goes away
	})
	w.mux.HandleFunc("/html", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		_, _ = io.CopyN(rw, zeros{'<'}, size)
	})
	w.page("/packed", "text/html", string(packed), "Content-Encoding", "gzip")
	var peak atomic.Uint64
	base := heap()
	stop := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if now := heap(); now > peak.Load() {
					peak.Store(now)
				}
			}
		}
	})
	s := open(t, fetch.Config{Network: w.network(t, nil, "*")})
	var all sync.WaitGroup
	var read, refusals atomic.Int64
	for i := range readers {
		all.Go(func() {
			for _, path := range [][]string{{"/plain", "/packed"}, {"/html", "/packed"}}[i%2] {
				r, err := call(t, s, fmt.Sprintf("http://host%d.example%s", i, path))
				switch {
				case err != nil:
					refusals.Add(1)
				case len(r.Evidence[0].Text) > tool.MaxEvidence:
					t.Errorf("evidence of %d bytes", len(r.Evidence[0].Text))
				default:
					read.Add(1)
				}
			}
		})
	}
	all.Wait()
	close(stop)
	sampling.Wait()
	const bound = 320 << 20
	grown := peak.Load() - min(base, peak.Load())
	t.Logf("%d units at a time read 1 GB each, as text or HTML, and a bomb: heap grew by %d MiB at most; %d texts, %d refusals", readers, grown>>20, read.Load(), refusals.Load())
	if grown > bound {
		t.Errorf("the heap grew by %d MiB, want at most %d", grown>>20, bound>>20)
	}
}

// heap returns the bytes of the heap that are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// TestHeaders: an answer whose headers do not end, or are huge, is none.
func TestHeaders(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var serving sync.WaitGroup
	defer serving.Wait()
	defer l.Close()
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return
				}
				_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\n"))
				for i := 0; ; i++ {
					if _, err := fmt.Fprintf(c, "X-%d: %s\r\n", i, strings.Repeat("x", 1000)); err != nil {
						return
					}
				}
			})
		}
	})
	hosts, err := policy.ParseHosts([]string{l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, fetch.Config{Network: &policy.Policy{Hosts: hosts}})
	if _, err := call(t, s, "http://"+l.Addr().String()+"/"); err == nil || !strings.Contains(err.Error(), "header") {
		t.Errorf("got %v", err)
	}
}
