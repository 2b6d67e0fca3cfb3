package auth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/wire"
)

// A Policy says which principals there are, and what they may do.
type Policy struct {
	entries map[string]entry // by what they match
	rules   map[mapreduce.TenantID]mapreduce.TenantRule
}

// Rule returns what the policy sets for a tenant.
func (p *Policy) Rule(t mapreduce.TenantID) mapreduce.TenantRule { return p.rules[t] }

type entry struct {
	principal mapreduce.Principal
	line      int
}

// The kinds of what an entry matches. A SPIFFE id is a URI of its own scheme.
const (
	kindSPIFFE = "spiffe"
	kindDNS    = "dns"
	kindCN     = "cn"
	kindOIDC   = "oidc"
	kindToken  = "token"
	kindUID    = "uid"
)

// ParsePolicy reads a policy, in YAML or JSON. name is that of the file, for errors, which
// have the line and the rule that is broken.
func ParsePolicy(name string, data []byte) (*Policy, error) {
	p := policyParser{name: name, policy: &Policy{entries: make(map[string]entry), rules: make(map[mapreduce.TenantID]mapreduce.TenantRule)}}
	if err := p.parse(data); err != nil {
		return nil, err
	}
	return p.policy, nil
}

type policyParser struct {
	name   string
	policy *Policy
}

// faultAt returns the error of a node, whose line is 0 if it is not known.
func (p *policyParser) faultAt(n *yaml.Node, format string, args ...any) error {
	if n.Line == 0 {
		return errs.New(errs.Invalid, "%s: %s", p.name, fmt.Sprintf(format, args...))
	}
	return errs.New(errs.Invalid, "%s:%d:%d: %s", p.name, n.Line, n.Column, fmt.Sprintf(format, args...))
}

func (p *policyParser) parse(data []byte) error {
	in := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := in.Decode(&doc); errors.Is(err, io.EOF) {
		return errs.New(errs.Invalid, "%s: is empty; it must have a list of principals", p.name)
	} else if err != nil {
		line, fault := errs.YAMLFault(err)
		return p.faultAt(&yaml.Node{Line: line, Column: 1}, "%s", fault)
	}

	// A second document would be left unread.
	if err := in.Decode(&more); !errors.Is(err, io.EOF) {
		return errs.New(errs.Invalid, "%s: has more than one document", p.name)
	}

	top := doc.Content[0]
	fields, err := p.readFields(top, "the policy", "principals", "tenants")
	if err != nil {
		return err
	}

	list := fields["principals"]
	switch {
	case list == nil:
		return p.faultAt(top, "principals: is missing")
	case list.Kind != yaml.SequenceNode:
		return p.faultAt(list, "principals: must be a list")
	}

	for i, n := range list.Content {
		if err := p.addEntry(fmt.Sprintf("principals[%d]", i), n); err != nil {
			return err
		}
	}

	return p.addRules(fields["tenants"])
}

// readFields returns the values of a mapping by their keys, which must be of those known.
func (p *policyParser) readFields(n *yaml.Node, what string, known ...string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, p.faultAt(n, "%s: must be a mapping", what)
	}

	fields := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case !slices.Contains(known, key.Value):
			return nil, p.faultAt(key, "%s: has no key %q", what, key.Value)
		case fields[key.Value] != nil:
			return nil, p.faultAt(key, "%s: the key %s stands twice", what, key.Value)
		}

		fields[key.Value] = value
	}

	return fields, nil
}

func (p *policyParser) addEntry(at string, n *yaml.Node) error {
	fields, err := p.readFields(n, at, "match", "tenant", "roles")
	if err != nil {
		return err
	}

	match, err := p.match(at+".match", n, fields["match"])
	if err != nil {
		return err
	}

	if before, ok := p.policy.entries[match]; ok {
		return p.faultAt(fields["match"], "%s.match: %s is also in line %d", at, match, before.line)
	}

	by := mapreduce.Principal{Name: match}
	if by.Roles, err = p.readRoles(at+".roles", n, fields["roles"]); err != nil {
		return err
	}
	if by.Tenant, err = p.readTenant(at+".tenant", fields["tenant"]); err != nil {
		return err
	}

	switch {
	// Roles within a tenant need it, and roles over all tenants must not name one.
	case by.Tenant == "" && by.Has(mapreduce.Observer) && !by.Has(mapreduce.Admin):
		return p.faultAt(n, "%s.tenant: is missing: the roles are those of a tenant", at)
	case by.Tenant != "" && !by.Has(mapreduce.Observer) && !by.Has(mapreduce.Worker):
		return p.faultAt(fields["tenant"], "%s.tenant: must be left out: its roles are for all tenants", at)
	}

	p.policy.entries[match] = entry{by, n.Line}
	return nil
}

