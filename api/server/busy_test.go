package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/coditect/mapreduce/api/concurrency"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
)

// dial serves over TCP, and returns a connection.
func dial(t *testing.T, service mapreduce.Service, config server.Config) *grpc.ClientConn {
	t.Helper()
	s, err := server.New(service, new(servertest.Fleet), config)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop(s)
		if err := errors.Join(<-served, conn.Close()); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// A server that carries out as many calls as it may lets others wait, and refuses those for which there is
// no room with a word when to ask again. Whether it lives it says all the same.
func TestMoreIsAskedThanAnswered(t *testing.T) {
	const asked = 300
	began, proceed := make(chan struct{}, asked), make(chan struct{})
	busy := &service{get: func(ctx context.Context) (*mapreduce.Job, error) {
		began <- struct{}{}
		select {
		case <-proceed:
		case <-ctx.Done():
		}
		return &mapreduce.Job{ID: someJob}, nil
	}}
	conn := dial(t, busy, server.Config{
		Logger: slog.New(slog.DiscardHandler), MaxStreams: asked,
		Calls: concurrency.Limits{Least: 2, Most: 2, Waiting: 1, Patience: time.Hour, Long: time.Hour},
	})

	answers := make(chan error, asked)
	for range asked {
		go func() { answers <- getJob(t.Context(), conn) }()
	}
	<-began
	<-began
	for range asked - 3 {
		err := <-answers
		if status.Code(err) != codes.ResourceExhausted {
			t.Fatalf("refused with %v", err)
		}
		pause := time.Duration(0)
		for _, d := range status.Convert(err).Details() {
			if info, ok := d.(*errdetails.RetryInfo); ok {
				pause = info.RetryDelay.AsDuration()
			}
		}
		if pause <= 0 {
			t.Fatalf("refused without a word when to ask again: %v", err)
		}
	}

	health, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || health.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", health, err)
	}
	close(proceed)
	for range 3 {
		if err := <-answers; err != nil {
			t.Errorf("of the two and the one that waited: %v", err)
		}
	}
}
