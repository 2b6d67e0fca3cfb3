package orchestrator

import "context"

// Retire says that this orchestrator is no more, so that others have at once what it was
// granted, instead of after the lease. It is to be called once Run has returned, the
// workers of this process have ended, and no more calls come. If workers elsewhere or
// submissions of this orchestrator are left, it does nothing: others take over from it as
// from one that died.
func (o *Orchestrator) Retire(ctx context.Context) error {
	return o.members.Retire(ctx)
}
