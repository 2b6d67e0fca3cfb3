package fault

import "strings"

// specFields are the fields of a job's spec by the names that the service has for them in
// errors, with their names in the message JobSpec. A client of the wire reads the latter.
// Both end as [index] or .name where an error is about a part of the field.
var specFields = map[string]string{ //nolint:gosec // names of fields, and no credentials
	"tenant": "tenant_id", "request_id": "request_id",
	"pipeline": "pipeline", "definition": "pipeline_definition", "stages": "pipeline_definition.stages",
	"provider": "provider", "model": "model", "fallback_models": "fallback_models", "model_aliases": "model_aliases", "schema": "schema", "vars": "vars",
	"parallelism": "parallelism", "max_tokens_per_unit": "max_unit_tokens", "chunk_overlap": "chunk_overlap_tokens", "priority": "priority",
	"reduce_context_limit": "reduce_context_tokens", "reduce_batch_size": "reduce_batch_size",
	"budget": "budget_tokens", "max_cost": "max_cost_micros", "reduce_share": "reduce_share",
	"on_error": "on_error", "on_breaker": "on_breaker", "max_attempts": "max_attempts", "unit_timeout": "unit_timeout",
	"circuit_breaker_threshold": "breaker_threshold", "circuit_breaker_timeout": "breaker_timeout",
	"checkpoint_interval": "checkpoint_interval", "capture": "capture",
	"strategy": "strategy", "chunk_size": "chunk_size", "target_token_budget": "target_token_budget", "context_window": "context_window",
	"budget_ratio": "budget_ratio", "max_reduce_levels": "max_reduce_levels", "prompt_overhead": "prompt_overhead", "reserved_output": "reserved_output",
	"estimator": "estimator", "strict_schema": "strict_schema", "reading": "reading", "labels": "labels", "deadline": "deadline",
}

// ofSpec begins the names of the fields of a spec in a request that holds one.
const ofSpec = "spec."

var specNames = func() map[string]string {
	names := make(map[string]string, len(specFields))
	for name, field := range specFields {
		names[field] = name
	}
	return names
}()

// encodeField returns a field's name for a client of the wire.
func encodeField(name string) string {
	head, rest := cutField(name)
	if field, ok := specFields[head]; ok {
		return ofSpec + field + rest
	}
	return name
}

// decodeField is the inverse of encodeField.
func decodeField(field string) string {
	inner, ok := strings.CutPrefix(field, ofSpec)
	if !ok {
		return field
	}

	if rest, ok := strings.CutPrefix(inner, specFields["stages"]); ok {
		return "stages" + rest
	}

	head, rest := cutField(inner)
	if name, ok := specNames[head]; ok {
		return name + rest
	}
	return field
}

// cutField splits a field's name before the first part that is inside of it.
func cutField(name string) (head, rest string) {
	if i := strings.IndexAny(name, ".["); i >= 0 {
		return name[:i], name[i:]
	}
	return name, ""
}
