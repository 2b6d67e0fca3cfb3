package wire_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/label"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
)

// A filler sets every field of a value by reflection, and none to its zero
// value, so that a field that a conversion forgets shows as a difference.
type filler struct {
	between func(lo, hi int64) int64
	maybe   func() bool
}

// full fills with arbitrary values; every bool is true.
func full(seed uint64) filler {
	r := rand.New(rand.NewPCG(seed, 0))
	return filler{
		between: func(lo, hi int64) int64 { return lo + int64(r.Uint64()%(uint64(hi-lo)+1)) },
		maybe:   func() bool { return true },
	}
}

// drawn fills with what rapid draws, edge cases first.
func drawn(t *rapid.T) filler {
	ints, bools := t, rapid.Bool()
	return filler{
		between: func(lo, hi int64) int64 { return rapid.Int64Range(lo, hi).Draw(ints, "n") },
		maybe:   func() bool { return bools.Draw(t, "b") },
	}
}

func filled[T any](f filler) *T {
	v := new(T)
	f.fill(reflect.ValueOf(v).Elem(), "")
	return v
}

// The enumerations by the last of their values; those with a default in zero
// have 0 as their first.
var enums = map[reflect.Type][2]int64{
	reflect.TypeFor[mapreduce.JobState]():      {1, int64(mapreduce.JobPaused)},
	reflect.TypeFor[mapreduce.UnitState]():     {1, int64(mapreduce.UnitCancelled)},
	reflect.TypeFor[mapreduce.UnitKind]():      {1, int64(mapreduce.KindDirect)},
	reflect.TypeFor[mapreduce.EventKind]():     {1, int64(mapreduce.EventRetried)},
	reflect.TypeFor[protocol.Outcome]():        {1, int64(protocol.Parked)},
	reflect.TypeFor[protocol.Verdict]():        {1, int64(protocol.Gone)},
	reflect.TypeFor[mapreduce.CauseState]():    {0, int64(mapreduce.CauseResolved)},
	reflect.TypeFor[mapreduce.ReviewVerdict](): {1, int64(mapreduce.ReviewWithdraw)},
	reflect.TypeFor[protocol.FailureClass]():   {0, int64(protocol.PermanentJob)},
	reflect.TypeFor[mapreduce.OnError]():       {0, int64(mapreduce.FailFast)},
	reflect.TypeFor[mapreduce.OnBreaker]():     {0, int64(mapreduce.BreakerSkip)},
	reflect.TypeFor[mapreduce.Capture]():       {0, int64(mapreduce.CaptureFull)},
	reflect.TypeFor[mapreduce.Currency]():      {0, int64(mapreduce.InDollars)},
	// No text: the core of its unit has to be within its range.
	reflect.TypeFor[protocol.BlobKind]():  {int64(protocol.BlobInputs), int64(protocol.BlobLineReply)},
	reflect.TypeFor[mapreduce.Severity](): {0, int64(mapreduce.Wrong)},
	reflect.TypeFor[mapreduce.Strategy](): {1, int64(mapreduce.StrategyAdaptive)},
	reflect.TypeFor[mapreduce.PageText](): {1, int64(mapreduce.PageTextFull)},
}

func (f filler) fill(v reflect.Value, field string) {
	if f.special(v, field) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), field)
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), int(f.between(1, 3)), 3))
		for i := range v.Len() {
			f.fill(v.Index(i), field)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		f.fill(value, field)
		v.SetMapIndex(reflect.ValueOf(f.text()), value)
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.maybe())
	case reflect.Int:
		v.SetInt(f.between(1, math.MaxInt32))
	case reflect.Int64:
		v.SetInt(f.between(1, math.MaxInt64))
	case reflect.Uint8:
		v.SetUint(uint64(f.between(1, 255)))
	case reflect.Uint32:
		v.SetUint(uint64(f.between(1, mapreduce.MaxScore)))
	case reflect.Float64:
		v.SetFloat(float64(f.between(1, 1000)) / 1000)
	default:
		panic("no way to fill " + v.Type().String())
	}
}