func (p *policyParser) match(at string, of, n *yaml.Node) (string, error) {
	if n == nil {
		return "", p.faultAt(of, "%s: is missing", at)
	}

	text, err := p.text(at, n)
	if err != nil {
		return "", err
	}

	kind, name, _ := strings.Cut(text, ":")
	switch {
	case name == "" || strings.TrimSpace(text) != text || strings.ContainsFunc(text, isControl) || len(text) > maxName:
		return "", p.noPrincipal(at, n, text)
	case kind == kindSPIFFE && strings.HasPrefix(name, "//"), kind == kindCN, kind == kindOIDC:
		return text, nil
	case kind == kindDNS:
		return kindDNS + ":" + strings.ToLower(name), nil
	case kind == kindToken && isTokenName(name):
		return text, nil
	case kind == kindUID:
		if uid, err := strconv.ParseUint(name, 10, 32); err == nil {
			return kindUID + ":" + strconv.FormatUint(uid, 10), nil
		}
	}
	return "", p.noPrincipal(at, n, text)
}

func (p *policyParser) noPrincipal(at string, n *yaml.Node, text string) error {
	return p.faultAt(n, "%s: %q names no principal; write spiffe://…, dns:NAME, cn:NAME, oidc:SUBJECT, token:NAME or uid:NUMBER", at, text)
}

// maxName is the most bytes of the name of a principal.
const maxName = 1024

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func (p *policyParser) text(at string, n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return "", p.faultAt(n, "%s: must be a text", at)
	}
	return n.Value, nil
}

func (p *policyParser) readRoles(at string, of, n *yaml.Node) ([]mapreduce.Role, error) {
	switch {
	case n == nil:
		return nil, p.faultAt(of, "%s: is missing", at)
	case n.Kind != yaml.SequenceNode:
		return nil, p.faultAt(n, "%s: must be a list", at)
	case len(n.Content) == 0:
		return nil, p.faultAt(n, "%s: is empty; leave out a principal that may do nothing", at)
	}

	var roles []mapreduce.Role
	for i, item := range n.Content {
		text, err := p.text(fmt.Sprintf("%s[%d]", at, i), item)
		if err != nil {
			return nil, err
		}

		role := mapreduce.Role(text)
		switch {
		case !slices.Contains(mapreduce.Roles(), role):
			return nil, p.faultAt(item, "%s[%d]: there is no role %q", at, i, text)
		case slices.Contains(roles, role):
			return nil, p.faultAt(item, "%s[%d]: the role %s is listed twice", at, i, text)
		}

		roles = append(roles, role)
	}

	return roles, nil
}

func (p *policyParser) readTenant(at string, n *yaml.Node) (mapreduce.TenantID, error) {
	if n == nil {
		return "", nil
	}

	text, err := p.text(at, n)
	if err != nil {
		return "", err
	}

	t, err := wire.DecodeTenant(text)
	if err != nil || text == "" {
		return "", p.faultAt(n, "%s: %q is not the name of a tenant", at, text)
	}
	return t, nil
}

// find returns the principal of a policy that has one of some names.
func (p *Policy) find(names []string) (by mapreduce.Principal, found bool, err error) {
	for _, name := range names {
		e, ok := p.entries[name]
		switch {
		case !ok:
		case found:
			return by, true, errs.New(errs.Denied, "the policy has both %s and %s as principals, and the certificate of the caller has both names; leave one of them out of the policy", by.Name, e.principal.Name)
		default:
			by, found = e.principal, true
		}
	}

	return by, found, nil
}

// Len returns how many principals a policy has.
func (p *Policy) Len() int { return len(p.entries) }
