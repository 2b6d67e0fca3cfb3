package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// schemas submits jobs with schemas that are wrong, or cost much.
func schemas(ctx context.Context, a *attacker) error {
	conn, err := a.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	for round := 0; ctx.Err() == nil; round++ {
		for i, text := range hostileSchemas() {
			if ctx.Err() != nil {
				return nil
			}

			short, stop := context.WithTimeout(ctx, lieTime)
			_, err := submitJob(short, conn, &pb.JobSpec{TenantId: villain, Provider: "rules", Schema: text, UnitTimeout: nil, MaxAttempts: 1},
				&pb.DocumentPiece{DocumentId: "d", Content: []byte("ORDER: " + strings.Repeat("a", 20000) + "!\n")})
			stop()
			a.report.answered("schemas", fmt.Sprintf("number %d, %.60q", i, text), err)
		}

		pause(ctx, time.Second)
	}
	return nil
}

// hostileSchemas returns schemas of which each is wrong, or costs much, in its own way.
func hostileSchemas() (all []string) {
	property := func(body string) string {
		return `{"title":"t","type":"object","properties":{"order":` + body + `}}`
	}
	pattern := func(p string) string {
		return property(fmt.Sprintf(`{"type":"string","pattern":%q,"x-coditect":{"labels":["ORDER"]}}`, p))
	}

	for _, n := range []int{10, 100, 1000, 3000, 20000} {
		all = append(all,
			pattern(strings.Repeat("(a?)", n)), pattern(strings.Repeat("(a*)*", n)), pattern("^"+strings.Repeat("a?", n)+strings.Repeat("a", n)+"$"),
			pattern(strings.Repeat("(", n)), pattern(strings.Repeat("(", n)+"a"+strings.Repeat(")", n)), pattern(strings.Repeat("[a-z]|", n)),
			property(strings.Repeat(`{"type":"object","properties":{"x":`, n)+`{"type":"string"}`+strings.Repeat(`}}`, n)),
			property(strings.Repeat(`{"type":"array","items":`, n)+`{"type":"string"}`+strings.Repeat(`}`, n)),
			strings.Repeat("[", n), strings.Repeat(`{"a":`, n),
			`{"title":"t","type":"object","properties":{`+strings.Join(numbered(n, `"p%d":{"type":"string","x-coditect":{"labels":["ORDER"]}}`), ",")+`}}`,
			property(`{"type":"string","enum":[`+strings.Join(numbered(n, `"v%d"`), ",")+`]}`),
			property(`{"type":"string","x-coditect":{"labels":[`+strings.Join(numbered(n, `"L%d"`), ",")+`]}}`),
		)
	}

	for _, n := range []int{12, 30, 300} {
		for _, refer := range []string{
			`{"allOf":[%[1]s,%[1]s]}`, `{"anyOf":[%[1]s,%[1]s]}`, `{"if":%[1]s,"then":%[1]s}`, `{"not":{"allOf":[%[1]s,%[1]s]}}`,
			`{"properties":{"order":%[1]s},"additionalProperties":%[1]s}`, `{"oneOf":[` + strings.Repeat(`%[1]s,`, 11) + `%[1]s]}`,
		} {
			all = append(all, inARow(n, refer))
		}
	}

	// Each alias stands for nine of the one before.
	var bomb strings.Builder
	bomb.WriteString("a: &a [x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c <= 'i'; c++ {
		fmt.Fprintf(&bomb, "%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}

	return append(all,
		"", " ", "null", "true", "0", "1e999", `"text"`, "[]", "{}", "{", "}", "\x00", "---\n---\n", bomb.String(), "a: *b", "&a a: *a", "<<: *x", "!!binary x", "%YAML 9.9",
		`{"type":"object"}`, `{"type":"nothing"}`, `{"type":["object","null",7]}`, `{"$ref":"#"}`, `{"$ref":"file:///etc/passwd"}`, `{"$ref":"http://127.0.0.1:1/"}`,
		property(`{"$ref":"#/properties/order"}`), property(`{"type":"string","pattern":"("}`), property(`{"type":"string","pattern":"\\C\\p{Nothing}"}`),
		pattern("a{1000}{1000}"), pattern("(((a{100}){100}){100})"), pattern(`(?i)`+strings.Repeat(`\p{L}`, 500)), pattern(`[^\x00-\x{10FFFF}]`),
		property(`{"type":"number","minimum":"x"}`), property(`{"type":"number","minimum":1e400}`), property(`{"type":"integer","multipleOf":0}`),
		property(`{"type":"string","x-coditect":{"labels":"ORDER"}}`), property(`{"type":"string","x-coditect":7}`), property(`{"type":"string","x-coditect":{"merge":"never"}}`),
		property(`{"type":"string","format":"date","x-coditect":{"labels":["ORDER"]}}`), `{"title":"`+strings.Repeat("t", 200000)+`","type":"object"}`,
		`{"type":"object","properties":{"`+strings.Repeat("p", 100000)+`":{"type":"string"}}}`, `{"type":"object","properties":{"\u0000":{"type":"string"}}}`,
		`{"type":"object","properties":{"_citations":{"type":"string"}}}`, `{"type":"object","required":["none"]}`, `{"type":"object","properties":[]}`)
}

// inARow returns a schema with n definitions, each of which refers to the next one more
// than once: as refer says, in which %[1]s is the reference. Following each reference takes
// 2^n steps.
func inARow(n int, refer string) string {
	definitions := make([]string, 0, n+1)
	for i := range n {
		definitions = append(definitions, fmt.Sprintf(`"d%d":%s`, i, fmt.Sprintf(refer, fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1))))
	}
	definitions = append(definitions, fmt.Sprintf(`"d%d":{"type":"string"}`, n))
	return `{"title":"t","type":"object","properties":{"order":{"$ref":"#/$defs/d0"}},"$defs":{` + strings.Join(definitions, ",") + `}}`
}

func numbered(n int, format string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return all
}

// documents submits jobs over documents that are wrong, or cost much.
func documents(ctx context.Context, a *attacker) error {
	conn, err := a.dial()
	if err != nil {
		return err
	}
	defer conn.Close()

	for round := uint64(0); ctx.Err() == nil; round++ {
		all := hostileDocuments(rand.New(rand.NewPCG(a.config.Seed, round)))
		for len(all) > 0 && ctx.Err() == nil {
			some := all[:min(10, len(all))]
			all = all[len(some):]

			short, stop := context.WithTimeout(ctx, lieTime)
			_, err := submitJob(short, conn, &pb.JobSpec{TenantId: villain, Provider: "rules", Schema: labelled, MaxAttempts: 1}, some...)
			stop()
			a.report.answered("submissions of documents", some[0].GetDocumentId(), err)
			a.report.count("documents", len(some))
		}
		pause(ctx, time.Second)
	}
	return nil
}

// hostileDocuments returns 300 documents: each kind of content as each type of media.
func hostileDocuments(r *rand.Rand) (all []*pb.DocumentPiece) {
	garbage := make([]byte, 50_000)
	for i := range garbage {
		garbage[i] = byte(r.Uint32())
	}

	contents := []string{
		"", " ", "\n", "\x00", "\xff\xfe", "\xef\xbb\xbf", "\ufeffORDER: 1", "ORDER:", "ORDER: \x1b[2J\u0085\u009b", "ORDER: " + strings.Repeat("a", 200_000),
		strings.Repeat("ORDER: 1\n", 20_000), strings.Repeat("\r", 100_000), strings.Repeat("\u202e", 10_000), strings.Repeat("e\u0301", 50_000), string(garbage),
		strings.Repeat("<div>", 50_000), strings.Repeat("<table><tr><td>", 5_000), "<!--" + strings.Repeat("-", 100_000), "<script>" + strings.Repeat("<", 100_000), "<a " + strings.Repeat("b=c ", 50_000),
		strings.Repeat("&amp;", 50_000), "&#xD800;&#x110000;&#0;", strings.Repeat("> ", 20_000), strings.Repeat("* ", 20_000), strings.Repeat("[", 50_000),
		strings.Repeat("`", 50_000), strings.Repeat("#", 50_000), strings.Repeat("|", 50_000), strings.Repeat(`{"a":`, 20_000), strings.Repeat(`{"text":"ORDER: 1"}`+"\n", 5_000),
		`{"text":` + strings.Repeat("[", 20_000), "PK\x03\x04" + string(garbage), "%PDF-1.7\n" + string(garbage), "\x89PNG\r\n" + string(garbage), "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>",
		"\x1f\x8b\x08" + string(garbage), strings.Repeat("\U0010ffff", 20_000), strings.Repeat("_", 50_000),
	}

	types := []string{"text/plain", "text/markdown", "text/html", "text/html; charset=utf-16", "application/json", "application/pdf", "made/up", "\x00"}

	for i := 0; len(all) < 300; i++ {
		all = append(all, &pb.DocumentPiece{
			DocumentId: fmt.Sprintf("d%03d", i), MediaType: types[i/len(contents)%len(types)], Content: []byte(contents[i%len(contents)]),
		})
	}
	return all
}
