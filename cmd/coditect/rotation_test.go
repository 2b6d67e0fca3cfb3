package main_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/coditect/mapreduce/api/auth"
	"github.com/coditect/mapreduce/api/auth/oidc/oidctest"
	edge "github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/transport"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// rotationUnits is how many units the job of TestRotation has, unless
// CODITECT_ROTATION_UNITS says it.
const rotationUnits = 300

// cutOffWithin is how long a stream may go on whose principal was revoked.
const cutOffWithin = 5 * time.Second

// Certificates, authorities, tokens, the policy and the keys of an issuer are replaced while
// a job runs over mutual TLS, one after another, as an operator does it who wants nobody to
// notice: what is new comes before what is old goes. No unit is lost; no call and no stream
// of those is refused who are allowed; who is revoked is cut off within 5 s.
//
// A model answers as many calls as each replacement has, so the job runs on after each.
func TestRotation(t *testing.T) {
	testenv.Lengthy(t)

	units := rotationUnits
	if text := os.Getenv("CODITECT_ROTATION_UNITS"); text != "" {
		var err error
		if units, err = strconv.Atoi(text); err != nil || units < 50 {
			t.Fatalf("CODITECT_ROTATION_UNITS: %q is no number of units from 50", text)
		}
	}
	r := newRotation(t, units)
	steps := []struct {
		name string
		do   func()
	}{
		{"the certificate of the server", r.replaceServerCertificate},
		{"certificates of clients and workers", r.replaceClientCertificates},
		{"the policy, by one with another principal more", r.extendPolicy},
		{"keys of the issuer", r.replaceIssuerKeys},
		{"keys of the issuer again: the first is no more", r.replaceIssuerKeys},
		{"tokens of the token file", r.replaceTokens},
		{"the authority", r.replaceAuthority},
		{"a policy that cannot be read", r.spoilPolicy},
		{"who is in the policy", r.revokeByPolicy},
		{"a worker that is no more in the policy", r.revokeWorker},
	}
	for i, step := range steps {
		begun := time.Now()
		r.allow(units * (i + 1) / (len(steps) + 1))
		step.do()
		r.reaches(int64(units*(i+1)/(len(steps)+1)) - 3*rotationSlots) // what workers held whose streams ended may come later
		t.Logf("%5.1f s: %s", time.Since(begun).Seconds(), step.name)
	}
	if last := r.seen.Load(); last.State.Ended() {
		t.Errorf("the job had ended before all was replaced: %v", last.State)
	}
	r.open()
	r.finish(units)
}

// The slots of the workers of a rotation, all together.
const (
	rotationWorkers = 4
	rotationSlots   = 4 * rotationWorkers
)

// A rotation is a fleet over mutual TLS and those who call it all the time.
type rotation struct {
	*studio
	ca      *transport.Authority
	issuer  *oidctest.Issuer
	address string
	job     mapreduce.JobID
	gate    chan struct{} // an entry for each call of the model that may be answered
	allowed int           // entries that were put there
	open    func()        // has the model answer all calls

	policy []string          // lines of principals
	lines  map[string]string // of the token file, by principal

	server *daemon
	clock  runningClock
	seen   atomic.Pointer[mapreduce.Job] // as the watcher of the whole job saw it last
	whole  chan error                    // how its watch ended
	pulses map[string]*pulse             // who calls all the time, by the way in which it shows who it is
	stop   context.CancelFunc            // ends them
	ended  sync.WaitGroup
}

