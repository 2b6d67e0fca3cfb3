// Package visit is what pages know of a request: who asks for which page of what, how addresses of other pages are
// written, and how numbers, times and texts of others are written for people.
//
// It knows no page and makes none. It imports the vocabulary, and nothing of the service.
package visit

import (
	"context"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Visit is one request for a page, with what answers the questions that the page has.
type Visit struct {
	context.Context
	Jobs   mapreduce.Client
	Now    time.Time
	Prefix string
	Path   string // of the page, with the prefix
	Query  url.Values
	Names  func(string) string  // of the wildcards of the page's path
	caller *mapreduce.Principal // nil until somebody asks
}

// Job returns the job that the page is about.
func (v *Visit) Job() (mapreduce.JobID, error) {
	id := mapreduce.JobID(v.Names("job"))
	if !id.Valid() {
		return "", errs.New(errs.NotFound, "%q is no id of a job; these look like mr_20260131_1a2b3c", id)
	}
	return id, nil
}

// Known returns the caller as the service knows it. Where the service does not say, as an older one does
// not, it has all roles: pages show everything, and the service decides.
func (v *Visit) Known() *mapreduce.Principal {
	if v.caller != nil {
		return v.caller
	}

	by, err := v.Jobs.Caller(v)
	if err != nil {
		by = &mapreduce.Principal{}
		if errs.KindOf(err) != errs.Unauthenticated {
			by.Roles = mapreduce.Roles()
		}
	}
	v.caller = by
	return by
}

// Number returns a parameter of the page that is a number from 0 on, or its default.
func (v *Visit) Number(name string, otherwise int) (int, error) {
	text := v.Query.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, errs.Field(name, "%q is no number from 0 on", text)
	}
	return n, nil
}

// With returns the address of this page with some of its parameters changed: name, value,
// name, value. An empty value leaves its parameter out. What says where in a list the page
// stands is left out, as another list has other places.
func (v *Visit) With(changes ...string) string {
	query := make(url.Values, len(v.Query))
	for name, values := range v.Query {
		if name != "page" && name != "skip" && name != "live" && name != "whole" && name != "from" && name != "before" && name != "count" {
			query[name] = values
		}
	}

	for i := 0; i+1 < len(changes); i += 2 {
		query.Del(changes[i])
		if changes[i+1] != "" {
			query.Set(changes[i], changes[i+1])
		}
	}
	return Address(v.Path, query)
}

// Whole returns the address of the page that is sent when all of it has been read, for browsers without scripts.
func (v *Visit) Whole() string {
	query := maps.Clone(v.Query)
	query.Set("whole", "1")
	return Address(v.Path, query)
}

// JobPath returns the address of a page of a job, by the names below it.
func (v *Visit) JobPath(id mapreduce.JobID, below ...string) string {
	return JobPath(v.Prefix, id, below...)
}

// JobPath returns the address of a page of a job below a prefix, by the names below it.
func JobPath(prefix string, id mapreduce.JobID, below ...string) string {
	names := []string{prefix, "jobs", url.PathEscape(string(id))}
	for _, name := range below {
		names = append(names, url.PathEscape(name))
	}
	return strings.Join(names, "/")
}

// DocumentPath returns the address of a document with a passage: start to end, in characters.
func DocumentPath(prefix string, job mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, start, end int64) string {
	query := url.Values{
		"unit": {string(unit)}, "document": {string(document)},
		"start": {strconv.FormatInt(start, 10)}, "end": {strconv.FormatInt(end, 10)},
	}
	return Address(JobPath(prefix, job, "document"), query) + "#here"
}

// Address returns a path with a query.
func Address(path string, query url.Values) string {
	if encoded := query.Encode(); encoded != "" {
		return path + "?" + encoded
	}
	return path
}

// UnitAt names the place of a unit in the list of its job, for addresses: LEVEL.INDEX.
func UnitAt(u *mapreduce.Unit) string {
	return strconv.Itoa(u.Level) + "." + strconv.FormatInt(u.Index, 10)
}

// UnitToken returns the token of the page of units that begins at such a place.
func UnitToken(at string) (string, error) {
	level, index, found := strings.Cut(at, ".")
	l, errLevel := strconv.Atoi(level)
	i, errIndex := strconv.ParseInt(index, 10, 64)
	if !found || errLevel != nil || errIndex != nil || l < -1 || i < 0 {
		return "", errs.New(errs.NotFound, "%q is no place of a unit, such as 0.17: its level, and its index in it", at)
	}
	return level + ":" + index + ":0", nil
}
