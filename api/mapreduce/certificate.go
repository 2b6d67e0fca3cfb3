package mapreduce

import "time"

// A CertificateID names a certificate among those of a tenant: 32 hexadecimal digits.
type CertificateID string

// MaxCertificates bounds the certificates of a tenant.
const MaxCertificates = 200

// A Certificate says with how sure an answer of a member of a cascade it is accepted in jobs over more documents
// of a kind, until their labels show that too many are wrong.
type Certificate struct {
	ID                 CertificateID
	Kind               string // of the documents, as the user names it
	Member, Oracle     string // provider/model, or rules
	Target, Confidence float64
	Schema             string // hash of the schema, in hexadecimal digits
	Job                JobID  // whose trial it rests on
	Made               time.Time
	Seed               uint64 // of the draws of that trial
	Units, Labels      int64  // of that trial, and how many of them were compared
	Measures           []CertificateMeasure
	Uses               int64     // jobs that have used it to their end
	Used               time.Time // when the last one did
}

// A CertificateMeasure is what a certificate says of a field, or of whole records.
type CertificateMeasure struct {
	Field                     string  // empty for whole records
	Floor                     float64 // the least confidence of an answer that is accepted
	Labels, Right             int64   // of the trial, and how many of them were alike
	AuditLabels, AuditedRight int64   // of later jobs, likewise
}
