package show_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/show"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// TestRandomChangesAreFound makes changes to an exported trail, its first and its last line
// included: of bytes, of values of JSON, of lines and of their order.
func TestRandomChangesAreFound(t *testing.T) { findChanges(t, 1000) }

// TestTenThousandRandomChangesAreFound is the same, for longer.
func TestTenThousandRandomChangesAreFound(t *testing.T) {
	testenv.Lengthy(t)

	findChanges(t, 10_000)
}

func findChanges(t *testing.T, changes uint64) {
	t.Helper()
	c, id := newJob(t)
	file := export(t, c, mapreduce.ListEventsQuery{Job: id})
	if v, err := show.VerifyAudit("f", strings.NewReader(file), ""); err != nil || !v.Bound {
		t.Fatalf("%+v, %v", v, err)
	}

	random := rand.New(rand.NewPCG(40, changes))
	for range changes {
		changed, what := changeAtRandom(file, random)
		if changed == file {
			continue
		}
		if v, err := show.VerifyAudit("f", strings.NewReader(changed), ""); err == nil {
			t.Fatalf("%s is not found: %+v\n%s", what, v, changed)
		}
	}
}

// changeAtRandom returns a file with one change, and what that is.
func changeAtRandom(file string, random *rand.Rand) (changed, what string) {
	lines := strings.SplitAfter(file, "\n")
	lines = lines[:len(lines)-1]
	i, j := random.IntN(len(lines)), random.IntN(len(lines))

	switch kind := random.IntN(8); kind {
	case 0, 1: // another byte
		data := []byte(file)
		at := random.IntN(len(data))
		data[at] ^= byte(1 + random.IntN(127))
		return string(data), fmt.Sprintf("byte %d", at)
	case 2: // a byte more, or less
		at := random.IntN(len(file))
		if random.IntN(2) == 0 {
			return file[:at] + file[at+1:], fmt.Sprintf("byte %d left out", at)
		}
		return file[:at] + string(" \n\t0a\"}"[random.IntN(7)]) + file[at:], fmt.Sprintf("a byte before %d", at)
	case 3: // a line left out
		return strings.Join(slices.Delete(lines, i, i+1), ""), fmt.Sprintf("line %d left out", i+1)
	case 4: // a line twice, or two in another order
		if random.IntN(2) == 0 {
			return strings.Join(slices.Insert(lines, j, lines[i]), ""), fmt.Sprintf("line %d again", i+1)
		}
		lines[i], lines[j] = lines[j], lines[i]
		return strings.Join(lines, ""), fmt.Sprintf("lines %d and %d in each other's place", i+1, j+1)
	case 5: // a member more, which JSON would let win over another
		name := []string{"kind", "Kind", "message", "job_id", "tenant", "exported_at", "extra", "head"}[random.IntN(8)]
		at := max(strings.LastIndex(lines[i], "}}"), strings.LastIndex(lines[i], `"}`)+1)
		lines[i] = lines[i][:at] + fmt.Sprintf(`,%q:"x"`, name) + lines[i][at:]
		return strings.Join(lines, ""), fmt.Sprintf("%s more in line %d", name, i+1)
	case 6: // the head, and all else fits
		lines[0] = changeValue(lines[0], random)
		return strings.Join(lines, ""), "the first line"
	default:
		lines[i] = changeValue(lines[i], random)
		return strings.Join(lines, ""), fmt.Sprintf("a value of line %d", i+1)
	}
}

// changeValue changes one value of an object that is in the only member of a line.
func changeValue(line string, random *rand.Rand) string {
	var outer map[string]any
	if json.Unmarshal([]byte(line), &outer) != nil {
		return line
	}
	inner := outer
	for _, name := range slices.Sorted(maps.Keys(outer)) {
		if m, ok := outer[name].(map[string]any); ok {
			inner = m
		}
	}
	names := slices.Sorted(maps.Keys(inner))
	name := names[random.IntN(len(names))]
	switch v := inner[name].(type) {
	case string:
		inner[name] = v + "x"
	case float64:
		inner[name] = v + 1
	default:
		delete(inner, name)
	}
	out, err := json.Marshal(outer)
	if err != nil {
		return line
	}
	return string(out) + "\n"
}

