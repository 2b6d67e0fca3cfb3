package access

import (
	"context"
	"sync"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
)

var (
	_ protocol.Fleet    = (*Fleet)(nil)
	_ protocol.Demander = (*Demander)(nil)
)

// A Fleet lets through to another fleet what workers say, and keeps their sessions apart: a
// session is of the principal that has taken it up, while its stream lasts.
type Fleet struct {
	next protocol.Fleet

	mu     sync.Mutex // guards the variable below
	owners map[mapreduce.SessionID]*owner
}

// An owner is the principal of a session, with the number of its streams: one that comes
// back may do so before its old stream has ended.
type owner struct {
	name    string
	streams int
}

// NewFleet returns a fleet that keeps the rules before next. The principal of a call is
// that of its context; nobody has asked for one within this process.
func NewFleet(next protocol.Fleet) *Fleet {
	return &Fleet{next: next, owners: make(map[mapreduce.SessionID]*owner)}
}

// workerOf returns the caller, who has to be a worker.
func workerOf(ctx context.Context) (mapreduce.Principal, error) {
	by, found := mapreduce.CallerOf(ctx)
	if !found {
		by = mapreduce.Local("")
	}
	return by, needs(by, mapreduce.Worker)
}

// Work implements protocol.Fleet.
func (f *Fleet) Work(ctx context.Context, stream protocol.WorkStream) error {
	by, err := workerOf(ctx)
	if err != nil {
		return err
	}
	s := &workStream{WorkStream: stream, fleet: f, by: by}
	defer s.leave()
	return f.next.Work(ctx, s)
}

// A workStream notes whose a session is.
type workStream struct {
	protocol.WorkStream
	fleet *Fleet
	by    mapreduce.Principal

	mu      sync.Mutex // guards the variables below
	session mapreduce.SessionID
	left    bool
}

// Recv implements protocol.WorkStream.
func (s *workStream) Recv() (*protocol.FromWorker, error) {
	m, err := s.WorkStream.Recv()
	if err != nil || m.Hello == nil {
		return m, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != "" || s.left {
		return m, nil // a second greeting, or one too late, is no concern of these rules
	}

	if !s.fleet.enter(m.Hello.Session, s.by.Name) {
		return nil, errs.New(errs.Denied, "%s does not have this session", s.by.Name)
	}
	s.session = m.Hello.Session
	return m, nil
}

func (s *workStream) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	if s.session != "" {
		s.fleet.leave(s.session)
	}
}

// enter notes one more stream of a session, unless it is another principal's.
func (f *Fleet) enter(id mapreduce.SessionID, name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()

	o := f.owners[id]
	switch {
	case o == nil:
		f.owners[id] = &owner{name: name, streams: 1}
	case o.name != name:
		return false
	default:
		o.streams++
	}
	return true
}

func (f *Fleet) leave(id mapreduce.SessionID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.owners[id]
	if o.streams--; o.streams == 0 {
		delete(f.owners, id)
	}
}

// useSession refuses a caller that does not have the session that a transfer is for. The
// next fleet decides what to answer for a session without a stream here.
func (f *Fleet) useSession(ctx context.Context, id mapreduce.SessionID) error {
	by, err := workerOf(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.owners[id]; o != nil && o.name != by.Name {
		return errs.New(errs.Precondition, "%s does not hold this attempt", by.Name)
	}
	return nil
}

// GetBlob implements protocol.Fleet.
func (f *Fleet) GetBlob(ctx context.Context, q *protocol.BlobRequest, take func([]byte) error) error {
	if err := f.useSession(ctx, q.Session); err != nil {
		return err
	}
	return f.next.GetBlob(ctx, q, take)
}

// PutBlob implements protocol.Fleet.
func (f *Fleet) PutBlob(ctx context.Context, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	if err := f.useSession(ctx, q.Session); err != nil {
		return nil, err
	}
	return f.next.PutBlob(ctx, q, next)
}

// A Demander gives the demand of all tenants to autoscalers and admins, and to viewers that
// of their own. Workers, which read documents of others, get nothing.
type Demander struct{ next protocol.Demander }

// NewDemander returns a demander that keeps the rules before next.
func NewDemander(next protocol.Demander) *Demander { return &Demander{next} }

// Demand implements protocol.Demander.
func (d *Demander) Demand(ctx context.Context, by mapreduce.Principal) ([]protocol.Demand, error) {
	all, err := d.next.Demand(ctx, by)
	if err != nil || by.Has(mapreduce.Admin) || by.Has(mapreduce.Scaler) {
		return all, err
	}

	if err := needs(by, mapreduce.Viewer); err != nil {
		return nil, err
	}

	var own []protocol.Demand
	for _, one := range all {
		if one.Tenant == by.Tenant {
			own = append(own, one)
		}
	}
	return own, nil
}
