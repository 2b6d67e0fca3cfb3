package server_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// A pipeListener hands out the other ends of connections in memory that, unlike those of
// package bufconn, count as those of another process.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// serve serves peers that count as other processes' until the test ends.
func serve(t *testing.T, service mapreduce.Service, config server.Config) *pipeListener {
	t.Helper()
	s, err := server.New(service, new(servertest.Fleet), config)
	if err != nil {
		t.Fatal(err)
	}
	l := newPipeListener()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		stop(s)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l
}

func connect(t *testing.T, l *pipeListener) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Submissions that never end hold no more than the budget: the rest is refused, and told
// when to come again; and while they hold all of it, another's is taken.
func TestHalfOpenSubmissionsHoldNoMoreThanTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const flood, document = 20, 15 << 20
		l := serve(t, new(servertest.Service), server.Config{
			MaxDocument: document, Memory: memory.Limits{Total: 64 << 20, Connection: 60 << 20, Principal: 60 << 20},
		})
		var refused, held int
		var mu sync.Mutex
		var all sync.WaitGroup
		for range flood {
			stream, err := pb.NewMapReduceServiceClient(connect(t, l)).SubmitJob(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				err := stream.Send(&pb.SubmitJobRequest{Spec: &pb.JobSpec{}})
				for sent := 0; err == nil && sent < document-1<<20; sent += 256 << 10 {
					err = stream.Send(&pb.SubmitJobRequest{Documents: []*pb.DocumentPiece{{DocumentId: "d", Content: make([]byte, 256<<10), More: true}}})
					mu.Lock()
					held += 256 << 10
					mu.Unlock()
				}
				if err = stream.RecvMsg(new(pb.SubmitJobResponse)); status.Code(err) != codes.ResourceExhausted {
					return
				}
				for _, d := range status.Convert(err).Details() {
					if r, ok := d.(*errdetails.RetryInfo); ok && r.GetRetryDelay().AsDuration() > 0 {
						mu.Lock()
						refused++
						mu.Unlock()
					}
				}
			})
		}
		time.Sleep(30 * time.Second) //nolint:forbidigo // in a bubble: all that can be refused is
		mu.Lock()
		if refused < flood-3 {
			t.Errorf("%d of %d submissions that never end were refused with RetryInfo; want all but the few that fit", refused, flood)
		}
		mu.Unlock()
		honest, err := pb.NewMapReduceServiceClient(connect(t, l)).SubmitJob(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := honest.Send(&pb.SubmitJobRequest{Spec: &pb.JobSpec{TenantId: "honest"}, Documents: []*pb.DocumentPiece{{DocumentId: "d", Content: []byte("text")}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := honest.CloseAndRecv(); err != nil {
			t.Errorf("an honest submission beside a flood: %v", err)
		}
		time.Sleep(6 * time.Minute) //nolint:forbidigo // in a bubble: longer than a silent submission may last
		all.Wait()
	})
}

// A rawPeer speaks HTTP/2 as it likes.
type rawPeer struct {
	net.Conn
	*http2.Framer
	headers *hpack.Encoder
	block   writer
}

type writer struct{ data []byte }

func (w *writer) Write(p []byte) (int, error) {
	w.data = append(w.data, p...)
	return len(p), nil
}

// raw returns a connection after the preface, whose peer reads all that comes, or
// nothing.
func raw(t *testing.T, l *pipeListener, settings ...http2.Setting) *rawPeer {
	t.Helper()
	conn, err := l.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	p := &rawPeer{Conn: conn}
	p.Framer, p.headers = http2.NewFramer(conn, nil), hpack.NewEncoder(&p.block)
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return p
}

// call writes the headers of a call.
func (p *rawPeer) call(stream uint32, method string, whole bool) error {
	p.block.data = nil
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "test"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		if err := p.headers.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			return err
		}
	}
	return p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: p.block.data, EndHeaders: whole})
}

// isCut reports whether the server has closed the connection.
func (p *rawPeer) isCut() bool {
	synctest.Wait()
	_ = p.SetWriteDeadline(time.Now().Add(time.Second))
	return p.WritePing(false, [8]byte{}) != nil
}

