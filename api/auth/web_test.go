package auth_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.yaml.in/yaml/v3"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/coditect/mapreduce/api/web"
)

func TestMain(m *testing.M) {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	os.Exit(m.Run())
}

// A caller makes a call as outcome does.
type caller func(ctx context.Context, m protoreflect.MethodDescriptor, job, tenant string) (string, error)

// The protocols by which calls are made.
const (
	byGRPC    = "gRPC"
	byGRPCWeb = "gRPC-Web"
	byREST    = "REST"
)

// callers returns what makes calls in one of the ways, by protocol. There is no HTTP over
// the Unix socket.
func (h *house) callers(t testing.TB, way string) map[string]caller {
	t.Helper()
	conn := h.dial(t, way)
	all := map[string]caller{byGRPC: func(ctx context.Context, m protoreflect.MethodDescriptor, job, tenant string) (string, error) {
		return outcome(ctx, conn, m, job, tenant)
	}}
	if way == "uid" {
		return all
	}
	c := h.browse(t, way)
	paths := rules(t)
	all[byGRPCWeb] = c.callGRPCWeb
	all[byREST] = func(ctx context.Context, m protoreflect.MethodDescriptor, job, tenant string) (string, error) {
		return c.callREST(ctx, paths[string(m.FullName())], m, job, tenant)
	}
	return all
}

// offered reports whether HTTP offers a method.
func offered(m protoreflect.MethodDescriptor) bool {
	return slices.ContainsFunc(web.Services(), func(s protoreflect.ServiceDescriptor) bool { return s.FullName() == m.Parent().FullName() })
}

// A webClient calls by HTTP.
type webClient struct {
	url    string
	client *http.Client
	secret string // bearer token
}

// browse returns a client that shows who it is in one of the ways, with the files that dial
// has made.
func (h *house) browse(t testing.TB, way string) *webClient {
	t.Helper()
	roots := x509.NewCertPool()
	ca, err := os.ReadFile(h.lab.path("ca.pem"))
	if err != nil || !roots.AppendCertsFromPEM(ca) {
		t.Fatal("no authority", err)
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
	c := &webClient{url: "https://" + h.http}
	if _, err := os.Stat(h.lab.path(way + ".pem")); err == nil {
		pair, err := tls.LoadX509KeyPair(h.lab.path(way+".pem"), h.lab.path(way+".key"))
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if secret, err := os.ReadFile(h.lab.path(way + ".token")); err == nil {
		c.secret = string(secret)
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	c.client = &http.Client{Transport: transport}
	return c
}

func (c *webClient) authorize(h http.Header) {
	if c.secret != "" {
		h.Set("Authorization", "Bearer "+c.secret)
	}
}

func (c *webClient) callGRPCWeb(ctx context.Context, m protoreflect.MethodDescriptor, job, tenant string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	q, err := requestFor(m.Input(), job, tenant)
	if err != nil {
		return "", err
	}
	method := connect.NewClient[dynamicpb.Message, dynamicpb.Message](c.client, c.url+fullName(m), connect.WithGRPCWeb(), connect.WithSchema(m),
		connect.WithResponseInitializer(func(_ connect.Spec, v any) error {
			*v.(*dynamicpb.Message) = *dynamicpb.NewMessage(m.Output())
			return nil
		}))
	stream := method.CallBidiStream(ctx)
	c.authorize(stream.RequestHeader())
	request := dynamicpb.NewMessage(m.Input())
	proto.Merge(request, q)
	if err = stream.Send(request); err == nil || errors.Is(err, io.EOF) {
		_ = stream.CloseRequest() // receiving says what is wrong
		_, err = stream.Receive()
	}
	_ = stream.CloseResponse() // the test has what it wants to know
	var e *connect.Error
	if !errors.As(err, &e) {
		return allowed, nil
	}
	switch e.Code() {
	case connect.CodePermissionDenied:
		return denied, nil
	case connect.CodeUnauthenticated:
		return unknownCaller, nil
	case connect.CodeDeadlineExceeded, connect.CodeUnavailable, connect.CodeCanceled, connect.CodeUnimplemented:
		return "", err
	case connect.CodeNotFound:
		for _, d := range e.Details() {
			if v, err := d.Value(); err == nil {
				if info, ok := v.(*errdetails.ErrorInfo); ok && info.GetReason() == "JOB_NOT_FOUND" {
					return notFound, nil
				}
			}
		}
	}
	return allowed, nil
}

// A rule says how a method is called by REST.
type rule struct{ verb, path string }

// rules reads how methods are called, by their full names.
func rules(t testing.TB) map[string]rule {
	t.Helper()
	data, err := os.ReadFile("../../proto/rest/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		HTTP struct {
			Rules []struct {
				Selector, Get, Post, Delete string
			}
		}
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]rule)
	for _, r := range file.HTTP.Rules {
		for verb, path := range map[string]string{http.MethodGet: r.Get, http.MethodPost: r.Post, http.MethodDelete: r.Delete} {
			if path != "" {
				all[r.Selector] = rule{verb, path}
			}
		}
	}
	return all
}

func (c *webClient) callREST(ctx context.Context, r rule, m protoreflect.MethodDescriptor, job, tenant string) (string, error) {
	if r.verb == "" {
		return "", fmt.Errorf("proto/rest/rules.yaml does not say how %s is called", m.FullName())
	}
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	message, err := requestFor(m.Input(), job, tenant)
	if err != nil {
		return "", err
	}
	data, err := protojson.Marshal(message)
	if err != nil {
		return "", err
	}
	path := strings.NewReplacer("{job_id}", job, "{certificate_id}", "c").Replace(r.path)
	body := string(data)
	if r.verb != http.MethodPost {
		body = ""
		var fields map[string]any
		if err := json.Unmarshal(data, &fields); err != nil {
			return "", err
		}
		query := make(url.Values)
		for name, v := range fields {
			if name != "jobId" && name != "certificateId" || path == r.path {
				query.Set(name, fmt.Sprint(v))
			}
		}
		path += "?" + query.Encode()
	}
	q, err := http.NewRequestWithContext(ctx, r.verb, c.url+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	c.authorize(q.Header)
	a, err := c.client.Do(q)
	if err != nil {
		return "", err
	}
	defer a.Body.Close()
	answer, err := io.ReadAll(a.Body)
	switch {
	case err != nil:
		return "", err
	case a.StatusCode == http.StatusUnauthorized:
		return unknownCaller, nil
	case a.StatusCode == http.StatusForbidden:
		return denied, nil
	case a.StatusCode == http.StatusNotFound && strings.Contains(string(answer), `"JOB_NOT_FOUND"`):
		return notFound, nil
	case a.StatusCode == http.StatusNotFound && strings.Contains(string(answer), "/openapi.json"), a.StatusCode >= http.StatusNotImplemented:
		return "", fmt.Errorf("%s %s: %d %s", r.verb, path, a.StatusCode, answer)
	}
	return allowed, nil
}
