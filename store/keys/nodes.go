package keys

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// NodeKeys are the keys of the orchestrators of an installation: their signs of life, the
// sessions of workers that they hold with what these have claimed, and what is granted to
// each.
type NodeKeys struct{ space *Space }

// Nodes returns the keys of orchestrators.
func (s *Space) Nodes() NodeKeys { return NodeKeys{s} }

// Held returns the key of one claim of a session.
func (n NodeKeys) Held(id mapreduce.SessionID, claim string) []byte {
	return tuple.AppendString(tuple.AppendString(n.space.nameKey("held"), string(id)), claim)
}

// HeldBy returns the range of the claims of a session.
func (n NodeKeys) HeldBy(id mapreduce.SessionID) store.Range {
	return childRange(tuple.AppendString(n.space.nameKey("held"), string(id)))
}

// HeldAll returns the range of all claims.
func (n NodeKeys) HeldAll() store.Range { return childRange(n.space.nameKey("held")) }

// Session returns the key of a worker's session.
func (n NodeKeys) Session(id mapreduce.SessionID) []byte {
	return tuple.AppendString(n.space.nameKey("sess"), string(id))
}

// Sessions returns the range of all sessions.
func (n NodeKeys) Sessions() store.Range { return childRange(n.space.nameKey("sess")) }

// Beat returns the key of an orchestrator's sign of life.
func (n NodeKeys) Beat(o mapreduce.NodeID) []byte {
	return tuple.AppendString(n.space.nameKey("beat"), string(o))
}

// Beats returns the range of all signs of life.
func (n NodeKeys) Beats() store.Range { return childRange(n.space.nameKey("beat")) }

// Doubt returns the key of the doubt that an orchestrator lives.
func (n NodeKeys) Doubt(o mapreduce.NodeID) []byte {
	return tuple.AppendString(n.space.nameKey("doubt"), string(o))
}

// Grant returns the key of what an orchestrator may spend for a scope.
func (n NodeKeys) Grant(of mapreduce.Scope, o mapreduce.NodeID) []byte {
	return tuple.AppendString(n.grantKey(of), string(o))
}

func (n NodeKeys) grantKey(of mapreduce.Scope) []byte {
	return tuple.AppendString(tuple.AppendInt(n.space.nameKey("grant"), int64(of.Kind)), of.Name)
}

// Grants returns the range of the grants of a scope.
func (n NodeKeys) Grants(of mapreduce.Scope) store.Range { return childRange(n.grantKey(of)) }

// Limit returns the key of the fleet's limits for a model, "provider/model".
func (n NodeKeys) Limit(model string) []byte {
	return tuple.AppendString(n.space.nameKey("limit"), model)
}

// Limits returns the range of the Limit keys of all models.
func (n NodeKeys) Limits() store.Range { return childRange(n.space.nameKey("limit")) }

// GrantScope reads the scope of a grant, which comes first behind the name of its key.
func GrantScope(r *tuple.Reader) mapreduce.Scope {
	kind := mapreduce.ScopeKind(r.Int())
	return mapreduce.Scope{Kind: kind, Name: r.Text()}
}