func TestHeadersThatNeverEndAreCut(t *testing.T) {
	tests := map[string]func(*rawPeer) error{
		"silent": func(p *rawPeer) error { return p.call(1, pb.MapReduceService_GetJob_FullMethodName, false) },
		"drip": func(p *rawPeer) error {
			err := p.call(1, pb.MapReduceService_GetJob_FullMethodName, false)
			for i := 0; err == nil && i < 100; i++ {
				time.Sleep(time.Second) //nolint:forbidigo // in a bubble
				err = p.WriteContinuation(1, false, []byte{})
			}
			return nil
		},
		"half a frame": func(p *rawPeer) error {
			_, err := p.Write(binary.BigEndian.AppendUint32(nil, 1<<8))
			return err
		},
	}
	for name, attack := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := raw(t, serve(t, new(servertest.Service), server.Config{}))
				attacked := make(chan error, 1)
				go func() { attacked <- attack(p) }()
				time.Sleep(30 * time.Second) //nolint:forbidigo // in a bubble
				if !p.isCut() {
					t.Error("the connection is still open after 30 s")
				}
				if err := <-attacked; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A peer that opens calls and never says what it asks keeps none of them for long.
func TestCallsThatSayNothingEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := serve(t, new(servertest.Service), server.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		stream, err := connect(t, l).NewStream(ctx, &grpc.StreamDesc{}, pb.MapReduceService_GetJob_FullMethodName)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		err = stream.RecvMsg(new(pb.Job))
		if took := time.Since(begun); status.Code(err) == codes.OK || took > 30*time.Second {
			t.Errorf("a call without a message ended after %v with %v", took, err)
		}
	})
}

// Messages of which all but the last byte comes are held for calls; of one connection no
// more than it may.
func TestUnfinishedMessagesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := serve(t, new(servertest.Service), server.Config{Memory: memory.Limits{Total: 64 << 20, Connection: 2 << 20}})
		p := raw(t, l)
		cut := false
		for i := uint32(0); i < 100 && !cut; i++ {
			stream := 2*i + 1
			cut = p.call(stream, pb.WorkerService_Work_FullMethodName, true) != nil
			if cut {
				break
			}
			message := make([]byte, 16<<10)
			binary.BigEndian.PutUint32(message[1:], 1<<20) // and no more of it comes
			for range 3 {
				cut = cut || p.WriteData(stream, false, message) != nil
				message = make([]byte, 16<<10)
			}
			synctest.Wait()
		}
		if !cut && !p.isCut() {
			t.Error("4.8 MB of messages that never end were taken over a connection that may hold 2 MB")
		}
		if err := getUnknown(t.Context(), connect(t, l)); status.Code(err) != codes.NotFound {
			t.Errorf("another's call: %v", err)
		}
	})
}

// However near a peer is, and however much it sends: it may send no more of each further
// call, whether or not that reads it, than the server said at first.
func TestWindowsOfNearPeersStaySmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, err := serve(t, new(servertest.Service), server.Config{}).dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p := &nearPeer{rawPeer: rawPeer{Conn: conn}, initial: 65535, call: 65535, all: 65535}
		p.Framer, p.headers = http2.NewFramer(conn, conn), hpack.NewEncoder(&p.block)
		var reading sync.WaitGroup
		reading.Go(p.read)
		defer reading.Wait()
		defer conn.Close()
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(p.WriteSettings(), p.rawPeer.call(1, pb.WorkerService_PutBlob_FullMethodName, true)); err != nil {
			t.Fatal(err)
		}
		part := make([]byte, 16<<10)
		part[2] = 0x7f // a message of 8 MB begins
		for sent := 0; sent < 7<<20; {
			room := p.room(t)
			if room == 0 {
				t.Fatalf("%d bytes of a message of 8 MB were taken", sent)
			}
			for room > 0 { // all before anything is answered
				part = part[:min(room, len(part))]
				if err := p.WriteData(1, false, part); err != nil {
					t.Fatal(err)
				}
				p.taken(len(part))
				sent, room = sent+len(part), room-len(part)
				part = make([]byte, 16<<10)
			}
		}
		if p.room(t); p.initial > 256<<10 {
			t.Errorf("of a further call %d bytes may be sent", p.initial)
		}
	})
}

