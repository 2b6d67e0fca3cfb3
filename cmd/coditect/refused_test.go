package main_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	main "github.com/coditect/mapreduce/cmd/coditect"
	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// What cannot be is refused over HTTP as by the command line, with the field and the numbers, and nothing is stored. The
// script refused has the same of the command line.
func TestRefusedOverHTTP(t *testing.T) {
	testenv.Raced(t)

	ctx, stop := context.WithTimeout(t.Context(), patience)
	said, served := &output{more: make(chan struct{})}, make(chan int, 1)
	go func() {
		served <- main.Run(ctx, []string{"serve", "--listen", "unix", "--http", "127.0.0.1:0", "--workers", "0", "--data-dir", t.TempDir()}, said)
	}()
	defer func() {
		stop()
		if code := <-served; code != 0 {
			t.Errorf("the server ended with %d:\n%s", code, said)
		}
	}()
	api := "http://" + said.await(t, `msg="HTTP is served" http=(\S+)`)

	const pattern = `{"type": "object", "properties": {"company": {"type": "string"}, "total": {"type": "number"}}}`
	openai := func(model string, more map[string]any) map[string]any {
		spec := map[string]any{"schema": pattern, "provider": "openai", "model": model}
		maps.Copy(spec, more)
		return spec
	}
	vars := func(pairs ...string) map[string]any {
		all := make(map[string]string)
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return map[string]any{"vars": all}
	}
	at := func(from time.Duration) string { return time.Now().Add(from).UTC().Format(time.RFC3339Nano) }
	stages := "name: stages\nstages:\n" +
		"- {name: map, each: document, cascade: [rules, openai/gpt-4.1], output: {kind: records, schema: {type: object, properties: {company: {type: string}}}}}\n" +
		"- {name: reduce, each: group, output: {kind: records, schema: {type: object, properties: {total: {type: number}}}}}\n"

	var documents []any
	for i := range 400 {
		text := fmt.Sprintf("COMPANY: BOOK %d\nTOTAL 9.00\n", i)
		documents = append(documents, map[string]any{"documentId": fmt.Sprintf("%d.txt", i), "content": base64.StdEncoding.EncodeToString([]byte(text))})
	}

	for name, c := range map[string]struct {
		spec        map[string]any
		field, want string
	}{
		"a tier of another model":   {openai("gpt-4.1", vars("tier", "flex")), "spec.vars.tier", `it has no tier flex; it has standard, priority; `},
		"a tier that is none":       {openai("gpt-4.1", vars("tier", "cheap")), "spec.vars.tier", `"cheap" is not one of flex, standard, priority, flex,standard, batch`},
		"a vendor without batches":  {map[string]any{"schema": pattern, "provider": "mistral", "model": "mistral-small", "vars": map[string]string{"tier": "batch"}}, "spec.vars.tier", `its provider makes no batches here; `},
		"a deadline that is past":   {openai("gpt-5-mini", map[string]any{"deadline": "2020-01-01T10:00:00Z"}), "spec.deadline", `2020-01-01 10:00:00 UTC, which is past`},
		"a deadline that is near":   {openai("gpt-5-mini", map[string]any{"deadline": at(5 * time.Minute), "parallelism": 1}), "spec.deadline", `the job takes about [0-9ms]+ at any price: that is with all calls in real time, 1 at a time; give it until [0-9: -]+ UTC, or raise the parallelism`},
		"a deadline, and a tier":    {openai("gpt-5-mini", map[string]any{"deadline": at(time.Hour), "vars": map[string]string{"tier": "flex"}}), "spec.vars.tier", `is flex, and the deadline chooses the tier: leave out one of them`},
		"a budget in tokens":        {openai("gpt-4.1", map[string]any{"budgetTokens": "1000"}), "spec.budget_tokens", `is 1,?000 tokens, 800 tokens of it for mapping, but the smallest unit may need \d+ tokens; raise it`},
		"a budget in dollars":       {openai("gpt-4.1", map[string]any{"maxCostMicros": "1000"}), "spec.max_cost_micros", `is \$0\.001, \$0\.0008 of it for mapping, but the smallest unit may need \$0\.\d+; raise it`},
		"a target of 1":             {openai("gpt-4.1", vars("cascade", "rules,openai/gpt-4.1", "cascade_target", "1")), "spec.vars.cascade_target", `must be more than 0 and less than 1, such as 0\.95, and is "1"`},
		"a confidence of 0":         {openai("gpt-4.1", vars("cascade", "rules,openai/gpt-4.1", "cascade_confidence", "0")), "spec.vars.cascade_confidence", `must be more than 0 and less than 1, such as 0\.95, and is "0"`},
		"stages of two schemas":     {openai("gpt-4.1", map[string]any{"pipeline": "stages", "pipelineDefinition": stages}), "spec.pipeline_definition.stages[1].output.schema", `must be that of stage map, or be left out`},
		"a cascade of one":          {openai("gpt-4.1", vars("cascade", "openai/gpt-4.1")), "spec.vars.cascade", `needs 2 to 4 members, the cheapest first, and has 1`},
		"a cascade that ends wrong": {openai("gpt-4.1", vars("cascade", "openai/gpt-4.1,rules")), "spec.vars.cascade", `ends with rules, and the last member is the one that the others are judged by`},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(map[string]any{"spec": c.spec, "documents": documents})
			if err != nil {
				t.Fatal(err)
			}
			status, answer := callHTTP(t, http.MethodPost, api+"/v1/jobs", string(body))
			var told struct{ Message string }
			if err := json.Unmarshal([]byte(answer), &told); err != nil {
				t.Fatalf("%v: %s", err, answer)
			}
			if status != http.StatusBadRequest || !regexp.MustCompile(c.want).MatchString(told.Message) || !strings.Contains(answer, `"`+c.field+`"`) {
				t.Errorf("%d: %s\nwant the field %s, and %s", status, answer, c.field, c.want)
			}
		})
	}
	if status, answer := callHTTP(t, http.MethodGet, api+"/v1/jobs", ""); status != http.StatusOK || strings.Contains(answer, "jobId") {
		t.Errorf("%d: jobs are stored: %s", status, answer)
	}
}

// callHTTP returns what a call answers.
func callHTTP(t *testing.T, method, url, body string) (status int, answer string) {
	t.Helper()

	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
	}()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(all)
}
