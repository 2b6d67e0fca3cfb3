package dashboard

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

// A visit is one request for a page, with what answers the questions that the page has.
type visit struct {
	context.Context
	jobs   mapreduce.Client
	now    time.Time
	prefix string
	path   string // of the page, with the prefix
	query  url.Values
	names  func(string) string  // of the wildcards of the page's path
	caller *mapreduce.Principal // nil until somebody asks
}

// job returns the job that the page is about.
func (v *visit) job() (mapreduce.JobID, error) {
	id := mapreduce.JobID(v.names("job"))
	if !id.Valid() {
		return "", errs.New(errs.NotFound, "%q is no id of a job; these look like mr_20260131_1a2b3c", id)
	}
	return id, nil
}

// known returns the caller as the service knows it. Where the service does not say, as an older one does
// not, it has all roles: pages show everything, and the service decides.
func (v *visit) known() *mapreduce.Principal {
	if v.caller != nil {
		return v.caller
	}

	by, err := v.jobs.Caller(v)
	if err != nil {
		by = &mapreduce.Principal{}
		if errs.KindOf(err) != errs.Unauthenticated {
			by.Roles = mapreduce.Roles()
		}
	}
	v.caller = by
	return by
}

// number returns a parameter of the page that is a number from 0 on, or its default.
func (v *visit) number(name string, otherwise int) (int, error) {
	text := v.query.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, errs.Field(name, "%q is no number from 0 on", text)
	}
	return n, nil
}

// with returns the address of this page with some of its parameters changed: name, value,
// name, value. An empty value leaves its parameter out. What says where in a list the page
// stands is left out, as another list has other places.
func (v *visit) with(changes ...string) string {
	query := make(url.Values, len(v.query))
	for name, values := range v.query {
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
	return address(v.path, query)
}

// whole returns the address of the page that is sent when all of it has been read, for browsers without scripts.
func (v *visit) whole() string {
	query := maps.Clone(v.query)
	query.Set("whole", "1")
	return address(v.path, query)
}

// jobPath returns the address of a page of a job, by the names below it.
func (v *visit) jobPath(id mapreduce.JobID, below ...string) string {
	return jobPath(v.prefix, id, below...)
}

func jobPath(prefix string, id mapreduce.JobID, below ...string) string {
	names := []string{prefix, "jobs", url.PathEscape(string(id))}
	for _, name := range below {
		names = append(names, url.PathEscape(name))
	}
	return strings.Join(names, "/")
}

// address returns a path with a query.
func address(path string, query url.Values) string {
	if encoded := query.Encode(); encoded != "" {
		return path + "?" + encoded
	}
	return path
}

// unitAt names the place of a unit in the list of its job, for addresses: LEVEL.INDEX.
func unitAt(u *mapreduce.Unit) string {
	return strconv.Itoa(u.Level) + "." + strconv.FormatInt(u.Index, 10)
}

// unitToken returns the token of the page of units that begins at such a place.
func unitToken(at string) (string, error) {
	level, index, found := strings.Cut(at, ".")
	l, errLevel := strconv.Atoi(level)
	i, errIndex := strconv.ParseInt(index, 10, 64)
	if !found || errLevel != nil || errIndex != nil || l < -1 || i < 0 {
		return "", errs.New(errs.NotFound, "%q is no place of a unit, such as 0.17: its level, and its index in it", at)
	}
	return level + ":" + index + ":0", nil
}
