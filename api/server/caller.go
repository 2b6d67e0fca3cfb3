package server

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// callerOf returns the principal of a call. If nobody has asked who calls, every caller is
// as trusted as one on this machine.
func callerOf(ctx context.Context) mapreduce.Principal {
	if by, found := mapreduce.CallerOf(ctx); found {
		return by
	}
	return mapreduce.Local("")
}

// billedTenant returns the tenant for which a call of a principal holds memory.
func billedTenant(by mapreduce.Principal, named mapreduce.TenantID) string {
	if named != "" && by.ActsFor(named) {
		return string(named)
	}
	return string(by.Tenant)
}
