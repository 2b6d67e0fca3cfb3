package wire

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// EncodeTenantUse encodes what a tenant uses.
func EncodeTenantUse(u *mapreduce.TenantUse) *pb.TenantUse {
	p := &pb.TenantUse{TenantId: string(u.Tenant), Keep: encodeDuration(u.Keep)}
	for _, q := range u.Quotas {
		p.Quotas = append(p.Quotas, &pb.QuotaUse{Name: q.Name, Used: q.Used, Limit: q.Limit})
	}
	return p
}

// DecodeTenantUse decodes the reply that says what a tenant uses.
func DecodeTenantUse(p *pb.TenantUse) *mapreduce.TenantUse {
	u := &mapreduce.TenantUse{Tenant: mapreduce.TenantID(p.GetTenantId()), Keep: p.GetKeep().AsDuration()}
	for _, q := range p.GetQuotas() {
		u.Quotas = append(u.Quotas, mapreduce.QuotaUse{Name: q.GetName(), Used: q.GetUsed(), Limit: q.GetLimit()})
	}
	return u
}

// EncodeCaller encodes the caller of a service.
func EncodeCaller(by *mapreduce.Principal) *pb.Caller {
	p := &pb.Caller{Name: validText(by.Name), TenantId: string(by.Tenant)}
	for _, r := range by.Roles {
		p.Roles = append(p.Roles, string(r))
	}
	return p
}

// DecodeCaller decodes the reply that says who the caller is.
func DecodeCaller(p *pb.Caller) *mapreduce.Principal {
	by := &mapreduce.Principal{Name: p.GetName(), Tenant: mapreduce.TenantID(p.GetTenantId())}
	for _, r := range p.GetRoles() {
		by.Roles = append(by.Roles, mapreduce.Role(r))
	}
	return by
}
