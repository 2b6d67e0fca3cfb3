package mapreduce_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// shownToObservers are the texts that an observer sees, by their place. A new field of a job, a
// unit or a checkpoint is here, or is left out by WithoutContents.
var shownToObservers = []string{
	"Job.ID", "Job.Spec.Tenant", "Job.Spec.RequestID", "Job.Spec.Pipeline", "Job.Spec.Provider", "Job.Spec.Model", "Job.Spec.Fallbacks", "Job.Spec.Models",
	"Job.Spec.Labels", "Job.Spec.Name", "Job.Spec.Estimator", "Job.Spec.Reading", "Job.Spec.Output.Formats", "Job.Spec.Replay", "Job.Spec.TraceParent",
	"Job.AuditHead", "Job.Stages.Name", "Job.Skipped.Document", "Job.Causes.By",
	"Unit.ID", "Unit.Job", "Unit.Document", "Unit.Stage", "Unit.Models", "Unit.DependsOn",
	"Checkpoint.ID", "Checkpoint.Node", "Checkpoint.Completed.Unit", "Checkpoint.Failed.Unit", "Checkpoint.Completed.SHA256", "Checkpoint.Failed.SHA256",
	"Checkpoint.Principal", "Checkpoint.Tenant", "Checkpoint.Deleted.Job", "Checkpoint.Deleted.Rule", "Checkpoint.Deleted.Head",
}

const secret = "secret"

// TestObserversSeeNoContents fills each text of a job, a unit and a checkpoint, and finds those
// that are left.
func TestObserversSeeNoContents(t *testing.T) {
	var job mapreduce.Job
	var unit mapreduce.Unit
	var checkpoint mapreduce.Checkpoint
	for _, v := range []any{&job, &unit, &checkpoint} {
		fillTexts(reflect.ValueOf(v).Elem())
	}

	var left []string
	for _, v := range []any{*job.WithoutContents(), *unit.WithoutContents(), *checkpoint.WithoutContents()} {
		findTexts(reflect.ValueOf(v), reflect.TypeOf(v).Name(), &left)
	}
	slices.Sort(left)
	left = slices.Compact(left)
	for _, place := range left {
		if !slices.ContainsFunc(shownToObservers, func(shown string) bool {
			return place == shown || len(place) > len(shown) && place[:len(shown)+1] == shown+"."
		}) {
			t.Errorf("%s is shown to observers, and nobody has decided that it may be", place)
		}
	}
	for _, v := range []string{job.Error, unit.Errors[0], unit.Parking.Handle, job.Skipped[0].Reason, checkpoint.Message, string(checkpoint.Proof.Record)} {
		if v != secret {
			t.Errorf("the copy has changed what it was made of: %q", v)
		}
	}
}

// fillTexts puts the secret into each text below a value, in one element of each list.
func fillTexts(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(secret)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for _, field := range v.Fields() {
			fillTexts(field)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillTexts(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(secret))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillTexts(v.Index(0))
	case reflect.Map:
		key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillTexts(key)
		fillTexts(element)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, element)
	default: // numbers hold no text
	}
}

// findTexts appends the places below a value that have the secret.
func findTexts(v reflect.Value, place string, found *[]string) {
	switch v.Kind() {
	case reflect.String:
		if v.String() == secret {
			*found = append(*found, place)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for of, field := range v.Fields() {
			findTexts(field, place+"."+of.Name, found)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			findTexts(v.Elem(), place, found)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if string(v.Bytes()) == secret {
				*found = append(*found, place)
			}
			return
		}
		for i := range v.Len() {
			findTexts(v.Index(i), place, found)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			findTexts(key, place, found)
			findTexts(v.MapIndex(key), place, found)
		}
	default: // numbers hold no text
	}
}
