package wire

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// EncodeAnswerCache encodes what answers a tenant has.
func EncodeAnswerCache(c *mapreduce.AnswerCache) *pb.AnswerCache {
	return &pb.AnswerCache{
		AnswerCount: c.Answers, TotalBytes: c.Bytes, OldestTime: encodeTime(c.Oldest),
		MaxBytes: c.MaxBytes, MaxAge: encodeDuration(c.MaxAge),
	}
}

// DecodeAnswerCache decodes the AnswerCache of a reply.
func DecodeAnswerCache(p *pb.AnswerCache) *mapreduce.AnswerCache {
	return &mapreduce.AnswerCache{
		Answers: p.GetAnswerCount(), Bytes: p.GetTotalBytes(), Oldest: decodeTime(p.GetOldestTime()),
		MaxBytes: p.GetMaxBytes(), MaxAge: p.GetMaxAge().AsDuration(),
	}
}

// DecodeTenant decodes the tenant that a request is about.
func DecodeTenant(tenant string) (mapreduce.TenantID, error) {
	var d decoder
	return mapreduce.TenantID(d.decodeName("tenant_id", tenant, MaxNames)), d.firstError()
}
