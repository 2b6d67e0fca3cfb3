package orchestrator

import "context"

// Retire says that this orchestrator is no more, so that others have at once
// what it was granted, instead of after the lease. It is for when Run has
// returned, the workers of this process have ended, and nobody calls any more. If
// workers elsewhere or submissions of it are left, it says nothing: others take
// over from it as from one that died.
func (o *Orchestrator) Retire(ctx context.Context) error {
	return o.members.Retire(ctx)
}
