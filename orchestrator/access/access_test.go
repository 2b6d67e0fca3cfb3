package access_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/access"
)

var rules = access.Rules{TenantOf: func(_ context.Context, id mapreduce.JobID) (mapreduce.TenantID, error) {
	if id == "none" {
		return "", errs.New(errs.NotFound, "no job %s, whatever the words", id)
	}
	if id == "away" {
		return "", errs.New(errs.Unavailable, "the store is away")
	}
	return "a", nil
}}

func TestWhoMayUseJobs(t *testing.T) {
	as := func(tenant mapreduce.TenantID, roles ...mapreduce.Role) mapreduce.Principal {
		return mapreduce.Principal{Tenant: tenant, Name: fmt.Sprint(tenant, roles), Roles: roles}
	}
	const allowed = errs.Kind(255)
	for _, tt := range []struct {
		by   mapreduce.Principal
		role mapreduce.Role
		id   mapreduce.JobID
		want errs.Kind
	}{
		{as("a", mapreduce.Viewer), mapreduce.Viewer, "j", allowed},
		{as("a", mapreduce.Submitter), mapreduce.Viewer, "j", allowed},
		{as("a", mapreduce.Operator), mapreduce.Viewer, "j", allowed},
		{as("a", mapreduce.Worker), mapreduce.Viewer, "j", errs.Denied},
		{as("a", mapreduce.Viewer), mapreduce.Operator, "j", errs.Denied},
		{as("a", mapreduce.Submitter), mapreduce.Operator, "j", errs.Denied},
		{as("a", mapreduce.Viewer), mapreduce.Viewer, "none", errs.NotFound},
		{as("a", mapreduce.Viewer), mapreduce.Viewer, "away", errs.Unavailable},
		{as("b", mapreduce.Viewer), mapreduce.Viewer, "j", errs.NotFound},
		{as("b", mapreduce.Operator), mapreduce.Operator, "j", errs.NotFound},
		{as("b", mapreduce.Viewer), mapreduce.Operator, "j", errs.Denied},
		{as("b", mapreduce.Admin), mapreduce.Operator, "j", allowed},
		{as("", mapreduce.Admin), mapreduce.Viewer, "j", allowed},
		{as(""), mapreduce.Viewer, "j", errs.Denied},
		{mapreduce.Local(""), mapreduce.Operator, "j", allowed},
	} {
		got := allowed
		if err := rules.UseJob(t.Context(), tt.by, tt.role, tt.id); err != nil {
			got = errs.KindOf(err)
		}
		if got != tt.want {
			t.Errorf("%s uses %s as a %s: %v, want %v", tt.by.Name, tt.id, tt.role, got, tt.want)
		}
	}
}

// What is said of a job of another tenant is what is said of one that has never been.
func TestOthersJobsAreNotThere(t *testing.T) {
	bob := mapreduce.Principal{Tenant: "b", Name: "bob", Roles: []mapreduce.Role{mapreduce.Operator}}
	of := func(tenant mapreduce.TenantID) string {
		r := access.Rules{TenantOf: func(context.Context, mapreduce.JobID) (mapreduce.TenantID, error) {
			if tenant == "" {
				return "", errs.New(errs.NotFound, "gone")
			}
			return tenant, nil
		}}
		err := r.UseJob(t.Context(), bob, mapreduce.Viewer, "j")
		return fmt.Sprintf("%v %v %s", errs.KindOf(err), err, errs.ReasonOf(err))
	}
	if others, none := of("a"), of(""); others != none {
		t.Errorf("of another's job: %s\nof no job: %s", others, none)
	}
}

func TestTenants(t *testing.T) {
	ann := mapreduce.Principal{Tenant: "a", Name: "ann", Roles: []mapreduce.Role{mapreduce.Submitter}}
	admin := mapreduce.Principal{Tenant: "a", Name: "admin", Roles: []mapreduce.Role{mapreduce.Admin}}
	nobody := mapreduce.Principal{Name: "nobody", Roles: []mapreduce.Role{mapreduce.Viewer}}
	for _, tt := range []struct {
		by    mapreduce.Principal
		named mapreduce.TenantID
		want  mapreduce.TenantID
		fails bool
	}{
		{ann, "", "a", false},
		{ann, "a", "a", false},
		{ann, "b", "", true},
		{admin, "", "a", false},
		{admin, "b", "b", false},
		{nobody, "", "", true}, // no submitter
	} {
		got, err := rules.TenantFor(t.Context(), tt.by, mapreduce.Submitter, tt.named)
		if got != tt.want || (err != nil) != tt.fails || err != nil && errs.KindOf(err) != errs.Denied {
			t.Errorf("%s names %q: %q, %v", tt.by.Name, tt.named, got, err)
		}
	}
	for _, tt := range []struct {
		by    mapreduce.Principal
		named mapreduce.TenantID
		want  mapreduce.TenantID
		fails bool
	}{
		{ann, "", "a", false}, {ann, "b", "", true}, {admin, "", "", false}, {admin, "b", "b", false}, {nobody, "", "", true},
	} {
		got, err := rules.ListedTenant(t.Context(), tt.by, tt.named)
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s lists %q: %q, %v", tt.by.Name, tt.named, got, err)
		}
	}
}

