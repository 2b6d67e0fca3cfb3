// Package mapreduce is the vocabulary of the service: identifiers, states and
// their legal transitions, the records that users see, and the interface Service,
// what clients ask. It says what things are, not how they are done, and imports
// nothing of the project but the error kinds and labels. What workers and servers say
// to each other is package protocol.
package mapreduce

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A JobID names a job: mr_YYYYMMDD_xxxxxx, the day of its submission in UTC and
// six random letters or digits.
type JobID string

// A UnitID names a unit within its job. See MapUnit, ChunkUnit, ReduceUnit.
type UnitID string

// A DocumentID names a document within its job: the path relative to the input,
// or what the client gave.
type DocumentID string

// MaxDocumentID is the most bytes of a document's id, so that the names made of
// it fit the keys of the store.
const MaxDocumentID = 512

// MaxMetadata is the most bytes of a document's metadata, names and values together.
// Each unit of the document holds it, and a transaction holds several hundred units.
const MaxMetadata = 4 << 10

// A TenantID names the owner of a job. Scheduling is fair between tenants first.
type TenantID string

// A RequestID is chosen by a client to make a submission idempotent.
type RequestID string

// A SessionID names a worker's session. A worker draws it once and keeps it
// while it lives, whichever orchestrator it talks to.
type SessionID string

// A NodeID names one run of one orchestrator.
type NodeID string

// The units that have no document of their own.
const (
	FinalUnit  UnitID = "final"
	DirectUnit UnitID = "direct"
	// ResultUnit assembles the result of a job whose other units have ended.
	ResultUnit UnitID = "assemble_result"
)

// MapUnit returns the id of the unit that maps all of document d.
func MapUnit(d DocumentID) UnitID { return UnitID(d) }

// ChunkUnit returns the id of the unit that maps chunk i of document d.
func ChunkUnit(d DocumentID, i int) UnitID {
	return UnitID(fmt.Sprintf("%s_chunk_%d", d, i))
}

// ParseUnit returns the id of the unit that turns document d into text.
func ParseUnit(d DocumentID) UnitID { return UnitID(parsePrefix + string(d)) }

// parsePrefix begins the ids of units that parse, and of no others: see Unreserve.
const parsePrefix = "parse_"

// Parses reports whether a unit turns a document into text.
func (id UnitID) Parses() bool { return strings.HasPrefix(string(id), parsePrefix) }

// StagePrefix is what the ids of a stage's units begin with, before their index.
// A stage's name has no underscore, so that no other unit's id begins with it and a
// digit; documents whose ids do are renamed, see Unreserve.
func StagePrefix(stage string) string { return stage + "_" }

// TreePrefix is what the ids of the reduces of one depth of a stage's tree begin
// with, before their index; depths count from 1.
func TreePrefix(stage string, depth int) string { return fmt.Sprintf("%s_L%d_", stage, depth) }

// ReduceUnit returns the id of the i-th reduce of a depth of the tree of a stage
// named reduce; depths count from 1.
func ReduceUnit(depth, i int) UnitID { return UnitID(TreePrefix("reduce", depth) + strconv.Itoa(i)) }

// Names that the units of a job have apart from documents: whole names, what
// begins with the mark of a parse unit, and what ends like a chunk or a part. Evidence
// has names of its own, too.
var (
	reservedName   = regexp.MustCompile(`(?s)^(final|direct|plan|assemble_result|batch_[0-9]+|reduce_L[0-9]+_[0-9].*|parse_.*|` + evidencePattern + `)$`)
	reservedEnding = regexp.MustCompile(`_(chunk|part)_[0-9]+$`)
)

// Reserved reports whether id is, or looks like, the name of a unit that is not
// a whole document, or the name of evidence.
func (id DocumentID) Reserved() bool {
	return reservedName.MatchString(string(id)) || reservedEnding.MatchString(string(id))
}

// Unreserve returns id, or if it is reserved, id with one character
// percent-encoded so that it is not: the first, or the underscore before the
// number it ends in. No two units of a job so share a name.
func Unreserve(id DocumentID) DocumentID {
	head, rest := "", string(id)
	if reservedName.MatchString(rest) {
		head, rest = fmt.Sprintf("%%%02X", rest[0]), rest[1:]
	}
	if reservedEnding.MatchString(rest) {
		cut := strings.LastIndexByte(rest, '_')
		rest = rest[:cut] + "%5F" + rest[cut+1:]
	}
	return DocumentID(head + rest)
}

const idAlphabet = "0123456789abcdefghijklmnopqrstuvwxyz"

// NewJobID returns the id of a job submitted at t; random yields the last six
// characters, each from a number it draws in [0, n).
func NewJobID(t time.Time, random func(n int) int) JobID {
	var b strings.Builder
	b.WriteString("mr_")
	b.WriteString(t.UTC().Format("20060102"))
	b.WriteByte('_')
	for range 6 {
		b.WriteByte(idAlphabet[random(len(idAlphabet))])
	}
	return JobID(b.String())
}

var jobIDPattern = regexp.MustCompile(`^mr_[0-9]{8}_[0-9a-z]{6}$`)

// Valid reports whether id has the form of a job id.
func (id JobID) Valid() bool { return jobIDPattern.MatchString(string(id)) }