// A nearPeer answers at once what a server asks, and knows how much it may send yet.
type nearPeer struct {
	rawPeer
	mu                 sync.Mutex     // guards the variables below
	initial, call, all int            // windows: of a new call, of the call, and of the connection
	answers            []func() error // that are to be sent
}

// read notes what the server sends until the connection ends.
func (p *nearPeer) read() {
	for {
		frame, err := p.ReadFrame()
		if err != nil {
			return
		}
		p.mu.Lock()
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if size, found := f.Value(http2.SettingInitialWindowSize); found {
				p.call, p.initial = p.call+int(size)-p.initial, int(size)
			}
			if !f.IsAck() {
				p.answers = append(p.answers, p.WriteSettingsAck)
			}
		case *http2.PingFrame:
			if data := f.Data; !f.IsAck() {
				p.answers = append(p.answers, func() error { return p.WritePing(true, data) })
			}
		case *http2.WindowUpdateFrame:
			if f.StreamID == 0 {
				p.all += int(f.Increment)
			} else {
				p.call += int(f.Increment)
			}
		}
		p.mu.Unlock()
	}
}

// room answers all that the server asks, and returns how many bytes of the call it takes.
func (p *nearPeer) room(t *testing.T) int {
	t.Helper()
	for {
		synctest.Wait()
		p.mu.Lock()
		room, answers := min(p.call, p.all), p.answers
		p.answers = nil
		p.mu.Unlock()
		if len(answers) == 0 {
			return room
		}
		for _, answer := range answers {
			if err := answer(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// taken notes that so many bytes of the call are sent.
func (p *nearPeer) taken(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.call, p.all = p.call-n, p.all-n
}

func getUnknown(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := pb.NewMapReduceServiceClient(conn).GetJob(ctx, &pb.GetJobRequest{JobId: someJob})
	return err
}

// A large is a service whose jobs are listed with much text.
type large struct{ servertest.Service }

func (*large) ListEvents(context.Context, mapreduce.Principal, mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	return &mapreduce.EventPage{Checkpoints: []*mapreduce.Checkpoint{{Message: string(make([]byte, 1<<20))}}}, nil
}

// Replies that a peer does not read are held for it; no more than a connection may.
func TestUnreadRepliesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := serve(t, new(large), server.Config{Memory: memory.Limits{Total: 64 << 20, Connection: 8 << 20}})
		p := raw(t, l, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}) // nothing may be sent
		request := []byte{0, 0, 0, 0, byte(2 + len(someJob)), 10, byte(len(someJob))}
		request = append(request, someJob...)
		cut := false
		for i := uint32(0); i < 50 && !cut; i++ {
			cut = p.call(2*i+1, pb.MapReduceService_ListEvents_FullMethodName, true) != nil || p.WriteData(2*i+1, true, request) != nil
			synctest.Wait()
		}
		if !cut && !p.isCut() {
			t.Error("50 MB of replies wait for a peer that reads none, over a connection that may hold 8 MB")
		}
	})
}

// Connections that do nothing make way for one that has a call.
func TestIdleConnectionsMakeWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := serve(t, new(servertest.Service), server.Config{MaxConnections: 4})
		honest := connect(t, l)
		stream, err := pb.NewWorkerServiceClient(honest).Work(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&pb.WorkRequest{Hello: &pb.Hello{SessionId: "s"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		var flood []*rawPeer
		for range 3 {
			flood = append(flood, raw(t, l))
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble: the flood is idle
		if err := getUnknown(t.Context(), connect(t, l)); status.Code(err) != codes.NotFound {
			t.Errorf("a call beside idle connections: %v", err)
		}
		open := 0
		for _, p := range flood {
			if !p.isCut() {
				open++
			}
		}
		if open != 2 {
			t.Errorf("%d of 3 idle connections are open beside 2 others; want 2, as 4 may be", open)
		}
		if err := stream.Send(&pb.WorkRequest{Heartbeat: &pb.Heartbeat{}}); err != nil {
			t.Errorf("the session of a worker did not outlast the flood: %v", err)
		}
	})
}
