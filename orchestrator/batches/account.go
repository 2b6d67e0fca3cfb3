package batches

import (
	"net/url"
	"path"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// An account is whose limits a vendor counts batches against. Which key a worker has, nobody but the worker knows; so an
// account is told by three things, and whatever has the same is one account:
//   - the provider, as each has a key of its own;
//   - the address at which it is asked, however that is written: a vendor's own stands for no address at all;
//   - the tenant, of workers that run for one tenant alone, as these have that tenant's keys.
//
// Two keys of one account that differ in one of these are counted apart, and then the vendor has the last word: what it
// refuses is made again later. Two accounts that differ in none share the room of one.
func accountName(provider, address, own string, tenant mapreduce.TenantID) string {
	name := provider
	if at := normalize(address); at != "" && at != normalize(own) {
		name += " at " + at
	}
	if tenant != "" {
		name += " of " + string(tenant)
	}
	return name
}

// normalize returns an address as all ways to write it have it: without the protocol, which no two accounts differ in, in
// small letters where case says nothing, without a port that goes without saying, and without an ending that only names
// one of the interfaces there. What is no address stays as it is.
func normalize(address string) string {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" {
		return strings.TrimSpace(address)
	}

	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	usual := map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	if port := u.Port(); port != "" && port != usual {
		host += ":" + port
	}

	at := path.Clean("/" + u.EscapedPath())
	at = strings.TrimSuffix(strings.TrimSuffix(at, "/responses"), "/")
	if u.RawQuery != "" {
		at += "?" + u.RawQuery
	}
	return host + at
}