// A fleet that keeps sessions until they are told to end.
type fleet struct {
	protocol.Fleet
	greeted chan *protocol.Hello
	end     chan struct{}
}

func (f fleet) Work(_ context.Context, s protocol.WorkStream) error {
	m, err := s.Recv()
	if err != nil {
		return err
	}
	f.greeted <- m.Hello
	<-f.end
	return nil
}

func (f fleet) GetBlob(context.Context, *protocol.BlobRequest, func([]byte) error) error { return nil }

func (f fleet) PutBlob(context.Context, *protocol.BlobRequest, func() ([]byte, error)) (*protocol.BlobStored, error) {
	return &protocol.BlobStored{}, nil
}

// A greeting is a stream on which a worker says who it is.
type greeting mapreduce.SessionID

func (g greeting) Send(*protocol.ToWorker) error { return nil }

func (g greeting) Recv() (*protocol.FromWorker, error) {
	return &protocol.FromWorker{Hello: &protocol.Hello{Session: mapreduce.SessionID(g)}}, nil
}

func (g greeting) ClosedByWorker() bool { return false }

// A session is of the worker that has taken it up, and of no other while its stream lasts.
func TestSessionsAreKeptApart(t *testing.T) {
	next := fleet{greeted: make(chan *protocol.Hello), end: make(chan struct{})}
	f := access.NewFleet(next)
	as := func(name string, roles ...mapreduce.Role) context.Context {
		return mapreduce.WithCaller(t.Context(), mapreduce.Principal{Name: name, Roles: roles})
	}
	one, two := as("one", mapreduce.Worker), as("two", mapreduce.Worker)
	ended := make(chan error, 1)
	go func() { ended <- f.Work(one, greeting("s")) }()
	<-next.greeted
	blob := func(ctx context.Context, s mapreduce.SessionID) (errs.Kind, errs.Kind) {
		q := &protocol.BlobRequest{Session: s}
		get := f.GetBlob(ctx, q, func([]byte) error { return nil })
		_, put := f.PutBlob(ctx, q, func() ([]byte, error) { return nil, io.EOF })
		return kindOf(get), kindOf(put)
	}
	for _, tt := range []struct {
		ctx     context.Context
		session mapreduce.SessionID
		want    errs.Kind
	}{
		{one, "s", none},
		{two, "s", errs.Precondition},
		{two, "other", none},
		{as("admin", mapreduce.Admin), "s", errs.Denied},
		{as("ann", mapreduce.Submitter), "s", errs.Denied},
		{t.Context(), "other", none},
	} {
		if get, put := blob(tt.ctx, tt.session); get != tt.want || put != tt.want {
			t.Errorf("session %s: getting %v, putting %v, want %v", tt.session, get, put, tt.want)
		}
	}
	if err := f.Work(two, greeting("s")); !errors.Is(err, errs.Denied) {
		t.Errorf("another takes the session up: %v", err)
	}
	if err := f.Work(as("admin", mapreduce.Admin), greeting("t")); !errors.Is(err, errs.Denied) {
		t.Errorf("one that is no worker: %v", err)
	}
	again := make(chan error, 1)
	go func() { again <- f.Work(one, greeting("s")) }() // as after a connection that broke
	<-next.greeted
	close(next.end)
	if err := errors.Join(<-ended, <-again); err != nil {
		t.Error(err)
	}
	if get, _ := blob(two, "s"); get != none {
		t.Errorf("a session without a stream: %v", get)
	}
}

const none = errs.Kind(255)

func kindOf(err error) errs.Kind {
	if err == nil {
		return none
	}
	return errs.KindOf(err)
}

// demand is that of two tenants.
type demand struct{}

func (demand) Demand(context.Context, mapreduce.Principal) ([]protocol.Demand, error) {
	return []protocol.Demand{{Tenant: "a", Units: 1}, {Tenant: "b", Units: 2}}, nil
}

func TestDemand(t *testing.T) {
	d := access.NewDemander(demand{})
	for role, want := range map[mapreduce.Role]int{mapreduce.Viewer: 1, mapreduce.Operator: 1, mapreduce.Worker: 0, mapreduce.Scaler: 2, mapreduce.Admin: 2, "": 0} {
		got, err := d.Demand(t.Context(), mapreduce.Principal{Tenant: "a", Roles: []mapreduce.Role{role}})
		if len(got) != want || (err != nil) != (want == 0) {
			t.Errorf("a %s sees %v, %v", role, got, err)
		}
	}
}
