package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/coditect/mapreduce/api/auth"
	"github.com/coditect/mapreduce/api/auth/oidc"
	"github.com/coditect/mapreduce/api/auth/oidc/oidctest"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/api/transport"
	"github.com/coditect/mapreduce/api/web"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/access"
)

const (
	audience = "coditect"
	ownJob   = "mr_20260101_aaaaaa"
	otherJob = "mr_20260101_bbbbbb"
)

// A laboratory has an authority, an issuer and a server for each role, in whose policy all
// ways to show who calls lead to that role.
type laboratory struct {
	t      testing.TB
	dir    string
	ca     *transport.Authority
	issuer *oidctest.Issuer
	secret string // a token of the token file
}

func newLaboratory(t testing.TB) *laboratory {
	t.Helper()
	l := &laboratory{t: t, dir: t.TempDir()}
	var err error
	if l.ca, err = transport.NewAuthority("test", time.Hour, time.Now); err != nil {
		t.Fatal(err)
	}
	if l.issuer, err = oidctest.New(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.issuer.Close)
	l.write("ca.pem", string(l.ca.CertPEM()))
	l.issue("server", transport.CertificateRequest{Names: []string{"127.0.0.1"}, Server: true})
	secret, line, err := auth.NewToken("ci", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	l.secret = secret
	l.write("tokens", line+"\n")
	return l
}

func (l *laboratory) path(name string) string { return filepath.Join(l.dir, name) }

func (l *laboratory) write(name, text string) {
	l.t.Helper()
	if err := transport.ReplaceFile(l.path(name), []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func (l *laboratory) issue(name string, r transport.CertificateRequest) {
	l.t.Helper()
	r.Valid = time.Hour
	cert, key, err := l.ca.Issue(r)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := transport.WritePair(l.path(name+".pem"), l.path(name+".key"), cert, key); err != nil {
		l.t.Fatal(err)
	}
}

// The ways to show who calls, by what a policy knows them as.
func ways() map[string]string {
	return map[string]string{
		"spiffe": "spiffe://example.org/a/worker", "dns": "dns:alice", "cn": "cn:Old Program", "oidc": "oidc:subject", "token": "token:ci",
		"uid": fmt.Sprintf("uid:%d", os.Geteuid()),
	}
}

// policy returns a policy in which each way leads to a role.
func policy(role mapreduce.Role) string {
	var b strings.Builder
	b.WriteString("principals:\n")
	for _, match := range ways() {
		tenant := "tenant: a, "
		if role == mapreduce.Worker || role == mapreduce.Scaler {
			tenant = ""
		}
		fmt.Fprintf(&b, "- {match: %q, %sroles: [%s]}\n", match, tenant, role)
	}
	return b.String()
}

// A house is a server over TLS and over a Unix socket.
type house struct {
	lab       *laboratory
	policy    string // file
	guard     *auth.Guard
	tcp, unix string // addresses
	http      string // address of HTTP
}

// serve serves a service under a policy until the test ends.
func (l *laboratory) serve(name, policy string, service mapreduce.Service, fleet protocol.Fleet) *house {
	l.t.Helper()
	h := &house{lab: l, policy: name + ".yaml"}
	l.write(h.policy, policy)
	quiet := slog.New(slog.DiscardHandler)
	secured, err := transport.NewServer(transport.ServerConfig{
		Cert: l.path("server.pem"), Key: l.path("server.key"), ClientCA: l.path("ca.pem"), CertOptional: true, Logger: quiet,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	issued, err := oidc.New(oidc.Config{Issuer: l.issuer.URL(), Audience: audience})
	if err != nil {
		l.t.Fatal(err)
	}
	known, err := auth.New(auth.Config{Policy: l.path(h.policy), Tokens: l.path("tokens"), Issued: issued, Peers: secured, Logger: quiet})
	if err != nil {
		l.t.Fatal(err)
	}
	h.guard = auth.NewGuard(known)
	s, err := server.New(service, access.NewFleet(fleet), server.Config{
		Logger: quiet, TLS: secured.TLS(), Guard: h.guard, Demand: access.NewDemander(demand{}),
	})
	if err != nil {
		l.t.Fatal(err)
	}
	served := make(chan error, 3)
	listen := func(network, address string) string {
		listener, err := net.Listen(network, address)
		if err != nil {
			l.t.Fatal(err)
		}
		go func() { served <- s.Serve(listener) }()
		return listener.Addr().String()
	}
	h.tcp, h.unix = listen("tcp", "127.0.0.1:0"), "unix:"+listen("unix", l.path(name))
	edge, err := web.New(web.Config{Server: s, TLS: secured.WebTLS(), Logger: quiet})
	if err != nil {
		l.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	h.http = listener.Addr().String()
	go func() { served <- edge.Serve(listener) }()
	l.t.Cleanup(func() {
		ctx, stop := context.WithCancel(context.Background())
		stop()
		s.Shutdown(ctx)
		edge.Shutdown(ctx)
		if err := errors.Join(<-served, <-served, <-served); err != nil {
			l.t.Error(err)
		}
	})
	return h
}

// dial connects in one of the ways. "nobody" shows nothing.
func (h *house) dial(t testing.TB, way string) *grpc.ClientConn {
	t.Helper()
	l, target := h.lab, h.tcp
	files := transport.ClientConfig{CA: l.path("ca.pem")}
	var options []grpc.DialOption
	secret := ""
	switch way {
	case "spiffe":
		l.issue(way, transport.CertificateRequest{Names: []string{"spiffe://example.org/a/worker", "alice"}})
	case "dns":
		l.issue(way, transport.CertificateRequest{Names: []string{"alice"}, CommonName: "mallory"})
	case "cn":
		l.issue(way, transport.CertificateRequest{CommonName: "Old Program"})
	case "oidc":
		var err error
		if secret, err = l.issuer.Token("subject", audience, nil); err != nil {
			t.Fatal(err)
		}
	case "token":
		secret = l.secret
	case "uid":
		target = h.unix
	}
	if secret != "" {
		l.write(way+".token", secret)
		token, err := transport.NewToken(l.path(way + ".token"))
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, grpc.WithPerRPCCredentials(token))
	}
	if _, err := os.Stat(l.path(way + ".pem")); err == nil {
		files.Cert, files.Key = l.path(way+".pem"), l.path(way+".key")
	}
	secured := insecure.NewCredentials()
	if way != "uid" {
		var err error
		if secured, err = transport.NewClient(files); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := grpc.NewClient(target, append(options, grpc.WithTransportCredentials(secured))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the test may have closed it
	return conn
}

// demand is that of two tenants.
type demand struct{}

func (demand) Demand(context.Context, mapreduce.Principal) ([]protocol.Demand, error) {
	return []protocol.Demand{{Tenant: "a", Units: 1}, {Tenant: "b", Units: 2}}, nil
}

// A fleet lets workers in and says nothing to them.
type fleet struct{ protocol.Fleet }

func (fleet) Work(context.Context, protocol.WorkStream) error { return nil }

func (fleet) GetBlob(context.Context, *protocol.BlobRequest, func([]byte) error) error { return nil }

func (fleet) PutBlob(context.Context, *protocol.BlobRequest, func() ([]byte, error)) (*protocol.BlobStored, error) {
	return &protocol.BlobStored{}, nil
}

// tenants are those of the two jobs that the rules know.
func tenantOf(_ context.Context, id mapreduce.JobID) (mapreduce.TenantID, error) {
	switch id {
	case ownJob:
		return "a", nil
	case otherJob:
		return "b", nil
	}
	return "", errs.New(errs.NotFound, "none")
}

// The outcomes of a call.
const (
	allowed       = "allowed"
	denied        = "denied"
	notFound      = "not found"
	unknownCaller = "unauthenticated"
)

// outcome makes a call with an empty request, but for the job and the tenant, and says
// whether it was let through. What comes of it then does not matter.
func outcome(ctx context.Context, conn *grpc.ClientConn, m protoreflect.MethodDescriptor, job, tenant string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	request, err := requestFor(m.Input(), job, tenant)
	if err != nil {
		return "", err
	}
	reply, err := protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName())
	if err != nil {
		return "", err
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, fullName(m))
	if err == nil {
		if err = stream.SendMsg(request); err == nil || errors.Is(err, io.EOF) {
			_ = stream.CloseSend() // never fails
			err = stream.RecvMsg(reply.New().Interface())
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	s := status.Convert(err)
	switch s.Code() {
	case codes.PermissionDenied:
		return denied, nil
	case codes.Unauthenticated:
		return unknownCaller, nil
	case codes.DeadlineExceeded, codes.Unavailable, codes.Canceled:
		return "", err
	case codes.NotFound:
		for _, d := range s.Details() {
			if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetReason() == "JOB_NOT_FOUND" {
				return notFound, nil
			}
		}
	}
	return allowed, nil
}

func fullName(m protoreflect.MethodDescriptor) string {
	return fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
}

// requestFor returns a request about a job and a tenant, wherever it has room for these.
func requestFor(d protoreflect.MessageDescriptor, job, tenant string) (proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		return nil, err
	}
	m := kind.New()
	fields := d.Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch f.Name() {
		case "job_id":
			m.Set(f, protoreflect.ValueOfString(job))
		case "tenant_id":
			m.Set(f, protoreflect.ValueOfString(tenant))
		case "unit_id", "document_id", "handle", "field", "cause", "certificate_id":
			m.Set(f, protoreflect.ValueOfString("x"))
		case "record_id":
			m.Set(f, protoreflect.ValueOfString("0.0"))
		case "verdict", "state":
			m.Set(f, protoreflect.ValueOfEnum(1))
		case "spec", "hello", "attempt", "held", "blob", "scaledObjectRef":
			if f.Kind() != protoreflect.MessageKind {
				continue
			}
			inner, err := requestFor(f.Message(), job, tenant)
			if err != nil {
				return nil, err
			}
			m.Set(f, protoreflect.ValueOfMessage(inner.ProtoReflect()))
		}
	}
	return m.Interface(), nil
}

// methods returns each method of each service that a server has, by its descriptor.
func methods(t *testing.T) (all []protoreflect.MethodDescriptor) {
	t.Helper()
	s, err := server.New(&servertest.Service{}, fleet{}, server.Config{Demand: demand{}})
	if err != nil {
		t.Fatal(err)
	}
	for name := range s.Services() {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			t.Fatal(err)
		}
		service := d.(protoreflect.ServiceDescriptor)
		for i := range service.Methods().Len() {
			all = append(all, service.Methods().Get(i))
		}
	}
	return all
}

// A row says what comes of a method, by docs/security.md.
type row struct {
	roles   map[mapreduce.Role]bool
	another string // what comes of it for what is of another tenant; "–" if nothing is
}

// documented reads the table of docs/security.md.
func documented(t *testing.T) map[string]row {
	t.Helper()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]row)
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != len(mapreduce.Roles())+4 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		r := row{roles: make(map[mapreduce.Role]bool), another: strings.TrimSpace(cells[len(cells)-2])}
		for i, role := range mapreduce.Roles() {
			r.roles[role] = strings.TrimSpace(cells[2+i]) == "yes"
		}
		rows[strings.Trim(cells[1], " `")] = r
	}
	return rows
}

// Each method of each service, called in each role, about what is the caller's own and what
// is another tenant's, by each way to show who calls, by gRPC, gRPC-Web and REST: what
// comes of it is what docs/security.md says. A method that has no line there fails the test.
func TestMatrix(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	l := newLaboratory(t)
	table, all := documented(t), methods(t)
	if len(table) == 0 || len(all) == 0 {
		t.Fatal("there is nothing to compare")
	}
	calls := 0
	for _, role := range mapreduce.Roles() {
		service := access.NewService(&servertest.Service{}, access.Rules{TenantOf: tenantOf})
		h := l.serve(string(role), policy(role), service, fleet{})
		for way := range ways() {
			callers := h.callers(t, way)
			for _, m := range all {
				expected, ok := table[fmt.Sprintf("%s.%s", m.Parent().Name(), m.Name())]
				if !ok {
					t.Fatalf("docs/security.md does not say who may call %s", fullName(m))
				}
				for _, about := range []struct{ job, tenant string }{{ownJob, ""}, {ownJob, "a"}, {otherJob, "b"}} {
					want := allowed
					switch {
					case !expected.roles[role]:
						want = denied
					case about.job == otherJob && expected.another != "–" && role != mapreduce.Admin:
						want = expected.another
					}
					for protocol, call := range callers {
						if protocol != byGRPC && !offered(m) {
							continue
						}
						got, err := call(t.Context(), m, about.job, about.tenant)
						if calls++; got != want || err != nil {
							t.Errorf("%s as %s by %s over %s, of tenant %q: %s, want %s; %v", fullName(m), role, way, protocol, about.tenant, got, want, err)
						}
					}
				}
			}
		}
	}
	t.Logf("%d calls", calls)
}

// Who has not shown who it is, or is not in the policy, may call nothing.
func TestNobody(t *testing.T) {
	l := newLaboratory(t)
	h := l.serve("nobody", "principals: []", &servertest.Service{}, fleet{})
	for way, want := range map[string]string{
		"nobody": unknownCaller, "spiffe": denied, "dns": denied, "cn": denied, "oidc": denied, "token": denied, "uid": denied,
	} {
		for protocol, call := range h.callers(t, way) {
			for _, m := range methods(t) {
				if protocol != byGRPC && !offered(m) {
					continue
				}
				if got, err := call(t.Context(), m, ownJob, "a"); got != want || err != nil {
					t.Errorf("%s by %s over %s: %s, want %s; %v", fullName(m), way, protocol, got, want, err)
				}
			}
		}
	}
}

// Calls and streams that are under way end when their callers are revoked, in whichever
// way, and others go on.
func TestRevoked(t *testing.T) {
	l := newLaboratory(t)
	watched := &watches{begun: make(chan struct{}, 10)}
	both := "principals:\n" +
		"- {match: 'dns:alice', tenant: a, roles: [viewer]}\n" +
		"- {match: 'token:ci', tenant: a, roles: [viewer]}\n" +
		"- {match: 'oidc:subject', tenant: a, roles: [viewer]}\n" +
		"- {match: 'cn:Old Program', tenant: a, roles: [viewer]}\n"
	h := l.serve("revoked", both, access.NewService(watched, access.Rules{TenantOf: tenantOf}), fleet{})
	watch := func(way string) <-chan error {
		t.Helper()
		conn, ended := h.dial(t, way), make(chan error, 1)
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/coditect.mapreduce.v1.MapReduceService/WatchJob")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range methods(t) {
			if m.Name() == "WatchJob" {
				request, err := requestFor(m.Input(), ownJob, "")
				if err == nil {
					err = errors.Join(stream.SendMsg(request), stream.CloseSend())
				}
				if err != nil {
					t.Fatal(err)
				}
				reply, err := protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName())
				if err != nil {
					t.Fatal(err)
				}
				go func() { ended <- stream.RecvMsg(reply.New().Interface()) }()
			}
		}
		<-watched.begun
		return ended
	}
	alice, ci, subject, old := watch("dns"), watch("token"), watch("oidc"), watch("cn")
	stays := func(after string, watches ...<-chan error) {
		t.Helper()
		for _, w := range watches {
			select {
			case err := <-w:
				t.Errorf("after %s, a watch has ended that should go on: %v", after, err)
			default:
			}
		}
	}
	ends := func(after string, w <-chan error, want codes.Code) {
		t.Helper()
		if err := <-w; status.Code(err) != want || !strings.Contains(err.Error(), "the caller is cut off") {
			t.Errorf("after %s: %v, want %v", after, err, want)
		}
	}
	h.guard.Recheck()
	stays("nothing", alice, ci, subject, old)

	l.write(h.policy, "nonsense")
	h.guard.Recheck()
	stays("a policy that cannot be read", alice, ci, subject, old)

	l.write(h.policy, strings.ReplaceAll(both, "- {match: 'dns:alice', tenant: a, roles: [viewer]}\n", ""))
	h.guard.Recheck()
	ends("it was taken out of the policy", alice, codes.PermissionDenied)
	stays("another was taken out", ci, subject, old)

	l.write("tokens", "")
	h.guard.Recheck()
	ends("its token was taken away", ci, codes.Unauthenticated)
	stays("a token was taken away", subject, old)

	other, err := transport.NewAuthority("other", time.Hour, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	l.write("ca.pem", string(other.CertPEM()))
	h.guard.Recheck()
	ends("its authority is one no more", old, codes.Unauthenticated)
	stays("an authority was taken away", subject)

	l.write(h.policy, strings.ReplaceAll(both, "'oidc:subject', tenant: a", "'oidc:subject', tenant: b"))
	h.guard.Recheck()
	ends("it is of another tenant", subject, codes.PermissionDenied)
}

// watches is a service whose watches last until they are cut off.
type watches struct {
	servertest.Service
	begun chan struct{}
}

func (w *watches) WatchJob(ctx context.Context, _ mapreduce.Principal, _ mapreduce.JobID, _ func(*mapreduce.Job) error) error {
	w.begun <- struct{}{}
	<-ctx.Done()
	return context.Cause(ctx)
}

// A certificate with the names of two principals is neither.
func TestTwoNames(t *testing.T) {
	l := newLaboratory(t)
	h := l.serve("two", "principals:\n- {match: 'dns:alice', tenant: a, roles: [viewer]}\n- {match: 'dns:bob', tenant: b, roles: [viewer]}\n", &servertest.Service{}, fleet{})
	for names, want := range map[string]codes.Code{"alice": codes.OK, "alice,carol": codes.OK, "alice,bob": codes.PermissionDenied, "carol": codes.PermissionDenied} {
		l.issue("two", transport.CertificateRequest{Names: strings.Split(names, ",")})
		secured, err := transport.NewClient(transport.ClientConfig{CA: l.path("ca.pem"), Cert: l.path("two.pem"), Key: l.path("two.key")})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := grpc.NewClient(h.tcp, grpc.WithTransportCredentials(secured))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range methods(t) {
			if m.Name() != "ListJobs" {
				continue
			}
			got, err := outcome(t.Context(), conn, m, "", "")
			if (got == allowed) != (want == codes.OK) || err != nil {
				t.Errorf("a certificate for %s: %s, %v; want %v", names, got, err, want)
			}
		}
		_ = conn.Close() // nothing is left to learn from it
	}
}
