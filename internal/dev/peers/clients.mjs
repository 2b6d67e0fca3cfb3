// Calls a server by the vendors' own clients, and prints what each made of it,
// as lines of JSON: {vendor, kind, text, input, output, stop, error, status}.
//
//   node clients.mjs BASE_URL
//
// Models of the server are named after what they do: see peers_clients_test.go.
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { Ollama } from 'ollama';

const base = process.argv[2];
const key = 'sk-test-0123456789abcdefghij';
const anthropic = new Anthropic({ apiKey: key, baseURL: base, maxRetries: 0 });
const openai = new OpenAI({ apiKey: key, baseURL: `${base}/v1`, maxRetries: 0 });
const ollama = new Ollama({ host: base, headers: { Authorization: `Bearer ${key}` } });

const messages = [{ role: 'user', content: 'GARDENIA BAKERIES\nTOTAL 60.30' }];
const schema = {
  type: 'object', required: ['company'], additionalProperties: false, properties: { company: { type: 'string' } },
};

const kinds = {
  anthropic: async (model) => {
    const request = { model, max_tokens: 500, messages };
    if (model === 'tool') {
      request.tools = [{ name: 'answer', input_schema: schema }];
      request.tool_choice = { type: 'tool', name: 'answer' };
    }
    const m = await anthropic.messages.stream(request).finalMessage();
    const text = m.content.map((b) => (b.type === 'tool_use' ? JSON.stringify(b.input) : b.text)).join('');
    return { text, input: m.usage.input_tokens, output: m.usage.output_tokens, stop: m.stop_reason };
  },
  openai: async (model) => {
    const request = { model, max_completion_tokens: 500, messages, stream_options: { include_usage: true } };
    if (model === 'tool') {
      request.tools = [{ type: 'function', function: { name: 'answer', parameters: schema } }];
      request.tool_choice = { type: 'function', function: { name: 'answer' } };
    }
    const c = await openai.chat.completions.stream(request).finalChatCompletion();
    const { message, finish_reason: stop } = c.choices[0];
    const text = message.tool_calls?.length ? message.tool_calls[0].function.arguments : message.content;
    return { text, input: c.usage.prompt_tokens, output: c.usage.completion_tokens, stop };
  },
  ollama: async (model) => {
    const request = { model, messages, stream: true, options: { num_ctx: 8192, num_predict: 500 } };
    if (model === 'tool') request.format = schema;
    let text = '';
    let last;
    for await (const line of await ollama.chat(request)) {
      text += line.message.content;
      last = line;
    }
    return { text, input: last.prompt_eval_count, output: last.eval_count, stop: last.done_reason };
  },
};

for (const [vendor, call] of Object.entries(kinds)) {
  for (const kind of ['prose', 'tool', 'truncated', 'rate_limit', 'overloaded', 'server_error', 'unauthorized', 'unknown_model', 'mid_stream', 'reset']) {
    let out;
    try {
      out = await call(kind);
    } catch (e) {
      out = { error: e.name === 'Error' ? e.constructor.name : e.name, status: e.status ?? e.status_code ?? 0 };
    }
    console.log(JSON.stringify({ vendor, kind, ...out }));
  }
}
console.log(JSON.stringify({
  vendor: 'anthropic', kind: 'count',
  input: (await anthropic.messages.countTokens({ model: 'count', messages })).input_tokens,
}));