// TestATrailIsOfItsJobAlone changes the first line of a trail and makes all hashes anew that
// the file alone decides.
func TestATrailIsOfItsJobAlone(t *testing.T) {
	c, id := newJob(t)
	file := export(t, c, mapreduce.ListEventsQuery{Job: id})
	for _, change := range [][2]string{
		{string(id), "mr_20990101_forged"},
		{`"tenant":"a"`, `"tenant":"victim"`},
		{`"version":2`, `"version":1`},
		{`"created_at":"2`, `"created_at":"1`},
		{`"job_id":`, `"Job_id":`},
	} {
		head, rest, _ := strings.Cut(file, "\n")
		forged := strings.Replace(head, change[0], change[1], 1) + "\n" + rest
		if v, err := show.VerifyAudit("f", strings.NewReader(withHash(forged)), ""); err == nil && !(v.Job == id && v.Tenant == "a") {
			t.Errorf("%s for %s is not found: %+v", change[1], change[0], v)
		}
	}

	if err := c.jobs.Lifecycle.Pause(t.Context(), id, records.AnyEpoch, "the last"); err != nil {
		t.Fatal(err)
	}
	if err := c.jobs.Lifecycle.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	log := export(t, c, mapreduce.ListEventsQuery{Tenant: "a"})
	if _, err := show.VerifyAudit("f", strings.NewReader(withHash(strings.Replace(log, `"tenant":"a"`, `"tenant":"b"`, 1))), ""); err == nil {
		t.Error("the log of a tenant passes as that of another")
	}
}

// withHash returns a file whose last line has the hash of its lines.
func withHash(file string) string {
	at := strings.LastIndex(file, `{"end":`)
	sum := sha256.Sum256([]byte(file[:at]))
	end := file[at:]
	begin := strings.Index(end, `"file_sha256":"`) + len(`"file_sha256":"`)
	return file[:at] + end[:begin] + hex.EncodeToString(sum[:]) + end[begin+2*sha256.Size:]
}

// TestFilesOfEarlierVersionsHold reads a file as earlier versions wrote it, of a chain as they
// began it: nothing ties it to its job, which is said.
func TestFilesOfEarlierVersionsHold(t *testing.T) {
	c, id := newJob(t)
	old := asBefore(t, export(t, c, mapreduce.ListEventsQuery{Job: id}))
	v, err := show.VerifyAudit("f", strings.NewReader(old), "")
	if err != nil || v.Bound || v.Job != id || v.Checkpoints != 7 || v.Seals != 3 {
		t.Errorf("%+v, %v\n%s", v, err, old)
	}
	if _, err := show.VerifyAudit("f", strings.NewReader(strings.Replace(old, "a pause", "a break", 1)), ""); err == nil {
		t.Error("a change of a file of an earlier version is not found")
	}
}

// asBefore returns a file in format 1, with a chain that does not begin with its job.
func asBefore(t *testing.T, file string) string {
	t.Helper()
	var out strings.Builder
	var before []byte
	chain := sha256.New()
	for line := range strings.Lines(file) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if head, ok := l["audit"].(map[string]any); ok {
			head["version"] = 1
			delete(head, "created_at")
		}
		if text, ok := l["record"].(string); ok {
			record, key := decode(t, text), decode(t, l["key"].(string))
			sum := sha256.Sum256(record)
			chain.Write(append(key, sum[:]...))
		}
		if seal, ok := l["seal"].(map[string]any); ok {
			before = chain.Sum(nil)
			seal["hash"] = hex.EncodeToString(before)
			chain.Reset()
			chain.Write(before)
		}
		if end, ok := l["end"].(map[string]any); ok {
			end["head"] = hex.EncodeToString(before)
			delete(end, "file_sha256")
		}
		if err := json.NewEncoder(&out).Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func decode(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
