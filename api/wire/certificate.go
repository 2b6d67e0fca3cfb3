package wire

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// EncodeCertificates encodes certificates of a tenant.
func EncodeCertificates(all []mapreduce.Certificate) *pb.ListCertificatesResponse {
	return &pb.ListCertificatesResponse{Certificates: convertEach(all, encodeCertificate)}
}

// DecodeCertificates decodes certificates of a tenant.
func DecodeCertificates(p *pb.ListCertificatesResponse) []mapreduce.Certificate {
	return convertEach(p.GetCertificates(), decodeCertificate)
}

func encodeCertificate(c mapreduce.Certificate) *pb.Certificate {
	return &pb.Certificate{
		CertificateId: string(c.ID), Kind: validText(c.Kind), Member: validText(c.Member), Oracle: validText(c.Oracle),
		Target: c.Target, Confidence: c.Confidence, SchemaHash: validText(c.Schema),
		JobId: string(c.Job), CreateTime: encodeTime(c.Made), Seed: c.Seed, UnitCount: c.Units, LabelCount: c.Labels,
		Measures: convertEach(c.Measures, encodeCertificateMeasure), UseCount: c.Uses, UseTime: encodeTime(c.Used),
	}
}

func decodeCertificate(p *pb.Certificate) mapreduce.Certificate {
	return mapreduce.Certificate{
		ID: mapreduce.CertificateID(p.GetCertificateId()), Kind: p.GetKind(), Member: p.GetMember(), Oracle: p.GetOracle(),
		Target: p.GetTarget(), Confidence: p.GetConfidence(), Schema: p.GetSchemaHash(),
		Job: mapreduce.JobID(p.GetJobId()), Made: decodeTime(p.GetCreateTime()), Seed: p.GetSeed(), Units: p.GetUnitCount(), Labels: p.GetLabelCount(),
		Measures: convertEach(p.GetMeasures(), decodeCertificateMeasure), Uses: p.GetUseCount(), Used: decodeTime(p.GetUseTime()),
	}
}

func encodeCertificateMeasure(m mapreduce.CertificateMeasure) *pb.CertificateMeasure {
	return &pb.CertificateMeasure{
		Field: validText(m.Field), LeastConfidence: m.Floor, LabelCount: m.Labels, AlikeCount: m.Right, AuditCount: m.AuditLabels, AuditAlikeCount: m.AuditedRight,
	}
}

func decodeCertificateMeasure(p *pb.CertificateMeasure) mapreduce.CertificateMeasure {
	return mapreduce.CertificateMeasure{
		Field: p.GetField(), Floor: p.GetLeastConfidence(), Labels: p.GetLabelCount(), Right: p.GetAlikeCount(), AuditLabels: p.GetAuditCount(), AuditedRight: p.GetAuditAlikeCount(),
	}
}

// DecodeDeleteCertificate decodes which certificate is to be removed.
func DecodeDeleteCertificate(p *pb.DeleteCertificateRequest) (mapreduce.TenantID, mapreduce.CertificateID, error) {
	t, err := DecodeTenant(p.GetTenantId())
	if err != nil {
		return "", "", err
	}
	var d decoder
	id := d.decodeID("certificate_id", p.GetCertificateId(), 32)
	return t, mapreduce.CertificateID(id), d.firstError()
}