// special fills what must have a certain form.
func (f filler) special(v reflect.Value, field string) bool {
	if span, ok := enums[v.Type()]; ok {
		v.SetUint(uint64(f.between(span[0], span[1])))
		return true
	}
	switch p := v.Addr().Interface().(type) {
	case *mapreduce.JobID:
		*p = mapreduce.NewJobID(f.time(), func(n int) int { return int(f.between(0, int64(n-1))) })
	case *time.Time:
		*p = f.time()
	case *label.Filter: // of a text that labels may have
		*p = label.Filter{Key: fmt.Sprintf("key-%d", f.between(1, 9)), Value: fmt.Sprint(f.between(1, 9))}
	case *mapreduce.ResultPart:
		f.oneField(v)
	case *protocol.Text:
		f.textWithCore(p)
	case *protocol.Blob:
		f.blob(p)
	case *mapreduce.Evidence:
		f.evidence(p)
	case *[]byte: // JSON goes over the wire as text
		switch field {
		case "Item", "Definition", "Schema", "Record", "Conflict", "Dropped", "Removed", "Report", "Deduplication", "Statistics", "Cascades", "Value", "Model":
			*p = []byte(strings.ReplaceAll(f.text(), "\x00", "0"))
		default:
			return false
		}
	case *bool:
		if field != "Unmeasured" { // no worker says it, so it is not sent
			return false
		}
	case *int:
		switch field {
		case "Priority", "ChunkOverlap", "Level":
			*p = -int(f.between(1, math.MaxInt32))
		case "PageSize":
			*p = int(f.between(1, 1000))
		default:
			return false
		}
	default:
		return false
	}
	return true
}

// oneField sets just one field of a struct of which only one may be set.
func (f filler) oneField(v reflect.Value) {
	i := int(f.between(0, int64(v.NumField()-1)))
	name := v.Type().Field(i).Name
	f.fill(v.Field(i), name)

	// A record and its id come together.
	part, _ := reflect.TypeAssert[*mapreduce.ResultPart](v.Addr())
	switch name {
	case "Record":
		f.fill(reflect.ValueOf(&part.RecordID).Elem(), "RecordID")
	case "RecordID":
		f.fill(reflect.ValueOf(&part.Record).Elem(), "Record")
	}
}

func (f filler) textWithCore(p *protocol.Text) {
	type plain protocol.Text // without what special does
	f.fill(reflect.ValueOf((*plain)(p)).Elem(), "")
	p.CoreEnd = int(f.between(1, int64(len(p.Content))))
	p.CoreStart = int(f.between(0, int64(p.CoreEnd)))
	if p.Shown != nil {
		p.Shown.SHA256 = make([]byte, 32)
		for i := range p.Shown.SHA256 {
			p.Shown.SHA256[i] = byte(f.between(1, 255))
		}
	}
}

func (f filler) blob(p *protocol.Blob) {
	f.fill(reflect.ValueOf(&p.Kind).Elem(), "")
	p.Key, p.SHA256 = make([]byte, 32), make([]byte, 32)
	for i := range p.Key {
		p.Key[i], p.SHA256[i] = byte(f.between(1, 255)), byte(f.between(1, 255))
	}
	p.Length = f.between(2, math.MaxInt64)
	p.Start = f.between(1, p.Length-1)
	p.End = f.between(p.Start, p.Length)
	p.FirstEntry = int(f.between(1, math.MaxInt64))
	f.fill(reflect.ValueOf(&p.Evidence).Elem(), "")
}

func (f filler) evidence(p *mapreduce.Evidence) {
	type plain mapreduce.Evidence // without what special does
	f.fill(reflect.ValueOf((*plain)(p)).Elem(), "")
	p.SHA256 = make([]byte, 32)
	for i := range p.SHA256 {
		p.SHA256[i] = byte(f.between(1, 255))
	}
}

func (f filler) text() string {
	alphabet := []rune("aZ/_ é\x00\n語😀\uFFFD")
	var b strings.Builder
	for range f.between(1, 8) {
		b.WriteRune(alphabet[f.between(0, int64(len(alphabet)-1))])
	}
	return b.String()
}

func (f filler) time() time.Time {
	const year = 365 * 24 * 3600
	return time.Unix(f.between(1, 8000*year), f.between(0, 999_999_999)).UTC()
}

func TestFillerLeavesNothingZero(t *testing.T) {
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		if span, ok := enums[v.Type()]; ok && span[0] == 0 {
			return
		}
		if v.IsZero() {
			t.Errorf("%s is zero", path)
		}
		switch v.Kind() {
		case reflect.Pointer:
			walk(path, v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				name := v.Type().Field(i).Name
				if v.Type() != reflect.TypeFor[time.Time]() && name != "CoreStart" && name != "Unmeasured" {
					walk(path+"."+v.Type().Field(i).Name, v.Field(i))
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(path, v.Index(i))
			}
		}
	}
	walk("FromWorker", reflect.ValueOf(filled[protocol.FromWorker](full(1))))
	walk("ToWorker", reflect.ValueOf(filled[protocol.ToWorker](full(2))))
	walk("Job", reflect.ValueOf(filled[mapreduce.Job](full(3))))
}