func newRotation(t *testing.T, units int) *rotation {
	t.Helper()
	r := &rotation{gate: make(chan struct{}, units), lines: make(map[string]string), whole: make(chan error, 1), pulses: make(map[string]*pulse)}
	r.studio = newStudio(t, fakellm.Config{Key: modelKey, Model: func(c fakellm.Call) fakellm.Reply {
		<-r.gate
		return obedient(c)
	}})
	r.open = sync.OnceFunc(func() { close(r.gate) })
	t.Cleanup(r.open) // else the model is not done when it is closed
	r.shops(units)
	var err error
	if r.issuer, err = oidctest.New(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.issuer.Close)
	r.newAuthority("one")
	r.writeFile("ca.pem", string(r.ca.CertPEM()))
	r.issueAll()
	for _, name := range []string{"worker-by-token", "ci", "leaver-by-token"} {
		r.addToken(name, name)
	}
	r.writeTokens()
	r.writeOIDC("alice", "worker-by-issuer", "leaver-by-issuer")
	r.policy = []string{
		"oidc:alice, tenant: a, roles: [submitter, operator]", "dns:carol, tenant: a, roles: [viewer]", "token:ci, tenant: a, roles: [viewer]",
		"spiffe://example.org/worker, roles: [worker]", "token:worker-by-token, roles: [worker]", "oidc:worker-by-issuer, roles: [worker]",
		"spiffe://example.org/leaver, roles: [worker]",
		"oidc:leaver-by-issuer, tenant: a, roles: [viewer]", "token:leaver-by-token, tenant: a, roles: [viewer]", "dns:leaver, tenant: a, roles: [viewer]",
	}
	r.writePolicy()
	r.startFleet()
	r.startJob()
	r.startPulses()
	return r
}

// startFleet starts the server and a worker for each way in which one can show who it is,
// and one that is revoked later.
func (r *rotation) startFleet() {
	r.t.Helper()
	r.server = r.start(nil, "serve", "--listen", "127.0.0.1:0", "--workers", "0", "--tls-cert", r.path("server.pem"), "--tls-key", r.path("server.key"),
		"--client-ca", r.path("ca.pem"), "--policy", r.path("policy.yaml"), "--tokens", r.path("tokens"),
		"--oidc-issuer", r.issuer.URL(), "--oidc-audience", "coditect")
	r.address = r.server.said.await(r.t, `msg=serving address=(\S+)`)
	for _, shown := range [][]string{
		{"--tls-cert", r.path("worker.pem"), "--tls-key", r.path("worker.key")},
		{"--token-file", r.path("worker-by-token.token")},
		{"--token-file", r.path("worker-by-issuer.token")},
		{"--tls-cert", r.path("leaving-worker.pem"), "--tls-key", r.path("leaving-worker.key")},
	} {
		args := []string{"worker", "--server", r.address, "--slots", strconv.Itoa(rotationSlots / rotationWorkers), "--drain", "1s", "--tls-ca", r.path("server-ca.pem"), "--endpoint", "anthropic=" + r.url}
		r.start([]string{"ANTHROPIC_API_KEY=" + modelKey}, append(args, shown...)...)
	}
}

