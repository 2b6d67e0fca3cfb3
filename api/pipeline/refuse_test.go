package pipeline_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline"
)

// whole is a file whose stages are those of a test, with what every file needs.
func whole(stages ...string) string {
	return "name: a\nstages:\n" + strings.Join(stages, "\n") + "\n"
}

const (
	mapped  = "- {name: map, each: document}"
	grouped = "- {name: reduce, each: group}"
	work    = ", agent: {role: r}, task: t}"
	listing = "- {name: plan, each: all, output: {kind: items, schema: {type: object, properties: {list: {type: array, items: {type: string}}, records: {type: array, items: {type: object, properties: {a: {type: string}}}}, one: {type: string}, in: {type: object, properties: {list: {type: array, items: {type: string}}}}}}}" + work
)

// TestWrongFilesAreRefused: whatever is wrong with a file is said with the key, the
// rule and the line.
func TestWrongFilesAreRefused(t *testing.T) {
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'h'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ","))
	}
	for _, tt := range []struct {
		name, file string
		line       int
		field      string
		rule       string
	}{
		// Parameters of answers.
		{"an unknown effort", whole("- name: map\n  each: document\n  parameters:\n    temperature: 0\n    effort: hard", grouped), 7, "stages[0].parameters.effort", `"hard" is not one of none, minimal, low`},
		{"a temperature that is none", whole("- {name: map, each: document, parameters: {temperature: 3}}", grouped), 3, "stages[0].parameters.temperature", `"3" is not a number from 0 to 2`},
		{"an unknown parameter", whole("- {name: map, each: document, parameters: {top_k: 3}}", grouped), 3, "stages[0].parameters.top_k", "there is no such key; the keys here are effort, seed, stop"},
		{"texts that are none", whole("- {name: map, each: document, parameters: {stop: [1]}}", grouped), 3, "stages[0].parameters.stop", "begins like a list of texts"},
		{"parameters of nobody", whole("- {name: map, each: document, output: passages, query: q, size: 2, passage: 90, parameters: {seed: 1}}", "- {name: reduce, each: all, output: report"+work), 3, "stages[0].parameters", "no model chooses passages"},

		// The file.
		{"empty", "", 0, "pipeline", "is empty"},
		{"a comment alone", "# nothing\n", 0, "pipeline", "is empty"},
		{"no UTF-8", "name: \xff", 0, "pipeline", "not valid UTF-8"},
		{"no YAML", "name: a\nb: [", 2, "pipeline", "a value is missing"},
		{"a tab", "name: a\nstages:\n\t- x\n", 3, "pipeline", "indent by blanks"},
		{"two documents", "name: a\n---\nname: b\n", 2, "pipeline", "more than one document"},
		{"a list", "- name: a\n", 1, "pipeline", "must be a mapping, and is a list"},
		{"a text", "extract\n", 1, "pipeline", `must be a mapping, and is "extract"`},
		{"nested too deep, YAML", "name: a\nstages: " + deep + " # deep\n", 2, "pipeline", "nested deeper than 64"},
		{"nested too deep, JSON", `{"name": "a",` + "\n" + `"stages": ` + deep + "}", 2, "pipeline", "nested deeper than 64"},
		{"an alias of itself", "name: a\nstages: &a [*a]\n", 2, "pipeline", "nested deeper than 64"},
		{"aliases that grow", bomb, 1, "pipeline", "more than 20000 values"},
		{"a merged mapping", "name: a\nx: &x {role: y}\nagents: {b: {<<: *x}}\n", 3, "pipeline", "write merged mappings out"},
		{"a key that is a list", "name: a\n[x]: y\n", 2, "pipeline", "keys must be plain texts"},
		{"a key twice", "name: a\nname: b\n", 2, "pipeline", `"name" stands in line 1 already`},
		{"a key twice, JSON", "{\"name\": \"a\",\n\"name\": \"b\"}", 2, "pipeline", `"name" stands in line 1 already`},
		{"a key that is too long", "name: a\n" + strings.Repeat("k", 300) + ": b\n", 2, "pipeline", "at most 256"},
		{"a number that is none", "name: a\nstages:\n- {name: m, each: chunk, budget_ratio: .nan}\n", 3, "pipeline", "no number that can be read"},
		{"too long a file", "name: a\ndescription: '" + strings.Repeat("x", 60<<10) + "'\nstages:\n" + mapped + "\n" + grouped, 0, "pipeline", "at most 49152"},
		{"far too long a file", "name: a\n#" + strings.Repeat("x", 200<<10), 0, "pipeline", "at most 49152"},

		// The pipeline.
		{"a key that is none", "name: a\nmap: {}\n", 2, "map", "no such key; the keys here are advice, agents, deadline, description, inputs, name, stages"},
		{"no name", whole(mapped, grouped)[len("name: a\n"):], 1, "name", "1 to 64 letters"},
		{"a name with spaces", "name: a b\nstages: []\n", 1, "name", "1 to 64 letters"},
		{"the name of a preset", "name: extract\nstages:\n" + mapped + "\n" + grouped, 1, "name", "comes with the program"},
		{"the name of a preset to come", "name: research\nstages:\n" + mapped + "\n" + grouped, 1, "name", "comes with the program"},
		{"a name that is a list", "name: [a]\n", 1, "name", "must be a text, and is a list"},
		{"a description that is nothing", "name: a\ndescription:\n", 2, "description", "must be a text, and is nothing"},
		{"an input with a bad name", "name: a\ninputs: {'x y': 1}\n", 2, "inputs", "1 to 64 letters"},
		{"inputs that are a list", "name: a\ninputs: [x]\n", 2, "inputs", "must be a mapping"},
		{"an agent with a bad name", "name: a\nagents: {'x y': {role: x}}\n", 2, "agents", "1 to 64 letters"},
		{"an agent without a role", "name: a\nagents:\n  b: {goal: x}\nstages:\n" + mapped + "\n" + grouped, 3, "agents.b.role", "is required"},
		{"a key of an agent that is none", "name: a\nagents:\n  b:\n    rolle: x\n", 4, "agents.b.rolle", "the keys here are background, description, goal, instructions, model, role, tools"},
		{"no stages", "name: a\n", 1, "stages", "is required"},
		{"a list of no stages", "name: a\nstages: []\n", 2, "stages", "is required"},
		{"stages that are a mapping", "name: a\nstages: {map: {}}\n", 2, "stages", "must be a list"},
		{"too many stages", whole(strings.Repeat(mapped+"\n", 33)), 3, "stages", "at most 32"},

		// Names of stages.
		{"no name of a stage", whole("- {each: document}", grouped), 3, "stages[0].name", "is required"},
		{"a name with an underscore", whole("- {name: map_1, each: document}", grouped), 3, "stages[0].name", "lower-case letters, digits and dashes"},
		{"a name in capitals", whole("- {name: Map, each: document}", grouped), 3, "stages[0].name", "lower-case"},
		{"a name that is too long", whole("- {name: "+strings.Repeat("m", 33)+", each: document}", grouped), 3, "stages[0].name", "1 to 32"},
		{"documents as a name", whole("- {name: documents, each: document}", grouped), 3, "stages[0].name", "is a reserved word"},
		{"final as a name", whole(mapped, "- {name: final, each: group}"), 4, "stages[1].name", "is a reserved word"},
		{"parse as a name", whole("- {name: parse, each: document}", grouped), 3, "stages[0].name", "is a reserved word"},
		{"two stages of one name", whole(mapped, grouped, "- {name: map, each: group}"), 5, "stages[2].name", `"map" is the name of stages[0] already`},

		// From.
		{"from nowhere", whole(mapped, grouped, "- name: last", "  from: theme", "  each: all"), 6, "stages[2].from", `"theme" is neither documents nor an earlier stage, which are map, reduce`},
		{"from itself", whole(mapped, "- {name: reduce, from: reduce, each: group}"), 4, "stages[1].from", "is this stage itself"},
		{"from a later one", whole(mapped, "- {name: b, from: c, each: all}", "- {name: c, from: b, each: all}"), 4, "stages[1].from", `"c" is a later stage`},
		{"the first from a later one", whole("- {name: b, from: c, each: all}", "- {name: c, each: all}"), 3, "stages[0].from", "later stage"},
		{"from one twice", whole(mapped, "- {name: b, from: map or map, each: all}"), 4, "stages[1].from", `names "map" twice`},
		{"documents or others", whole(mapped, "- {name: b, from: documents or map, each: all}"), 4, "stages[1].from", "no other source can be an alternative"},
		{"one or nothing", whole(mapped, "- {name: b, from: 'map or ', each: all}"), 4, "stages[1].from", "nor an earlier stage"},
		{"behind one that is never skipped", whole("- {name: x, each: document}", "- {name: y, each: group}", "- {name: b, from: y or x, each: all}"), 5, "stages[2].from", `"y" is never skipped`},
		{"documents behind others", whole(mapped, grouped, "- {name: b, from: documents, each: all}"), 5, "stages[2].from", "must stand before all others"},
		{"documents without a condition", whole("- {name: x, each: all}", "- {name: map, from: documents, each: document}", grouped), 3, "stages[0].when", "is required"},

		// Each.
		{"no each", whole("- {name: map}", grouped), 3, "stages[0].each", "is required"},
		{"an each that is none", whole("- {name: map, each: page}", grouped), 3, "stages[0].each", "not one of document, chunk, batch"},
		{"chunks of outputs", whole(mapped, "- {name: b, each: chunk}"), 4, "stages[1].each", "chunk is for stages that read documents, and this one reads map"},
		{"documents of outputs", whole(mapped, "- {name: b, each: document}"), 4, "stages[1].each", "document is for stages that read documents"},
		{"a group of documents", whole("- {name: b, each: group}"), 3, "stages[0].each", "group is for stages that read the outputs"},
		{"elements of no stage", whole(listing, "- {name: b, each: plam.list}", grouped), 4, "stages[1].from", `"plam" is neither documents nor an earlier stage`},
		{"elements of a stage that is not read", whole(listing, "- {name: x, each: plan.list}", "- {name: b, from: x, each: plan.list}", grouped), 5, "stages[2].from", "must be plan"},
		{"elements of documents", whole(listing, "- {name: b, each: documents.list}", grouped), 4, "stages[1].each", `"documents" is no earlier stage: those are plan`},
		{"a path that the schema has not", whole(listing, "- {name: b, each: plan.lists}", grouped), 4, "stages[1].each", `the schema has no "lists" there; it has list, records, one, in`},
		{"a path inside that it has not", whole(listing, "- {name: b, each: plan.in.lists}", grouped), 4, "stages[1].each", `no "lists" there; it has list`},
		{"a path to no list", whole(listing, "- {name: b, each: plan.one}", grouped), 4, "stages[1].each", "one is of type string"},
		{"a path to an object", whole(listing, "- {name: b, each: plan.in}", grouped), 4, "stages[1].each", "in is of type object"},
		{"a path through a list", whole(listing, "- {name: b, each: plan.list.a}", grouped), 4, "stages[1].each", "so it has no properties"},
		{"a path without a name", whole(listing, "- {name: b, each: plan..list}", grouped), 4, "stages[1].each", "not one of document"},
		{"a path into records", whole("- {name: x, each: all}", "- {name: b, each: x.records.dish}", grouped), 4, "stages[1].each", "have one list, records"},
		{"another path into records", whole("- {name: x, each: all}", "- {name: b, each: x.rows}", grouped), 4, "stages[1].each", "have one list, records"},
		{"a path into a report", whole("- {name: x, each: all, output: report"+work, "- {name: b, each: x.list}", grouped), 4, "stages[1].each", "which is text"},
		{"a path into what has no schema", whole("- {name: x, each: all, output: items"+work, "- {name: b, each: x.list}", grouped), 4, "stages[1].each", "no schema that names one"},
		{"a path into rows", whole("- {name: x, each: all, output: {kind: table, schema: {type: array, items: {type: object, properties: {a: {type: string}}}}}"+work, "- {name: b, each: x.a}", grouped), 4, "stages[1].each", "a list without a name"},
		{"a last stage that fans out", whole(mapped), 3, "stages[0].each", "must be all or group"},
		{"a stage that nobody reads", whole("- {name: x, each: document}", "- {name: y, each: batch, size: 3}", "- {name: z, from: x, each: group}"), 4, "stages[1].each", "must be all or group"},

		// Keys of one each.
		{"the size of no batch", whole("- {name: map, each: document, size: 3}", grouped), 3, "stages[0].size", "only for stages with each: batch"},
		{"the order of no batch", whole("- {name: map, each: document, order: x}", grouped), 3, "stages[0].order", "only for stages with each: batch"},
		{"the passage of no batch", whole("- {name: map, each: document, passage: 3}", grouped), 3, "stages[0].passage", "only for stages with each: batch"},
		{"a batch of no size", whole("- {name: map, each: batch}", grouped), 3, "stages[0].size", "is required"},
		{"a batch of nothing", whole("- {name: map, each: batch, size: 0}", grouped), 3, "stages[0].size", "at least 1"},
		{"a batch in no order", whole("- {name: map, each: batch, size: 2, order: by relevance}", grouped), 3, "stages[0].order", "relevance desc"},
		{"agents of documents", whole("- {name: map, each: document, agents: [b]}", grouped), 3, "stages[0].agents", "only for stages with each: agent"},
		{"a selection of documents", whole("- {name: map, each: document, select: all}", grouped), 3, "stages[0].select", "only for stages with each: agent"},
		{"no agents", whole("- {name: map, each: agent, task: t}", grouped), 3, "stages[0].agents", "is required"},
		{"agents that there are not", whole("- {name: map, each: agent, agents: [b], task: t}", grouped), 3, "stages[0].agents[0]", `"b" is none of the pipeline's agents: there are none`},
		{"agents twice", "agents: {b: {role: r}}\n" + whole("- {name: map, each: agent, agents: [b, b], task: t}", grouped), 4, "stages[0].agents[1]", "twice"},
		{"agents and an agent", "agents: {b: {role: r}}\n" + whole("- {name: map, each: agent, agents: [b], agent: b, task: t}", grouped), 4, "stages[0].agent", "cannot be set together with agents"},
		{"agents without a task", "agents: {b: {role: r}}\n" + whole("- {name: map, each: agent, agents: [b]}", grouped), 4, "stages[0].task", "is required"},
		{"a selection of what is not", "agents: {b: {role: r}}\n" + whole("- {name: map, each: agent, agents: [b], select: some, task: t}", grouped), 4, "stages[0].select", "must be all, or the path"},
		{"a selection of no stage", "agents: {b: {role: r}}\n" + whole("- {name: map, each: agent, agents: [b], select: plan.list, task: t}", grouped), 4, "stages[0].select", "no earlier stage"},
		{"a selection by no list", "agents: {b: {role: r}}\n" + whole(listing, "- {name: map, each: agent, agents: [b], select: plan.one, task: t}", grouped), 5, "stages[1].select", "one is of type string"},
		{"a selection beside documents", "agents: {b: {role: r}}\n" + whole(strings.Replace(listing, "each: all", "each: all, when: count < 9", 1), "- {name: map, from: documents, each: agent, agents: [b], select: plan.names, task: t}", grouped), 5, "stages[1].select", "if plan ran, it got the documents"},
		{"an order of records", whole(mapped, "- {name: b, each: batch, size: 2, order: total}", grouped), 4, "stages[1].order", "and map makes records"},
		{"an order of no property", whole(listing, "- {name: b, each: batch, size: 2, order: total, output: items"+work, grouped), 4, "stages[1].order", `has no "total" at its top`},
		{"a passage of records", whole(mapped, "- {name: b, each: batch, size: 2, passage: 9}", grouped), 4, "stages[1].passage", "merges records of map"},
		{"a selection by no names", "agents: {b: {role: r}}\n" + whole(listing, "- {name: map, each: agent, agents: [b], select: plan.records, task: t}", grouped), 5, "stages[1].select", "must be of strings"},
		{"merge of documents", whole("- {name: map, each: document, merge: typed}", grouped), 3, "stages[0].merge", "only for stages with each: group"},
		{"fold of all", whole("- {name: x, each: all, fold: true}"), 3, "stages[0].fold", "only for stages with each: group"},
		{"a strategy of documents", whole("- {name: map, each: document, strategy: static}", grouped), 3, "stages[0].strategy", "only for stages with each: group"},
		{"the tree of documents", whole("- {name: map, each: document, chunk_size: 5}", grouped), 3, "stages[0].chunk_size", "only for stages with each: group"},
		{"merge by nobody", whole(mapped, "- {name: reduce, each: group, merge: magic}"), 4, "stages[1].merge", "typed, model or typed-then-model"},
		{"a fold that is none", whole(mapped, "- {name: reduce, each: group, fold: 'yes'}"), 4, "stages[1].fold", "true or false"},
		{"a strategy that is none", whole(mapped, "- {name: reduce, each: group, strategy: greedy}"), 4, "stages[1].strategy", "static or adaptive"},
		{"groups of one", whole(mapped, "- {name: reduce, each: group, chunk_size: 1}"), 4, "stages[1].chunk_size", "at least 2"},
		{"a ratio above all", whole(mapped, "- {name: reduce, each: group, context_window: 9, budget_ratio: 1.5}"), 4, "stages[1].budget_ratio", "at most 1"},
		{"a ratio of nothing", whole(mapped, "- {name: reduce, each: group, budget_ratio: 0.5}"), 4, "stages[1].budget_ratio", "needs context_window"},
		{"two budgets", whole(mapped, "- {name: reduce, each: group, context_window: 9, target_token_budget: 8}"), 4, "stages[1].context_window", "both say the budget"},
		{"two trees", whole(mapped, "- {name: reduce, each: group, strategy: static, target_token_budget: 8}"), 4, "stages[1].strategy", "for a static tree"},
		{"three trees", whole(mapped, "- {name: reduce, each: group, chunk_size: 3, reduce_batch_size: 8}"), 4, "stages[1].strategy", "without a strategy"},

		// When.
		{"a condition that is none", whole(mapped, "- {name: b, each: all, when: sometimes}"), 4, "stages[1].when", "neither count nor tokens"},
		{"a condition that never holds", whole(mapped, "- name: b", "  each: all", "  when: tokens > 10 and tokens < 5"), 6, "stages[1].when", "never true"},

		// Who does what.
		{"B2: an agent without a task", whole("- {name: map, each: document, agent: {role: r}}", grouped), 3, "stages[0].task", "is required beside the agent"},
		{"B2: a task without an agent", whole("- {name: map, each: document, task: t}", grouped), 3, "stages[0].agent", "is required beside task"},
		{"B2: a group's agent without a task", whole(mapped, "- {name: reduce, each: group, agent: {role: r}}"), 4, "stages[1].task", "is required beside the agent"},
		{"B2: a group's task without an agent", whole(mapped, "- {name: reduce, each: group, task: t}"), 4, "stages[1].agent", "is required beside task"},
		{"B10: an agent of all without a task", whole("- {name: x, each: all, agent: {role: r}}"), 3, "stages[0].task", "is required beside the agent"},
		{"B10: a task of all without an agent", whole("- {name: x, each: all, task: t}"), 3, "stages[0].agent", "is required beside task"},
		{"items by nobody", whole("- {name: x, each: all, output: {kind: items, schema: {type: object, properties: {a: {type: array, items: {type: string}}}}}}"), 3, "stages[0].agent", "only a stage with output: records, passages or report, or with merge: typed, needs neither"},
		{"an agent without a role", whole("- name: map", "  each: document", "  agent:", "    goal: x", "  task: t", grouped), 6, "stages[0].agent.role", "is required"},
		{"an agent of nothing", whole("- {name: map, each: document, agent: , task: t}", grouped), 3, "stages[0].agent", "must be a text, and is nothing"},
		{"an agent that there is not", whole("- {name: map, each: document, agent: bob, task: t}", grouped), 3, "stages[0].agent", `"bob" is none of the pipeline's agents`},
		{"a key of an agent", whole("- name: map", "  agent: {role: x, rolle: y}"), 4, "stages[0].agent.rolle", "no such key"},
		{"a task without a description", whole("- {name: map, each: document, agent: {role: r}, task: {expected_output: x}}", grouped), 3, "stages[0].task.description", "is required"},
		{"a role that is a list", whole("- {name: map, each: document, agent: {role: [x]}}", grouped), 3, "stages[0].agent.role", "must be a text"},
		{"a key of a stage", whole("- {name: map, eech: document}", grouped), 3, "stages[0].eech", "no such key"},
		{"a stage that is a text", whole("- map"), 3, "stages[0]", "must be a mapping"},
		{"examples of a group", whole(mapped, "- {name: reduce, each: group, examples: [{document: x, records: []}]}"), 4, "stages[1].examples", "find records in documents"},
		{"examples of a report", whole("- {name: x, each: all, output: report, examples: [{document: x}]" + work), 3, "stages[0].examples", "this stage makes report"},
		{"too many examples", whole("- {name: map, each: document, examples: ["+strings.Repeat("{document: x},", 17)+"]}", grouped), 3, "stages[0].examples", "at most 16"},
		{"a key of an example", whole("- {name: map, each: document, examples: [{text: x}]}", grouped), 3, "stages[0].examples[0].text", "no such key"},
		{"a key of a finding", whole("- {name: map, each: document, examples: [{document: x, records: [{dish: {value: 1, cite: y}}]}]}", grouped), 3, "stages[0].examples[0].records[0].dish.cite", "the keys here are quote, value"},
		{"a record that is a list", whole("- {name: map, each: document, examples: [{document: x, records: [[]]}]}", grouped), 3, "stages[0].examples[0].records[0]", "mapping of fields"},
		{"a model with a space", whole("- {name: map, each: document, model: 'my model'}", grouped), 3, "stages[0].model", "without spaces"},
		{"tools twice", whole("- {name: map, each: document, tools: [read, grep, read]}", grouped), 3, "stages[0].tools[2]", `"read" is listed twice`},
		{"a tool without a name", whole("- {name: map, each: document, tools: ['']}", grouped), 3, "stages[0].tools[0]", "name of a tool"},
		{"too many tools", whole("- {name: map, each: document, tools: ["+strings.Repeat("x,", 65)+"]}", grouped), 3, "stages[0].tools", "at most 64"},
		{"a limit of turns without tools", whole("- name: map", "  each: document", "  limits: {turns: 3}", grouped), 5, "stages[0].limits.turns", "is for stages with tools"},
		{"a limit of calls without tools", whole("- name: map", "  each: document", "  limits: {tool_calls: 3}", grouped), 5, "stages[0].limits.tool_calls", "is for stages with tools"},
		{"tools of nobody", whole("- {name: map, each: document, tools: [read]}", grouped), 3, "stages[0].agent", "is required beside tools"},
		{"tools of a group", whole("- {name: map, each: document}", "- {name: join, each: group, tools: [read], agent: {role: x}, task: x}"), 4, "stages[1].tools", "a group merges"},
		{"records of outputs", whole("- {name: map, each: document}", "- {name: more, from: map, each: all, tools: [read], agent: {role: x}, task: x, output: records}"), 4, "stages[1].output", "records are found in documents"},
		{"passages of batches", whole("- {name: map, each: batch, size: 3, tools: [read], agent: {role: x}, task: x, output: passages}", "- {name: all, from: map, each: all, agent: {role: x}, task: x, output: report}"), 3, "stages[0].each", "batch cannot be combined with"},
		{"passages by an agent without tools", whole("- {name: map, each: document, agent: {role: x}, task: x, output: passages, query: x}", "- {name: all, from: map, each: all, agent: {role: x}, task: x, output: report}"), 3, "stages[0].output", "unless it has tools"},
		{"a limit of nothing", whole("- name: map", "  each: document", "  limits:", "    turns: 0", grouped), 6, "stages[0].limits.turns", "at least 1"},
		{"a limit that is none", whole("- {name: map, each: document, limits: {money: 1}}", grouped), 3, "stages[0].limits.money", "no such key"},
		{"a time that is none", whole("- {name: map, each: document, limits: {time: 10}}", grouped), 3, "stages[0].limits.time", "positive duration"},
		{"a time before now", whole("- {name: map, each: document, limits: {time: -1s}}", grouped), 3, "stages[0].limits.time", "positive duration"},
		{"parallel by half", whole("- {name: map, each: document, parallel: 0.5}", grouped), 3, "stages[0].parallel", "whole number"},
		{"an end that is none", whole("- {name: map, each: document, on_error: cry}", grouped), 3, "stages[0].on_error", "continue or fail-fast"},

		// Output.
		{"an output that is none", whole("- {name: map, each: document, output: poem"+work, grouped), 3, "stages[0].output", "records, items, table, report or passages"},
		{"a key of an output", whole("- {name: map, each: document, output: {form: items}"+work, grouped), 3, "stages[0].output.form", "kind, schema"},
		{"a report whose sections have no names", whole("- {name: x, each: all, output: {kind: report, schema: {type: array, items: {type: object, properties: {a: {type: string}}}}}" + work), 3, "stages[0].output.schema", "whose properties are the sections"},
		{"items in no object", whole("- {name: x, each: all, output: {kind: items, schema: {type: array, items: {type: object, properties: {a: {type: string}}}}}" + work), 3, "stages[0].output.schema", "must be of an object"},
		{
			"a schema that is none", whole("- name: x", "  each: all", "  output:", "    kind: items", "    schema:", "      type: object", "      properties:", "        a: {type: strin}"),
			10, "stages[0].output.schema.properties.a.type", "strin",
		},
		{"a group of another kind", whole(mapped, "- {name: reduce, each: group, output: items"+work), 4, "stages[1].output", "records, as in stage map, and not items"},
		{"a group of another schema", whole(mapped, "- {name: reduce, each: group, output: {kind: records, schema: "+dishes+"}}"), 4, "stages[1].output.schema", "must be that of stage map"},
		{
			"a group of two kinds", whole("- {name: x, each: document, when: count < 5}", "- {name: y, from: documents, each: document, output: items"+work, "- {name: reduce, from: x or y, each: group}"),
			5, "stages[2].from", "x makes records, y makes items",
		},

		// Templates.
		{"braces that do not close", whole("- {name: map, each: document, agent: {role: 'x {{item.a'}, task: t}", grouped), 3, "stages[0].agent.role", "{{ without }}"},
		{"braces that do not open", whole("- {name: map, each: document, agent: {role: 'x }} y'}, task: t}", grouped), 3, "stages[0].agent.role", "}} without {{"},
		{"a function", whole("- {name: map, each: document, agent: {role: '{{printf \"%d\" 1}}'}, task: t}", grouped), 3, "stages[0].agent.role", "no variable"},
		{"a space that is none", whole("- {name: map, each: document, agent: {role: r}, task: '{{env.HOME}}'}", grouped), 3, "stages[0].task.description", "no variable"},
		{"no space", whole("- {name: map, each: document, agent: {role: '{{dish}}'}, task: t}", grouped), 3, "stages[0].agent.role", "no variable"},
		{"an input that is not declared", whole("- {name: map, each: document, agent: {role: '{{input.x}}'}, task: t}", grouped), 3, "stages[0].agent.role", "not among inputs"},
		{"an item in a group", whole(mapped, "- {name: reduce, each: group, agent: {role: '{{item.x}}'}, task: t}"), 4, "stages[1].agent.role", "templates of the stage reduce know input and agents alone"},
		{"an item in all", whole("- {name: x, each: all, agent: {role: r}, task: '{{item.x}}'}"), 3, "stages[0].task.description", "know items and input and agents alone"},
		{"items in a document", whole("- {name: map, each: document, agent: {role: r}, task: '{{items.x}}'}", grouped), 3, "stages[0].task.description", "know item and input and agents alone"},
		{"an item in a shared agent", "agents:\n  b: {role: 'of {{item.x}}'}\n" + whole(mapped, "- {name: reduce, each: group, agent: b, task: t}"), 2, "agents.b.role", "templates of the stage reduce know input and agents alone"},
		{"an item in one of several agents", "agents:\n  b: {role: 'of {{item.x}}'}\n" + whole("- {name: map, each: agent, agents: [b], task: t}", grouped), 2, "agents.b.role", "know input and agents alone"},
		{"braces of an agent that nobody names", "agents:\n  b: {role: '{{'}\n" + whole(mapped, grouped), 2, "agents.b.role", "{{ without }}"},
		{"a text that is too long", whole("- {name: map, each: document, agent: {role: r}, task: '"+strings.Repeat("x", 17<<10)+"'}", grouped), 3, "stages[0].task.description", "at most 16384"},
		{"an agent that is too long", whole("- {name: map, each: document, agent: {role: '"+strings.Repeat("x", 17<<10)+"'}, task: t}", grouped), 3, "stages[0].agent.role", "at most 16384"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := pipeline.Parse("f.yaml", []byte(tt.file))
			wantField(t, err, tt.field, tt.rule)
			place := "f.yaml"
			if tt.line > 0 {
				place = fmt.Sprintf("f.yaml:%d", tt.line)
			}
			if e, ok := errors.AsType[*errs.Error](err); ok && e.Op != place {
				t.Errorf("the place is %s, want %s", e.Op, place)
			}
		})
	}
}