// startJob submits the job, and watches it until it ends.
func (r *rotation) startJob() {
	r.t.Helper()
	o := r.try([]string{"ANTHROPIC_API_KEY="}, "run", "--detach", "--server", r.address, "--tls-ca", r.path("server-ca.pem"), "--token-file", r.path("alice.token"),
		"--input", r.docs, "--schema", r.path("schema.yaml"), "--provider", "anthropic", "--model", "claude-haiku-4-5", "--merge", "typed")
	if o.code != 0 {
		r.t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	r.job = mapreduce.JobID(strings.TrimSpace(o.stdout))
	c := r.dial(r.shows("alice"))
	r.seen.Store(new(mapreduce.Job))
	go func() {
		defer c.Close()
		r.whole <- c.WatchJob(r.t.Context(), r.job, func(j *mapreduce.Job) error { r.seen.Store(j); return nil })
	}()
}

// allow lets the model answer so many calls in all.
func (r *rotation) allow(n int) {
	for ; r.allowed < n; r.allowed++ {
		r.gate <- struct{}{}
	}
}

// reaches waits until so many units are complete.
func (r *rotation) reaches(n int64) {
	r.t.Helper()
	r.until(fmt.Sprintf("%d units are complete", n), func() bool {
		select {
		case err := <-r.whole:
			r.t.Fatalf("the watch of the whole job ended: %v", err)
		default:
		}
		return r.seen.Load().CompletedUnits >= n
	})
}

// until waits until something is seen.
func (r *rotation) until(what string, seen func() bool) {
	r.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !seen(); <-tick.C {
		if time.Now().After(deadline) {
			r.t.Fatalf("it never came to be that %s; the job is %+v; the server said\n%s", what, r.seen.Load(), r.server.said)
		}
	}
}

// finish waits for the end, and holds it against what was wanted.
func (r *rotation) finish(units int) {
	r.t.Helper()
	select {
	case err := <-r.whole:
		if err != nil {
			r.t.Errorf("the watch of the whole job ended: %v", err)
		}
	case <-time.After(patience):
		r.t.Fatalf("the job does not end: %+v", r.seen.Load())
	}
	last := r.seen.Load()
	if last.State != mapreduce.JobComplete || last.FailedUnits != 0 || last.Coverage.Documents.Mapped != int64(units) {
		r.t.Errorf("the job is %v, %d of %d documents mapped, %d units failed: %s", last.State, last.Coverage.Documents.Mapped, units, last.FailedUnits, last.Error)
	}
	r.stop()
	r.ended.Wait()
	for way, p := range r.pulses {
		r.t.Logf("%d calls by %s, each over a connection of its own", p.calls.Load(), way)
		if p.calls.Load() == 0 {
			r.t.Errorf("no call was made by %s", way)
		}
	}
	r.t.Logf("%d units, %d calls of the model", units, len(r.fake.Entries()))
	if again := len(r.fake.Entries()) - units; again > 2*rotationSlots {
		r.t.Errorf("%d calls of the model were made again: a revoked worker and lost streams account for %d at most", again, 2*rotationSlots)
	}
	for line := range strings.Lines(r.server.said.String()) {
		if strings.Contains(line, "level=ERROR") && !strings.Contains(line, "what was read before stays in force") {
			r.t.Errorf("the server said %s", line)
		}
	}
}

// A shown is what a caller shows.
type shown struct {
	secret string // bearer token; "" for none
	cert   string // name of the files of a certificate; "" for none
}

// shows returns what the file of a token holds now.
func (r *rotation) shows(name string) shown {
	r.t.Helper()
	data, err := os.ReadFile(r.path(name + ".token"))
	if err != nil {
		r.t.Fatal(err)
	}
	return shown{secret: strings.TrimSpace(string(data))}
}

// A bearer is a token that goes with each call.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return true }

// connect returns a client of its own connection.
func (r *rotation) connect(s shown) (*edge.Client, error) {
	files := transport.ClientConfig{CA: r.path("server-ca.pem")}
	if s.cert != "" {
		files.Cert, files.Key = r.path(s.cert+".pem"), r.path(s.cert+".key")
	}
	secured, err := transport.NewClient(files)
	if err != nil {
		return nil, err
	}
	config := edge.Config{Credentials: secured}
	if s.secret != "" {
		config.Options = append(config.Options, grpc.WithPerRPCCredentials(bearer(s.secret)))
	}
	return edge.Dial(r.address, config)
}

func (r *rotation) dial(s shown) *edge.Client {
	r.t.Helper()
	c, err := r.connect(s)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// holds reports whether what a caller shows is good now.
func (r *rotation) holds(s shown) bool {
	c, err := r.connect(s)
	if err != nil {
		return false
	}
	defer c.Close()
	_, err = c.GetJob(r.t.Context(), r.job)
	return err == nil
}

// A pulse calls all the time as one who is allowed, each time over a new connection.
type pulse struct {
	shown atomic.Pointer[shown]
	calls atomic.Int64
}

// startPulses begins to call in each way, and to watch.
func (r *rotation) startPulses() {
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.t.Cleanup(func() { stop(); r.ended.Wait() })
	r.ended.Go(func() { r.clock.run(ctx) })
	for way, s := range map[string]shown{"certificate": {cert: "carol"}, "token": r.shows("ci"), "issuer": r.shows("alice")} {
		p := &pulse{}
		p.shown.Store(&s)
		r.pulses[way] = p
		r.ended.Go(func() {
			for ctx.Err() == nil {
				err := r.callOnce(ctx, *p.shown.Load())
				if ctx.Err() == nil && err != nil {
					r.t.Errorf("a call by %s was refused that is allowed: %v", way, err)
					return
				}
				p.calls.Add(1)
			}
		})
	}
}

// callOnce makes a call and begins a watch, over a connection of their own.
func (r *rotation) callOnce(ctx context.Context, s shown) error {
	c, err := r.connect(s)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.GetJob(ctx, r.job); err != nil {
		return err
	}
	err = c.WatchJob(ctx, r.job, func(*mapreduce.Job) error { return errSeenOnce })
	if errors.Is(err, errSeenOnce) {
		err = nil
	}
	return err
}

var errSeenOnce = errors.New("seen once")

// change has those who call in a way show something else, and waits until none of their
// calls shows the former any more.
func (r *rotation) change(way string, s shown) {
	r.t.Helper()
	p := r.pulses[way]
	p.shown.Store(&s)
	from := p.calls.Load()
	r.until("calls by "+way+" go on", func() bool { return r.t.Failed() || p.calls.Load() >= from+2 })
}

// watch begins a watch, and returns how it ends, with when.
func (r *rotation) watch(s shown) <-chan error {
	r.t.Helper()
	c, begun, ended := r.dial(s), make(chan struct{}), make(chan error, 1)
	var once sync.Once
	go func() {
		defer c.Close()
		ended <- c.WatchJob(r.t.Context(), r.job, func(*mapreduce.Job) error {
			once.Do(func() { close(begun) })
			return nil
		})
	}()
	select {
	case <-begun:
	case err := <-ended:
		r.t.Fatalf("a watch did not begin: %v", err)
	}
	return ended
}

// A runningClock shows for how long this machine has run: while that stands still, as a
// virtual one does now and then for seconds, nobody can be cut off, and no tick comes either.
type runningClock struct{ ticks atomic.Int64 }

// clockTick is what it counts in.
const clockTick = 20 * time.Millisecond

func (c *runningClock) run(ctx context.Context) {
	tick := time.NewTicker(clockTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.ticks.Add(1)
		}
	}
}

func (c *runningClock) now() time.Duration { return time.Duration(c.ticks.Load()) * clockTick }

// cutOff waits until a stream has ended whose caller was revoked at a time of the clock.
func (r *rotation) cutOff(why string, revoked time.Duration, stream <-chan error) {
	r.t.Helper()
	select {
	case err := <-stream:
		after := r.clock.now() - revoked
		r.t.Logf("%v after it was revoked, a stream was cut off: %s", after.Round(time.Millisecond), why)
		if errs.ReasonOf(err) != auth.ReasonRevoked || after > cutOffWithin {
			r.t.Errorf("%s: after %v, by %v; want within %v", why, after, err, cutOffWithin)
		}
	case <-time.After(patience):
		r.t.Errorf("%s: the stream goes on", why)
	}
}

// goesOn fails if a stream has ended.
func (r *rotation) goesOn(why string, stream <-chan error) {
	r.t.Helper()
	select {
	case err := <-stream:
		r.t.Errorf("%s: a stream ended that is allowed: %v", why, err)
	default:
	}
}

func (r *rotation) writeFile(name, text string) {
	r.t.Helper()
	if err := transport.ReplaceFile(r.path(name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rotation) newAuthority(name string) {
	r.t.Helper()
	var err error
	if r.ca, err = transport.NewAuthority(name, time.Hour, time.Now); err != nil {
		r.t.Fatal(err)
	}
}

// issue makes a certificate, in place of one that may be there.
func (r *rotation) issue(name string, q transport.CertificateRequest) {
	r.t.Helper()
	q.Valid = time.Hour
	cert, key, err := r.ca.Issue(q)
	if err == nil {
		err = transport.WritePair(r.path(name+".pem"), r.path(name+".key"), cert, key)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// issueAll makes all certificates, but those of callers that are replaced one by one.
func (r *rotation) issueAll() {
	r.t.Helper()
	if _, err := os.Stat(r.path("server-ca.pem")); err != nil {
		r.writeFile("server-ca.pem", string(r.ca.CertPEM()))
	}
	r.issue("server", transport.CertificateRequest{Names: []string{"127.0.0.1"}, Server: true})
	r.issue("worker", transport.CertificateRequest{Names: []string{"spiffe://example.org/worker"}})
	r.issue("leaving-worker", transport.CertificateRequest{Names: []string{"spiffe://example.org/leaver"}})
	r.issue("carol", transport.CertificateRequest{Names: []string{"carol"}})
	r.issue("leaver", transport.CertificateRequest{Names: []string{"leaver"}})
}

// addToken makes a token of a principal. The file of the caller with it has another name, if
// one principal has two tokens: no two lines have one name.
func (r *rotation) addToken(name, file string) {
	r.t.Helper()
	secret, line, err := auth.NewToken(name, time.Time{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.lines[name] = line
	r.writeFile(file+".token", secret+"\n")
}

func (r *rotation) writeTokens() {
	r.t.Helper()
	text := ""
	for _, line := range r.lines {
		text += line + "\n"
	}
	r.writeFile("tokens", text)
}

func (r *rotation) writeOIDC(names ...string) {
	r.t.Helper()
	for _, name := range names {
		token, err := r.issuer.Token(name, "coditect", nil)
		if err != nil {
			r.t.Fatal(err)
		}
		r.writeFile(name+".token", token)
	}
}

func (r *rotation) writePolicy() {
	r.t.Helper()
	text := "principals:\n"
	for _, line := range r.policy {
		match, rest, _ := strings.Cut(line, ", ")
		text += fmt.Sprintf("- {match: %q, %s}\n", match, rest)
	}
	r.writeFile("policy.yaml", text)
}

// leave takes a principal out of the policy.
func (r *rotation) leave(match string) {
	r.t.Helper()
	for i, line := range r.policy {
		if strings.HasPrefix(line, match+",") {
			r.policy = append(r.policy[:i:i], r.policy[i+1:]...)
		}
	}
	r.writePolicy()
}

func (r *rotation) replaceServerCertificate() {
	before := r.serverSerial()
	r.issue("server", transport.CertificateRequest{Names: []string{"127.0.0.1", "localhost"}, Server: true})
	r.until("the server shows its new certificate", func() bool { return r.serverSerial() != before })
}

// serverSerial returns the number of the certificate that the server shows.
func (r *rotation) serverSerial() string {
	r.t.Helper()
	conn, err := tls.Dial("tcp", r.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13}) // whoever has signed it
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

func (r *rotation) replaceClientCertificates() {
	stream := r.watch(shown{cert: "carol"})
	for name, names := range map[string]string{"carol": "carol", "worker": "spiffe://example.org/worker"} {
		r.issue(name+"-2", transport.CertificateRequest{Names: []string{names}})
		if name == "worker" { // whose process reads its files again
			r.issue(name, transport.CertificateRequest{Names: []string{names}})
		}
	}
	r.change("certificate", shown{cert: "carol-2"})
	r.goesOn("another certificate was made", stream)
}

func (r *rotation) extendPolicy() {
	r.policy = append(r.policy, "dns:dora, tenant: a, roles: [viewer]")
	r.issue("dora", transport.CertificateRequest{Names: []string{"dora"}})
	r.writePolicy()
	r.until("a new principal may call", func() bool { return r.holds(shown{cert: "dora"}) })
}

// replaceIssuerKeys has the issuer sign with another key, and keep the one before.
func (r *rotation) replaceIssuerKeys() {
	stream := r.watch(r.shows("alice"))
	if err := r.issuer.Rotate(2); err != nil {
		r.t.Fatal(err)
	}
	r.writeOIDC("alice", "worker-by-issuer")
	r.change("issuer", r.shows("alice"))
	r.goesOn("the keys of the issuer have changed", stream)
}

// replaceTokens adds new tokens under other names to the policy and the token file, has
// callers use them, and then takes the old ones away.
func (r *rotation) replaceTokens() {
	r.policy = append(r.policy, "token:ci-2, tenant: a, roles: [viewer]", "token:worker-by-token-2, roles: [worker]")
	r.writePolicy()
	old := r.watch(r.shows("ci"))
	r.addToken("ci-2", "ci")
	r.addToken("worker-by-token-2", "worker-by-token")
	r.writeTokens()
	r.until("the new token holds", func() bool { return r.holds(r.shows("ci")) })
	r.change("token", r.shows("ci"))
	stream := r.watch(r.shows("ci"))
	r.goesOn("there is a second token", old)
	leaver := r.watch(r.shows("leaver-by-token"))
	for _, name := range []string{"ci", "worker-by-token", "leaver-by-token"} {
		delete(r.lines, name)
	}
	revoked := r.clock.now()
	r.writeTokens()
	r.cutOff("its token was taken away", revoked, leaver)
	r.cutOff("the token that it began with was taken away", revoked, old)
	r.goesOn("another token was taken away", stream)
	if r.holds(r.shows("leaver-by-token")) {
		r.t.Error("a token holds that was taken away")
	}
}

// replaceAuthority has clients, workers and the server trust two authorities, then has all
// use certificates of the second, and takes the first away.
func (r *rotation) replaceAuthority() {
	first := string(r.ca.CertPEM())
	r.newAuthority("two")
	second := string(r.ca.CertPEM())
	for _, file := range []string{"ca.pem", "server-ca.pem"} {
		r.writeFile(file, first+second)
	}
	old := r.watch(shown{cert: "carol-2"})
	r.issue("carol-3", transport.CertificateRequest{Names: []string{"carol"}})
	r.issue("dora-2", transport.CertificateRequest{Names: []string{"dora"}})
	r.issue("leaver-2", transport.CertificateRequest{Names: []string{"leaver"}})
	r.until("certificates of the second authority hold", func() bool { return r.holds(shown{cert: "carol-3"}) })
	r.change("certificate", shown{cert: "carol-3"})
	before := r.serverSerial()
	for name, q := range map[string]transport.CertificateRequest{
		"server": {Names: []string{"127.0.0.1"}, Server: true}, "worker": {Names: []string{"spiffe://example.org/worker"}}, "leaving-worker": {Names: []string{"spiffe://example.org/leaver"}},
	} {
		r.issue(name, q)
	}
	r.until("the server shows a certificate of the second authority", func() bool { return r.serverSerial() != before })
	stream := r.watch(shown{cert: "carol-3"})
	r.goesOn("there is a second authority", old)
	revoked := r.clock.now()
	r.writeFile("ca.pem", second)
	r.writeFile("server-ca.pem", second)
	r.cutOff("its authority was taken away", revoked, old)
	r.goesOn("another authority was taken away", stream)
	if r.holds(shown{cert: "dora"}) || !r.holds(shown{cert: "dora-2"}) {
		r.t.Error("a certificate of the first authority holds, or one of the second does not")
	}
}

func (r *rotation) spoilPolicy() {
	stream := r.watch(r.shows("alice"))
	r.writeFile("policy.yaml", "principals: nobody")
	r.server.said.await(r.t, `(what was read before stays in force)`)
	r.goesOn("the policy cannot be read", stream)
	r.writePolicy()
}

// revokeByPolicy takes principals out of the policy, or what they may do, or their tenant.
func (r *rotation) revokeByPolicy() {
	r.writeOIDC("leaver-by-issuer") // signed by a key that the issuer has now
	byIssuer, byCert, stays := r.watch(r.shows("leaver-by-issuer")), r.watch(shown{cert: "leaver-2"}), r.watch(shown{cert: "carol-3"})
	other := r.watch(shown{cert: "dora-2"})
	revoked := r.clock.now()
	for i, line := range r.policy {
		r.policy[i] = strings.Replace(line, "dns:dora, tenant: a", "dns:dora, tenant: b", 1)
	}
	r.leave("oidc:leaver-by-issuer")
	r.leave("dns:leaver")
	r.cutOff("it was taken out of the policy, and has a token of the issuer", revoked, byIssuer)
	r.cutOff("it was taken out of the policy, and has a certificate", revoked, byCert)
	r.cutOff("it is of another tenant", revoked, other)
	r.goesOn("others were taken out of the policy", stays)
}

// revokeWorker takes a worker out of the policy that has units under way.
func (r *rotation) revokeWorker() {
	r.leave("spiffe://example.org/leaver")
	revoked := r.clock.now()
	r.server.said.await(r.t, `(spiffe://example\.org/leaver is not a principal of this server's policy)`)
	if after := r.clock.now() - revoked; after > cutOffWithin {
		r.t.Errorf("a revoked worker was refused after %v", after)
	}
}
